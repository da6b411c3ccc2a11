/*
 * A stream: batches of one row, as submitters and the worker each see it.
 *
 * Contract: `lock` makes the order of values and the order in the ring agree; it is held for some
 * tens of nanoseconds. What stands under "worker" belongs to the worker's thread alone.
 */
#ifndef BEDPLATE_STREAM_STREAM_HPP
#define BEDPLATE_STREAM_STREAM_HPP

#include "batch.hpp"

#include <atomic>
#include <mutex>

namespace bp::stream {

class Worker;
class Recording;

struct Stream {
    Stream(Worker &of, int32_t rank, bp_fence at) : worker(of), priority(rank), last(at) {}

    Worker &worker;
    const int32_t priority;

    std::mutex lock;
    bp_fence last; /* of the batch that was submitted last */
    Recording *recording = nullptr;
    bool stopped = false;

    // Worker.
    Batch *head = nullptr;
    Batch *tail = nullptr;
    Stream *next_active = nullptr;
    bool active = false;

    std::atomic<uint64_t> handed{0};
};

} // namespace bp::stream

#endif
