/*
 * Threads that sleep in the HAL's timeline waits so that workers need not.
 *
 * The HAL wakes one thread for one timeline, and a worker waits for many and for its ring besides:
 * a watcher takes one fence, and posts to the worker when it passed or failed. Threads are made
 * when needed, up to a number; with more fences than that each watcher goes round in slices, so
 * that a wake comes later but comes. A watch that nobody wants any more ends with its slice.
 */
#ifndef BEDPLATE_STREAM_WATCH_HPP
#define BEDPLATE_STREAM_WATCH_HPP

#include <atomic>
#include <bedplate/hal.h>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace bp::stream {

class Worker;

struct Watched {
    Worker *worker;
    bp_fence fence;
    std::atomic<bool> unwanted{false};
};

class Watchers {
  public:
    Watchers(const bp_api *api, uint64_t device, uint32_t most)
        : api_(api), device_(device), most_(most) {}
    ~Watchers() {
        stop();
    }
    /* Null when there is no memory or thread: look again after a while. */
    std::shared_ptr<Watched> watch(Worker &worker, const bp_fence &fence) noexcept;
    /* Joins all; takes at most a slice. */
    void stop() noexcept;

  private:
    static constexpr uint64_t SLICE_NS = 50'000'000;
    static constexpr uint64_t CROWDED_NS = 1'000'000;

    void serve() noexcept;
    void settle(std::shared_ptr<Watched> watched, int32_t status) noexcept;

    const bp_api *api_;
    uint64_t device_;
    size_t most_;
    std::mutex lock_;
    std::condition_variable some_;
    std::deque<std::shared_ptr<Watched>> wanted_;
    std::vector<std::thread> threads_;
    size_t idle_ = 0;
    bool stopping_ = false;
};

} // namespace bp::stream

#endif
