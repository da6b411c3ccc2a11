/* Sentences and failed timelines; see failure.hpp. */
#include "failure.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace bp::stream {

namespace {
thread_local char last[TEXT_BYTES];
}

int32_t fail(int32_t status, const char *format, ...) noexcept {
    va_list words;
    va_start(words, format);
    vsnprintf(last, sizeof(last), format, words);
    va_end(words);
    return status;
}

const char *said() noexcept {
    return last;
}

void ask(const bp_api *api, int32_t status, char (&text)[TEXT_BYTES]) noexcept {
    uint64_t length = 0;
    text[0] = 0;
    if (api->core->last_error(text, sizeof(text), &length) || !text[0])
        snprintf(text, sizeof(text), "the device gave status %d and no sentence", status);
    text[TEXT_BYTES - 1] = 0;
}

void Failures::add(const bp_fence &fence, int32_t status, const char *text) noexcept {
    std::lock_guard guard(lock_);
    try {
        auto found = of_.find(fence.timeline);
        if (found != of_.end() && found->second.value <= fence.value)
            return;
        if (found == of_.end()) {
            order_.push_back(fence.timeline);
            if (order_.size() > KEPT) {
                of_.erase(order_.front());
                order_.pop_front();
            }
        }
        of_[fence.timeline] = {status, fence.value, text};
        any_.store(1, std::memory_order_release);
    } catch (...) {
        // No memory to remember it: the HAL's timeline is poisoned all the same.
    }
}

int32_t Failures::find(const bp_fence &fence, char (&text)[TEXT_BYTES]) noexcept {
    if (!any_.load(std::memory_order_acquire))
        return BP_OK;
    std::lock_guard guard(lock_);
    auto found = of_.find(fence.timeline);
    if (found == of_.end() || fence.value < found->second.value)
        return BP_OK;
    snprintf(text, sizeof(text), "%s", found->second.text.c_str());
    return found->second.status;
}

} // namespace bp::stream
