"""The types and functions of `streams.h`, and the errors behind its statuses.

They repeat `native/runtime/include/bedplate/streams.h`; a test compares the
two. A status is one of the HAL's: what a batch met on the device arrives as
the device said it.
"""

from __future__ import annotations

from bedplate.runtime.errors import (
    BatchFailed,
    OptionsInvalid,
    RuntimeFault,
    SchedulerStopped,
    StreamDeadline,
)
from bedplate.runtime.native import ERROR_BYTES, ffi, library

STREAMS_CDEF = """
typedef struct { uint32_t struct_version, struct_size; } bp_head;
typedef struct { uint64_t timeline, value; } bp_fence;
typedef struct {
    bp_head head;
    uint64_t tag;
    const bp_fence *wait;
    const bp_fence *signal;
    const void *commands;
    uint32_t wait_count, signal_count, command_count, flags;
    uint64_t reserved[4];
} bp_batch;
typedef struct bp_runtime_scheduler bp_runtime_scheduler;
typedef struct bp_runtime_recording bp_runtime_recording;
typedef struct bp_runtime_graph bp_runtime_graph;
typedef struct { uint32_t capacity, ageing, watchers, capture; } bp_runtime_scheduler_options;
typedef struct {
    uint64_t submitted, handed, failed, parked, wakes, overtaken_most, waiting, full_waits;
} bp_runtime_queue_stats;
typedef struct { uint32_t batches, commands, captured, padding; } bp_runtime_graph_info;
int32_t bp_runtime_scheduler_open(const void *api, uint64_t device,
                                  const bp_runtime_scheduler_options *options,
                                  bp_runtime_scheduler **out);
int32_t bp_runtime_scheduler_stop(bp_runtime_scheduler *, uint64_t deadline_ns);
int32_t bp_runtime_scheduler_close(bp_runtime_scheduler *);
uint64_t bp_runtime_scheduler_last_error(char *buffer, uint64_t capacity);
int32_t bp_runtime_scheduler_queue(bp_runtime_scheduler *, int32_t priority, uint32_t window,
                                   uint32_t flags, uint32_t *queue);
int32_t bp_runtime_scheduler_stream(bp_runtime_scheduler *, uint32_t queue, int32_t priority,
                                    uint64_t timeline, uint64_t value, uint32_t *stream);
int32_t bp_runtime_scheduler_reset(bp_runtime_scheduler *, uint32_t stream, uint64_t timeline,
                                   uint64_t value);
int32_t bp_runtime_scheduler_submit(bp_runtime_scheduler *, uint32_t stream, const bp_batch *batch,
                                    uint64_t wait_by, uint64_t room_by, uint64_t *value);
int32_t bp_runtime_scheduler_handed(bp_runtime_scheduler *, uint32_t stream, uint64_t *count);
int32_t bp_runtime_scheduler_wait(bp_runtime_scheduler *, uint64_t timeline, uint64_t value,
                                  uint64_t deadline_ns);
int32_t bp_runtime_scheduler_signal(bp_runtime_scheduler *, uint64_t timeline, uint64_t value);
int32_t bp_runtime_scheduler_stats(bp_runtime_scheduler *, uint32_t queue,
                                   bp_runtime_queue_stats *out);
int32_t bp_runtime_graph_begin(bp_runtime_scheduler *, const uint32_t *streams, uint32_t count,
                               bp_runtime_recording **out);
int32_t bp_runtime_graph_end(bp_runtime_scheduler *, bp_runtime_recording *,
                             bp_runtime_graph **out);
int32_t bp_runtime_graph_launch(bp_runtime_scheduler *, uint32_t stream, bp_runtime_graph *,
                                const bp_batch *fences, uint64_t wait_by, uint64_t room_by,
                                uint64_t *value);
int32_t bp_runtime_graph_info_of(const bp_runtime_graph *, bp_runtime_graph_info *out);
int32_t bp_runtime_graph_release(bp_runtime_graph *);
typedef struct {
    uint32_t host, kind, lane, first_fence, wait_count, signal_count;
    uint64_t tag;
} bp_runtime_step;
typedef struct {
    uint32_t queue;
    int32_t priority;
    uint32_t flags;
    uint32_t padding;
} bp_runtime_lane;
typedef struct {
    const bp_runtime_step *steps;
    const bp_runtime_lane *lanes;
    const bp_fence *fences;
    uint32_t step_count, lane_count, fence_count, host_count, queue_count, timeline_count;
    uint32_t ageing;
    uint32_t allowed;
} bp_runtime_program;
typedef struct {
    uint64_t arrival;
    uint64_t tag;
    uint32_t lane, overtaken;
    int32_t priority;
    uint32_t padding;
} bp_runtime_ready;
typedef uint32_t (*bp_runtime_rule)(void *data, const bp_runtime_ready *ready, uint32_t count,
                                    uint32_t ageing);
typedef struct {
    uint64_t seed;
    uint64_t states;
    uint64_t walks;
    uint32_t depth;
    uint32_t padding;
    bp_runtime_rule rule;
    void *rule_data;
} bp_runtime_explore_options;
typedef struct {
    uint32_t verdict;
    uint32_t complete;
    uint32_t steps;
    uint32_t padding;
    uint64_t states, schedules;
} bp_runtime_explored;
int32_t bp_runtime_explore(const bp_runtime_program *program,
                           const bp_runtime_explore_options *options, bp_runtime_explored *out,
                           char *text, uint64_t capacity, uint64_t *length);
"""

NEVER = (1 << 64) - 1
DEVICE_WAITS = 1

ffi.cdef(STREAMS_CDEF)

_BY_STATUS: dict[int, type[RuntimeFault]] = {
    -1: OptionsInvalid,
    -2: OptionsInvalid,
    -7: StreamDeadline,
    -10: SchedulerStopped,
}


def check_stream(status: int, *, of_batch: bool = False) -> None:
    """Raise the typed error of a negative status; `of_batch` when a batch met it."""
    if status >= 0:
        return
    buffer = ffi.new("char[]", ERROR_BYTES)
    library().bp_runtime_scheduler_last_error(buffer, ERROR_BYTES)
    text = bytes(ffi.string(buffer)).decode(errors="replace")
    message, found, remedy = text.rpartition("; ")
    if of_batch and (status != -7 or text.startswith("batch ")):
        raise BatchFailed(text, status=status)
    kind = _BY_STATUS.get(status, RuntimeFault)
    raise kind(message, remedy=remedy) if found else kind(text)
