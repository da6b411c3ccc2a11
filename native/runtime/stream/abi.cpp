/*
 * The C entries of bedplate/streams.h. Nothing is thrown across: every entry is noexcept, and an
 * exception becomes a status with a sentence.
 */
#include "explore.hpp"
#include "scheduler.hpp"

#include <bedplate/streams.h>
#include <cstdio>
#include <cstring>
#include <new>

using namespace bp::stream;

struct bp_runtime_scheduler final {
    Scheduler is;
};
struct bp_runtime_recording final {
    std::unique_ptr<Recording> is;
};

namespace {

template <typename Work> int32_t guarded(Work work) noexcept {
    try {
        return work();
    } catch (const std::bad_alloc &) {
        return fail(BP_OUT_OF_MEMORY, "no host memory");
    } catch (const std::exception &error) {
        return fail(BP_OUT_OF_MEMORY, "the system refused: %s", error.what());
    } catch (...) {
        return fail(BP_INTERNAL, "something else than an error was thrown");
    }
}

template <typename... Pointers> bool missing(const Pointers *...pointers) noexcept {
    bool all = (... && (pointers != nullptr));
    if (!all)
        fail(BP_INVALID_ARGUMENT, "a pointer is null");
    return !all;
}

Graph *graph_of(bp_runtime_graph *graph) noexcept {
    return reinterpret_cast<Graph *>(graph);
}

} // namespace

