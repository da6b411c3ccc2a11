/* Watchers; see watch.hpp. */
#include "watch.hpp"

#include "park.hpp"
#include "worker.hpp"

namespace bp::stream {

std::shared_ptr<Watched> Watchers::watch(Worker &worker, const bp_fence &fence) noexcept {
    try {
        auto watched = std::make_shared<Watched>();
        watched->worker = &worker;
        watched->fence = fence;
        std::lock_guard guard(lock_);
        if (stopping_)
            return nullptr;
        if (wanted_.size() >= idle_ && threads_.size() < most_)
            threads_.emplace_back(&Watchers::serve, this);
        wanted_.push_back(watched);
        some_.notify_one();
        return watched;
    } catch (...) {
        return nullptr;
    }
}

void Watchers::settle(std::shared_ptr<Watched> watched, int32_t status) noexcept {
    if (watched->unwanted.load(std::memory_order_relaxed))
        return;
    if (status == BP_DEADLINE) {
        try {
            wanted_.push_back(std::move(watched));
            return;
        } catch (...) {
            // No memory to go on: the worker looks for itself, and asks again.
        }
    }
    watched->worker->stir();
}

void Watchers::serve() noexcept {
    std::unique_lock guard(lock_);
    for (;;) {
        while (wanted_.empty() && !stopping_) {
            idle_++;
            some_.wait(guard);
            idle_--;
        }
        if (stopping_)
            return;
        auto watched = std::move(wanted_.front());
        wanted_.pop_front();
        uint64_t slice = threads_.size() == most_ ? CROWDED_NS : SLICE_NS;
        guard.unlock();
        int32_t status = BP_OK;
        if (!watched->unwanted.load(std::memory_order_relaxed))
            status = api_->timeline->wait_host(device_, watched->fence.timeline,
                                               watched->fence.value, now_ns() + slice);
        guard.lock();
        settle(std::move(watched), status);
    }
}

void Watchers::stop() noexcept {
    std::vector<std::thread> threads;
    {
        std::lock_guard guard(lock_);
        stopping_ = true;
        threads.swap(threads_);
        some_.notify_all();
    }
    for (auto &thread : threads)
        thread.join();
}

} // namespace bp::stream
