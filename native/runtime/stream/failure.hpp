/*
 * What went wrong: the calling thread's sentence, and the timelines that will not be reached.
 *
 * Contract: a timeline that fails at a value stays failed from that value on; the first failure is
 * kept. The table tells status and sentence at once, where the HAL's timeline is poisoned only when
 * its queue gets there, and as cancelled. It remembers the newest 1024; older ones are poisoned.
 */
#ifndef BEDPLATE_STREAM_FAILURE_HPP
#define BEDPLATE_STREAM_FAILURE_HPP

#include <atomic>
#include <bedplate/hal.h>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>

namespace bp::stream {

constexpr uint64_t TEXT_BYTES = 512;

/* Keeps a sentence for the calling thread and returns the status. */
[[gnu::format(printf, 2, 3)]] int32_t fail(int32_t status, const char *format, ...) noexcept;
/* The calling thread's last sentence. */
const char *said() noexcept;
/* The HAL's sentence for the last failure of this thread, or a word for the status. */
void ask(const bp_api *api, int32_t status, char (&text)[TEXT_BYTES]) noexcept;

struct Failure {
    int32_t status = 0;
    uint64_t value = 0; /* not reached */
    std::string text;
};

class Failures {
  public:
    /* Forgets an older failure rather than fail. */
    void add(const bp_fence &fence, int32_t status, const char *text) noexcept;
    /* Whether waiting for the fence is in vain; then says why. */
    int32_t find(const bp_fence &fence, char (&text)[TEXT_BYTES]) noexcept;

  private:
    static constexpr size_t KEPT = 1024;
    std::atomic<uint64_t> any_{0};
    std::mutex lock_;
    std::unordered_map<uint64_t, Failure> of_;
    std::deque<uint64_t> order_;
};

} // namespace bp::stream

#endif
