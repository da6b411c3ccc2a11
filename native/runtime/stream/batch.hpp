/*
 * A batch that the scheduler owns: a deep copy in storage that is used again.
 *
 * Contract: after `copy` nothing of the caller's is read any more. The storage only grows, so a
 * steady state allocates nothing. The stream's own fence is the last signal.
 */
#ifndef BEDPLATE_STREAM_BATCH_HPP
#define BEDPLATE_STREAM_BATCH_HPP

#include <bedplate/hal.h>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace bp::stream {

struct Stream;
struct Graph;
struct Watched;

struct Batch {
    Batch *next = nullptr;
    Stream *stream = nullptr;
    bp_batch described = {};  /* into storage; the signals have the stream's at the end */
    uint64_t deadline_ns = 0; /* for its waits */
    uint64_t arrival = 0;     /* the worker's count, from here on the worker's alone */
    uint32_t met = 0;         /* waits that have passed */
    uint32_t overtaken = 0;   /* by batches that came later, since it was ready */
    bool ready = false;       /* waits have passed, or the device waits */
    bool looked = false;      /* at its waits */
    bool parked = false;      /* a wait has not passed */
    Graph *graph = nullptr;   /* what it runs instead of commands; one ownership */
    std::shared_ptr<Watched> watched;
    std::unique_ptr<std::byte[]> storage;
    size_t room = 0;

    /* BP_OK, or a status with a sentence; throws std::bad_alloc. */
    int32_t copy(const bp_batch *given);
    const bp_fence &own() const noexcept {
        return described.signal[described.signal_count - 1];
    }
    void set_own(const bp_fence &fence) noexcept;
};

} // namespace bp::stream

#endif