extern "C" {

BP_EXPORT int32_t bp_runtime_scheduler_open(const bp_api *api, uint64_t device,
                                            const bp_runtime_scheduler_options *options,
                                            bp_runtime_scheduler **out) noexcept {
    if (missing(api, out))
        return BP_INVALID_ARGUMENT;
    bp_runtime_scheduler_options chosen = options ? *options : bp_runtime_scheduler_options{};
    chosen.capacity = chosen.capacity ? chosen.capacity : 4096;
    chosen.ageing = chosen.ageing ? chosen.ageing : 8;
    chosen.watchers = chosen.watchers ? chosen.watchers : 8;
    if (chosen.capacity < 2 || chosen.capacity > 1u << 20 ||
        (chosen.capacity & (chosen.capacity - 1)))
        return fail(BP_INVALID_ARGUMENT,
                    "a ring of %u batches; give a power of two from 2 to 1048576", chosen.capacity);
    if (chosen.watchers > 256)
        return fail(BP_INVALID_ARGUMENT, "%u watchers; 256 are the most", chosen.watchers);
    return guarded([&] {
        *out = new bp_runtime_scheduler{Scheduler(api, device, chosen)};
        return BP_OK;
    });
}

BP_EXPORT int32_t bp_runtime_scheduler_stop(bp_runtime_scheduler *scheduler,
                                            uint64_t deadline_ns) noexcept {
    if (missing(scheduler))
        return BP_INVALID_ARGUMENT;
    scheduler->is.stop(deadline_ns);
    return BP_OK;
}

BP_EXPORT int32_t bp_runtime_scheduler_close(bp_runtime_scheduler *scheduler) noexcept {
    delete scheduler;
    return BP_OK;
}

BP_EXPORT uint64_t bp_runtime_scheduler_last_error(char *buffer, uint64_t capacity) noexcept {
    uint64_t length = strlen(said());
    if (buffer && capacity)
        snprintf(buffer, capacity, "%s", said());
    return length;
}

BP_EXPORT int32_t bp_runtime_scheduler_queue(bp_runtime_scheduler *scheduler, int32_t priority,
                                             uint32_t window, uint32_t flags,
                                             uint32_t *queue) noexcept {
    if (missing(scheduler, queue))
        return BP_INVALID_ARGUMENT;
    return guarded([&] { return scheduler->is.add_queue(priority, window, flags, queue); });
}

BP_EXPORT int32_t bp_runtime_scheduler_stream(bp_runtime_scheduler *scheduler, uint32_t queue,
                                              int32_t priority, uint64_t timeline, uint64_t value,
                                              uint32_t *stream) noexcept {
    if (missing(scheduler, stream))
        return BP_INVALID_ARGUMENT;
    return guarded(
        [&] { return scheduler->is.add_stream(queue, priority, {timeline, value}, stream); });
}

BP_EXPORT int32_t bp_runtime_scheduler_reset(bp_runtime_scheduler *scheduler, uint32_t stream,
                                             uint64_t timeline, uint64_t value) noexcept {
    if (missing(scheduler))
        return BP_INVALID_ARGUMENT;
    return guarded([&] { return scheduler->is.reset(stream, {timeline, value}); });
}

BP_EXPORT int32_t bp_runtime_scheduler_submit(bp_runtime_scheduler *scheduler, uint32_t stream,
                                              const bp_batch *batch, uint64_t wait_by,
                                              uint64_t room_by, uint64_t *value) noexcept {
    if (missing(scheduler, batch, value))
        return BP_INVALID_ARGUMENT;
    return guarded(
        [&] { return scheduler->is.submit(stream, batch, nullptr, wait_by, room_by, value); });
}

BP_EXPORT int32_t bp_runtime_scheduler_handed(bp_runtime_scheduler *scheduler, uint32_t stream,
                                              uint64_t *count) noexcept {
    if (missing(scheduler, count))
        return BP_INVALID_ARGUMENT;
    return guarded([&] { return scheduler->is.handed(stream, count); });
}

BP_EXPORT int32_t bp_runtime_scheduler_wait(bp_runtime_scheduler *scheduler, uint64_t timeline,
                                            uint64_t value, uint64_t deadline_ns) noexcept {
    if (missing(scheduler))
        return BP_INVALID_ARGUMENT;
    return guarded([&] { return scheduler->is.wait({timeline, value}, deadline_ns); });
}

BP_EXPORT int32_t bp_runtime_scheduler_signal(bp_runtime_scheduler *scheduler, uint64_t timeline,
                                              uint64_t value) noexcept {
    if (missing(scheduler))
        return BP_INVALID_ARGUMENT;
    return guarded([&] { return scheduler->is.signal({timeline, value}); });
}

BP_EXPORT int32_t bp_runtime_scheduler_stats(bp_runtime_scheduler *scheduler, uint32_t queue,
                                             bp_runtime_queue_stats *out) noexcept {
    if (missing(scheduler, out))
        return BP_INVALID_ARGUMENT;
    return guarded([&] { return scheduler->is.stats(queue, out); });
}

BP_EXPORT int32_t bp_runtime_graph_begin(bp_runtime_scheduler *scheduler, const uint32_t *streams,
                                         uint32_t count, bp_runtime_recording **out) noexcept {
    if (missing(scheduler, streams, out))
        return BP_INVALID_ARGUMENT;
    return guarded([&] {
        auto recording = std::make_unique<bp_runtime_recording>();
        int32_t status = scheduler->is.begin(streams, count, recording->is);
        if (!status)
            *out = recording.release();
        return status;
    });
}

BP_EXPORT int32_t bp_runtime_graph_end(bp_runtime_scheduler *scheduler,
                                       bp_runtime_recording *recording,
                                       bp_runtime_graph **out) noexcept {
    if (missing(scheduler, recording))
        return BP_INVALID_ARGUMENT;
    std::unique_ptr<bp_runtime_recording> owned(recording);
    if (!out) {
        owned->is->leave();
        return BP_OK;
    }
    return guarded([&] {
        std::unique_ptr<Graph> graph;
        int32_t status = scheduler->is.end(*owned->is, graph);
        if (!status)
            *out = reinterpret_cast<bp_runtime_graph *>(graph.release());
        return status;
    });
}

BP_EXPORT int32_t bp_runtime_graph_launch(bp_runtime_scheduler *scheduler, uint32_t stream,
                                          bp_runtime_graph *graph, const bp_batch *fences,
                                          uint64_t wait_by, uint64_t room_by,
                                          uint64_t *value) noexcept {
    if (missing(scheduler, graph, fences, value))
        return BP_INVALID_ARGUMENT;
    return guarded([&] {
        return scheduler->is.submit(stream, fences, graph_of(graph), wait_by, room_by, value);
    });
}

BP_EXPORT int32_t bp_runtime_graph_info_of(const bp_runtime_graph *graph,
                                           bp_runtime_graph_info *out) noexcept {
    if (missing(graph, out))
        return BP_INVALID_ARGUMENT;
    const auto *is = reinterpret_cast<const Graph *>(graph);
    *out = {static_cast<uint32_t>(is->batches.size()), static_cast<uint32_t>(is->commands.size()),
            is->native ? 1u : 0u, 0};
    return BP_OK;
}

BP_EXPORT int32_t bp_runtime_graph_release(bp_runtime_graph *graph) noexcept {
    if (missing(graph))
        return BP_INVALID_ARGUMENT;
    release(graph_of(graph));
    return BP_OK;
}

BP_EXPORT int32_t bp_runtime_explore(const bp_runtime_program *program,
                                     const bp_runtime_explore_options *options,
                                     bp_runtime_explored *out, char *text, uint64_t capacity,
                                     uint64_t *length) noexcept {
    if (missing(program, out, length))
        return BP_INVALID_ARGUMENT;
    return guarded([&] {
        std::string told;
        int32_t status =
            explore(*program, options ? *options : bp_runtime_explore_options{}, *out, told);
        *length = told.size();
        if (text && capacity)
            snprintf(text, capacity, "%s", told.c_str());
        return status;
    });
}
}
