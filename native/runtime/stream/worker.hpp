/*
 * A HAL queue and the thread that hands batches to it.
 *
 * Submitters take a batch from `free_`, fill it and push it to `ring_`; the worker moves it to its
 * stream's row, and hands over the heads whose waits have passed, in the order of order.hpp. The
 * batches of a worker are made once: their number bounds the ring and the rows together, so that
 * neither push ever fails, and a submitter who finds none free is the one who waits.
 *
 * A batch that cannot run is failed: its signals are told in `Failures` first and then poisoned in
 * the HAL, by a batch that waits for a timeline that is destroyed.
 */
#ifndef BEDPLATE_STREAM_WORKER_HPP
#define BEDPLATE_STREAM_WORKER_HPP

#include "failure.hpp"
#include "order.hpp"
#include "park.hpp"
#include "ring.hpp"
#include "stream.hpp"
#include "watch.hpp"

#include <bedplate/streams.h>
#include <thread>

namespace bp::stream {

/* What the workers of a scheduler share. */
struct Ground {
    const bp_api *api;
    uint64_t device;
    Failures failures;
    Watchers watchers;
    Ground(const bp_api *of, uint64_t on, uint32_t most)
        : api(of), device(on), watchers(of, on, most) {}
    virtual void stir_all() noexcept = 0;

  protected:
    ~Ground() = default;
};

class Worker {
  public:
    /* Takes over the HAL queue. Throws when memory or threads are exhausted. */
    Worker(Ground &ground, uint64_t queue, const bp_runtime_scheduler_options &options,
           uint32_t window, uint32_t flags);
    ~Worker();

    /* A batch to fill; null with a status when none was free by the deadline, or it stops. */
    Batch *take(uint64_t room_by, int32_t &status) noexcept;
    void give_back(Batch *batch) noexcept;
    /* Under the stream's lock, which makes it the next of its row. */
    void push(Batch *batch) noexcept {
        submitted_.fetch_add(1, std::memory_order_relaxed);
        ring_.push(batch);
    }
    /* After `push`, outside the lock. */
    void post() noexcept {
        park_.nudge();
    }
    /* Something happened that parked batches may wait for. */
    void stir() noexcept {
        stirred_.fetch_add(1, std::memory_order_release);
        park_.post();
    }
    bool has_parked() const noexcept {
        return parked_.load(std::memory_order_seq_cst) != 0;
    }
    /* No stream submits any more. Ends the thread and fails what was not handed over. */
    void end() noexcept;
    /* After `end`: what was handed over has time until the deadline, then the HAL queue goes. */
    void destroy(uint64_t deadline_ns) noexcept;
    void refuse() noexcept; /* who waits for room stops waiting */
    void stats(bp_runtime_queue_stats &out) const noexcept;

  private:
    static constexpr uint32_t WINDOW = 64;

    void serve() noexcept;
    void sort_in() noexcept;
    bool step() noexcept;
    Stream *choose(bool look_again) noexcept;
    bool examine(Stream &stream, bool look_again) noexcept;
    int32_t look(Batch &batch, char (&text)[TEXT_BYTES]) noexcept;
    int32_t see(Batch &batch, const bp_fence &fence, char (&text)[TEXT_BYTES]) noexcept;
    void park(Batch &batch, const bp_fence &fence) noexcept;
    void unpark(Batch &batch) noexcept;
    bool has_room() noexcept;
    void overtake(const Batch &chosen) noexcept;
    Batch *behead(Stream &stream) noexcept;
    void hand(Batch *batch) noexcept;
    int32_t give(Batch &batch, char (&text)[TEXT_BYTES]) noexcept;
    void fail_batch(Batch *batch, int32_t status, const char *text) noexcept;
    void poison(const Batch &batch) noexcept;
    void finish(Batch *batch) noexcept;
    void cancel_all() noexcept;
    void rest(uint32_t seen) noexcept;

    Ground &ground_;
    const uint64_t queue_;
    const uint32_t ageing_, window_, flags_, most_spins_;
    std::unique_ptr<Batch[]> batches_;
    Ring<Batch *> free_, ring_;
    Park park_, room_;
    // On lines of their own: what submitters write, what both write, what the worker writes.
    alignas(64) std::atomic<uint64_t> submitted_{0};
    std::atomic<uint64_t> full_{0};
    alignas(64) std::atomic<uint32_t> wanting_room_{0};
    std::atomic<bool> ending_{false}, refusing_{false};
    alignas(64) std::atomic<uint32_t> parked_{0};
    std::atomic<uint64_t> stirred_{0};
    std::atomic<uint64_t> handed_{0}, failed_{0}, parks_{0}, wakes_{0}, overtaken_{0};

    // The thread's own.
    Stream *active_ = nullptr;
    uint64_t arrivals_ = 0, stirred_seen_ = 0, wake_by_ = 0;
    bool unwatched_ = false;
    uint32_t spins_ = 0;
    bp_fence flight_[WINDOW] = {};
    uint32_t flight_first_ = 0, flight_count_ = 0;
    std::shared_ptr<Watched> flight_watch_;
    bp_fence last_handed_ = {};
    bool destroyed_ = false;
    std::thread thread_;
};

} // namespace bp::stream

#endif
