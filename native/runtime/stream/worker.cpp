/* The worker's thread; see worker.hpp. What fails and what is handed over is in handover.cpp. */
#include "worker.hpp"

#include "graph.hpp"

#include <algorithm>
#include <cstdio>

namespace bp::stream {

namespace {
/* How often the ring is looked at before the thread sleeps: from a fraction of a microsecond to
 * some ten, twice as often after a look that found something, half after one that did not. Waking
 * a sleeper costs the submitter more than a short look costs anybody; looking for long keeps a
 * core from others (decision 0019 of the HAL's executors). */
constexpr uint32_t FEW_SPINS = 16;
constexpr uint32_t MOST_SPINS = 512;
/* A parked batch that nobody watches is looked at again after so long. */
constexpr uint64_t UNWATCHED_NS = 1'000'000;
constexpr int32_t PARKED = 1;
} // namespace

Worker::Worker(Ground &ground, uint64_t queue, const bp_runtime_scheduler_options &options,
               uint32_t window, uint32_t flags)
    : ground_(ground), queue_(queue), ageing_(options.ageing), window_(window), flags_(flags),
      most_spins_(std::thread::hardware_concurrency() > 1 ? MOST_SPINS : 0),
      batches_(new Batch[options.capacity]), free_(options.capacity), ring_(options.capacity) {
    for (uint32_t i = 0; i < options.capacity; i++)
        free_.push(&batches_[i]);
    thread_ = std::thread(&Worker::serve, this);
}

Worker::~Worker() {
    end();
    destroy(0);
}

Batch *Worker::take(uint64_t room_by, int32_t &status) noexcept {
    Batch *batch;
    if (free_.pop(batch))
        return batch;
    full_.fetch_add(1, std::memory_order_relaxed);
    wanting_room_.fetch_add(1, std::memory_order_seq_cst);
    for (;;) {
        uint32_t seen = room_.look();
        if (refusing_.load(std::memory_order_acquire)) {
            status = fail(BP_CANCELLED, "the scheduler stops");
            batch = nullptr;
            break;
        }
        if (free_.pop(batch))
            break;
        if (now_ns() >= room_by) {
            status = fail(BP_DEADLINE, "the ring of the queue stayed full until the deadline");
            batch = nullptr;
            break;
        }
        room_.rest(seen, room_by, [] { return false; });
    }
    wanting_room_.fetch_sub(1, std::memory_order_relaxed);
    return batch;
}

void Worker::give_back(Batch *batch) noexcept {
    if (batch->graph)
        release(batch->graph);
    batch->graph = nullptr;
    free_.push(batch);
    // Written, not only read: then either the waiter's count is seen here, or the batch there.
    if (wanting_room_.fetch_add(0, std::memory_order_seq_cst))
        room_.post();
}

void Worker::refuse() noexcept {
    refusing_.store(true, std::memory_order_release);
    room_.post();
}

void Worker::serve() noexcept {
    for (;;) {
        uint32_t seen = park_.look();
        // Looked at before the ring: what was pushed before the end is then in it.
        bool ending = ending_.load(std::memory_order_acquire);
        sort_in();
        if (ending)
            return cancel_all();
        if (!step())
            rest(seen);
    }
}

void Worker::sort_in() noexcept {
    Batch *batch;
    while (ring_.pop(batch)) {
        Stream &stream = *batch->stream;
        batch->arrival = ++arrivals_;
        if (stream.tail)
            stream.tail->next = batch;
        else
            stream.head = batch;
        stream.tail = batch;
        if (!stream.active) {
            stream.active = true;
            stream.next_active = active_;
            active_ = &stream;
        }
    }
}

void Worker::rest(uint32_t seen) noexcept {
    for (uint32_t i = 0; i < spins_; i++) {
        if (ring_.some() || park_.look() != seen) {
            spins_ = std::min(spins_ * 2, most_spins_);
            return;
        }
        pause();
    }
    spins_ = std::min(std::max(spins_ / 2, FEW_SPINS), most_spins_);
    uint64_t until = wake_by_;
    if (unwatched_)
        until = std::min(until, now_ns() + UNWATCHED_NS);
    park_.rest(seen, until, [this] { return ring_.some(); });
}

/* Fails, hands over or parks; false when nothing more can be done now. */
bool Worker::step() noexcept {
    uint64_t stirred = stirred_.load(std::memory_order_acquire);
    bool look_again = stirred != stirred_seen_ || unwatched_;
    stirred_seen_ = stirred;
    unwatched_ = false;
    wake_by_ = BP_RUNTIME_NEVER;
    Stream *chosen = choose(look_again);
    if (!chosen || !has_room())
        return false;
    overtake(*chosen->head);
    hand(behead(*chosen));
    return true;
}

Stream *Worker::choose(bool look_again) noexcept {
    Stream *best = nullptr;
    Rank best_rank = {};
    for (Stream **link = &active_; *link;) {
        Stream &stream = **link;
        bool ready = examine(stream, look_again);
        if (!stream.head) {
            *link = stream.next_active;
            stream.active = false;
            continue;
        }
        link = &stream.next_active;
        if (!ready)
            continue;
        Rank rank = {stream.priority, stream.head->overtaken, stream.head->arrival};
        if (!best || before(rank, best_rank, ageing_)) {
            best = &stream;
            best_rank = rank;
        }
    }
    return best;
}

/* Whether the stream's head may go; heads that fail are gone already. */
bool Worker::examine(Stream &stream, bool look_again) noexcept {
    char text[TEXT_BYTES];
    while (Batch *head = stream.head) {
        if (head->ready)
            return true;
        bool due =
            head->deadline_ns != BP_RUNTIME_NEVER && head->looked && now_ns() >= head->deadline_ns;
        int32_t status = !head->looked || look_again || due ? look(*head, text) : PARKED;
        head->looked = true;
        if (status == BP_OK) {
            unpark(*head);
            head->ready = true;
        } else if (status == PARKED) {
            if (head->deadline_ns < wake_by_)
                wake_by_ = head->deadline_ns;
            return false;
        } else {
            fail_batch(behead(stream), status, text);
        }
    }
    return false;
}

/* BP_OK when all waits have passed, PARKED, or why they never will. */
int32_t Worker::look(Batch &batch, char (&text)[TEXT_BYTES]) noexcept {
    const bp_batch &described = batch.described;
    bool by_device =
        (flags_ & BP_RUNTIME_QUEUE_DEVICE_WAITS) && batch.deadline_ns == BP_RUNTIME_NEVER;
    for (; batch.met < described.wait_count; batch.met++) {
        const bp_fence &fence = described.wait[batch.met];
        int32_t status = by_device ? ground_.failures.find(fence, text) : see(batch, fence, text);
        if (status)
            return status;
    }
    return BP_OK;
}

int32_t Worker::see(Batch &batch, const bp_fence &fence, char (&text)[TEXT_BYTES]) noexcept {
    const bp_api *api = ground_.api;
    int32_t status = ground_.failures.find(fence, text);
    if (status)
        return status;
    uint64_t value = 0;
    status = api->timeline->query(ground_.device, fence.timeline, &value);
    if (status) {
        ask(api, status, text);
        return status;
    }
    if (value >= fence.value)
        return BP_OK;
    if (batch.deadline_ns != BP_RUNTIME_NEVER && now_ns() >= batch.deadline_ns) {
        snprintf(
            text, TEXT_BYTES, "a timeline is at %llu and did not reach %llu before the deadline",
            static_cast<unsigned long long>(value), static_cast<unsigned long long>(fence.value));
        return BP_DEADLINE;
    }
    park(batch, fence);
    return PARKED;
}

void Worker::park(Batch &batch, const bp_fence &fence) noexcept {
    if (!batch.parked) {
        batch.parked = true;
        parked_.fetch_add(1, std::memory_order_seq_cst);
        parks_.fetch_add(1, std::memory_order_relaxed);
        // Who signalled before it saw that count did not stir us: look once more.
        stirred_.fetch_add(1, std::memory_order_release);
        park_.post();
    }
    if (batch.watched && batch.watched->fence.timeline == fence.timeline &&
        batch.watched->fence.value == fence.value)
        return;
    if (batch.watched)
        batch.watched->unwanted.store(true, std::memory_order_relaxed);
    batch.watched = ground_.watchers.watch(*this, fence);
    unwatched_ = unwatched_ || !batch.watched;
}

void Worker::unpark(Batch &batch) noexcept {
    if (batch.parked) {
        batch.parked = false;
        parked_.fetch_sub(1, std::memory_order_relaxed);
        wakes_.fetch_add(1, std::memory_order_relaxed);
    }
    if (batch.watched) {
        batch.watched->unwanted.store(true, std::memory_order_relaxed);
        batch.watched.reset();
    }
}

Batch *Worker::behead(Stream &stream) noexcept {
    Batch *batch = stream.head;
    stream.head = batch->next;
    if (!stream.head)
        stream.tail = nullptr;
    batch->next = nullptr;
    return batch;
}

void Worker::overtake(const Batch &chosen) noexcept {
    for (Stream *stream = active_; stream; stream = stream->next_active) {
        Batch *head = stream->head;
        if (!head || !head->ready || head->arrival >= chosen.arrival)
            continue;
        if (++head->overtaken > overtaken_.load(std::memory_order_relaxed))
            overtaken_.store(head->overtaken, std::memory_order_relaxed);
    }
}

/* Whether the window has room; else somebody watches its oldest batch. */
bool Worker::has_room() noexcept {
    if (!window_)
        return true;
    while (flight_count_) {
        const bp_fence &oldest = flight_[flight_first_];
        uint64_t value = 0;
        int32_t status = ground_.api->timeline->query(ground_.device, oldest.timeline, &value);
        // A failed one is done too.
        if (!status && value < oldest.value)
            break;
        flight_first_ = (flight_first_ + 1) % WINDOW;
        flight_count_--;
        if (flight_watch_)
            flight_watch_->unwanted.store(true, std::memory_order_relaxed);
        flight_watch_.reset();
    }
    if (flight_count_ < window_)
        return true;
    if (!flight_watch_)
        flight_watch_ = ground_.watchers.watch(*this, flight_[flight_first_]);
    unwatched_ = unwatched_ || !flight_watch_;
    return false;
}

void Worker::stats(bp_runtime_queue_stats &out) const noexcept {
    auto of = [](const std::atomic<uint64_t> &count) {
        return count.load(std::memory_order_relaxed);
    };
    // Ends before submits, so that none is seen whose submit is not. A batch that the device
    // refuses is counted in both for a moment, by another thread's clock: so never below zero.
    uint64_t failed = failed_.load(std::memory_order_acquire);
    uint64_t handed = handed_.load(std::memory_order_acquire);
    uint64_t submitted = of(submitted_);
    out = {submitted, handed, failed, of(parks_), of(wakes_), of(overtaken_), 0, of(full_)};
    out.waiting = submitted > handed + failed ? submitted - handed - failed : 0;
}

} // namespace bp::stream
