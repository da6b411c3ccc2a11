/*
 * Work in streams over the HAL's queues: the scheduler's C interface.
 *
 * A scheduler has queues; each is a HAL queue with a thread, the worker, that hands batches to it.
 * A stream is a row of batches on a queue, with a priority and a timeline of the caller's: its
 * n-th batch moves that timeline to n above where it stood. Submitting copies the batch into a
 * bounded ring and returns; a full ring is waited for, and nothing accepted is lost: it is handed
 * over, or it fails, and then the timelines it would have signalled are poisoned.
 *
 * A batch fails when a wait of it fails or runs out of time, when the device refuses it, when the
 * stream's own timeline failed before, or when the scheduler stops. Who waits for it learns its
 * tag and sentence; other streams go on.
 *
 * Every function may be called from any thread, and returns 0 or one of the HAL's statuses;
 * bp_runtime_scheduler_last_error gives the calling thread's sentence. Deadlines are absolute
 * CLOCK_MONOTONIC nanoseconds: 0 does not wait, BP_RUNTIME_NEVER has none. The API, the device and
 * the timelines outlive the scheduler.
 */
#ifndef BEDPLATE_STREAMS_H
#define BEDPLATE_STREAMS_H

#include <bedplate/hal.h>
#include <stdint.h>

#ifdef __cplusplus
#define BP_RUNTIME_NOEXCEPT noexcept
extern "C" {
#else
#define BP_RUNTIME_NOEXCEPT
#endif

#define BP_RUNTIME_NEVER UINT64_MAX

/* Waits are given to the device, and block the queue there: for queues of one stream, which have
 * nothing to put in front. A batch with a deadline is kept on the host all the same. */
#define BP_RUNTIME_QUEUE_DEVICE_WAITS 1u

typedef struct bp_runtime_scheduler bp_runtime_scheduler;
typedef struct bp_runtime_recording bp_runtime_recording;
typedef struct bp_runtime_graph bp_runtime_graph;

typedef struct {
    uint32_t capacity; /* batches a queue holds that are not handed over; a power of two; 0: 4096 */
    uint32_t ageing;   /* a ready batch is overtaken by so many that came later at most; 0: 8 */
    uint32_t watchers; /* threads that wait for timelines on behalf of parked batches; 0: 8 */
    uint32_t capture;  /* 1: the device's capture table may be used (BP_CAP_CAPTURE) */
} bp_runtime_scheduler_options;

typedef struct {
    uint64_t submitted, handed, failed, parked, wakes, overtaken_most, waiting, full_waits;
} bp_runtime_queue_stats;

typedef struct {
    uint32_t batches;  /* recorded */
    uint32_t commands; /* in all of them */
    uint32_t captured; /* 1: by the device; 0: replayed by submitting them again */
    uint32_t padding;
} bp_runtime_graph_info;

/* `options` may be null. */
int32_t bp_runtime_scheduler_open(const bp_api *api, uint64_t device,
                                  const bp_runtime_scheduler_options *options,
                                  bp_runtime_scheduler **out) BP_RUNTIME_NOEXCEPT;
/* Batches not handed over fail with BP_CANCELLED; those handed over may finish until the deadline,
 * and are cancelled by the device then. Twice is fine; submits meanwhile give BP_CANCELLED. */
int32_t bp_runtime_scheduler_stop(bp_runtime_scheduler *, uint64_t deadline_ns) BP_RUNTIME_NOEXCEPT;
/* Stops, without time for what was handed over, and frees; nobody else may use it any more. */
int32_t bp_runtime_scheduler_close(bp_runtime_scheduler *) BP_RUNTIME_NOEXCEPT;
uint64_t bp_runtime_scheduler_last_error(char *buffer, uint64_t capacity) BP_RUNTIME_NOEXCEPT;

/* `window`: batches handed over and not done at most, so that a later batch of a higher priority
 * finds little in front of it; 0 for no bound, 64 at most. `flags`: BP_RUNTIME_QUEUE_*. */
int32_t bp_runtime_scheduler_queue(bp_runtime_scheduler *, int32_t priority, uint32_t window,
                                   uint32_t flags, uint32_t *queue) BP_RUNTIME_NOEXCEPT;
/* Higher priorities go first. `value` is where the timeline stands. */
int32_t bp_runtime_scheduler_stream(bp_runtime_scheduler *, uint32_t queue, int32_t priority,
                                    uint64_t timeline, uint64_t value,
                                    uint32_t *stream) BP_RUNTIME_NOEXCEPT;
/* After a failure: later batches move a new timeline. Those submitted before still fail. */
int32_t bp_runtime_scheduler_reset(bp_runtime_scheduler *, uint32_t stream, uint64_t timeline,
                                   uint64_t value) BP_RUNTIME_NOEXCEPT;

/* `wait_by`: the batch fails with BP_DEADLINE when its waits did not pass by then. `room_by`: the
 * call gives BP_DEADLINE, and has no effect, when the ring stayed full until then. `value`: what
 * the stream's timeline will be at; in a recording, what its other batches wait for, and nobody
 * else may: a later batch of the stream is given the same. What the commands name must live until
 * the batch was handed over; the structs themselves may go at once. */
int32_t bp_runtime_scheduler_submit(bp_runtime_scheduler *, uint32_t stream, const bp_batch *batch,
                                    uint64_t wait_by, uint64_t room_by,
                                    uint64_t *value) BP_RUNTIME_NOEXCEPT;
/* How many batches of the stream were handed over or have failed, reset ones included. */
int32_t bp_runtime_scheduler_handed(bp_runtime_scheduler *, uint32_t stream,
                                    uint64_t *count) BP_RUNTIME_NOEXCEPT;
/* A failure gives the batch's status and sentence. */
int32_t bp_runtime_scheduler_wait(bp_runtime_scheduler *, uint64_t timeline, uint64_t value,
                                  uint64_t deadline_ns) BP_RUNTIME_NOEXCEPT;
/* From the host; wakes parked batches directly. */
int32_t bp_runtime_scheduler_signal(bp_runtime_scheduler *, uint64_t timeline,
                                    uint64_t value) BP_RUNTIME_NOEXCEPT;
int32_t bp_runtime_scheduler_stats(bp_runtime_scheduler *, uint32_t queue,
                                   bp_runtime_queue_stats *out) BP_RUNTIME_NOEXCEPT;

/* From now on submits to these streams are recorded and not run. Their waits and signals order
 * them among themselves; a wait for anything else is refused, there and at the end, and so is a
 * signal that no recorded batch waits for: fences are given to launch. */
int32_t bp_runtime_graph_begin(bp_runtime_scheduler *, const uint32_t *streams, uint32_t count,
                               bp_runtime_recording **out) BP_RUNTIME_NOEXCEPT;
/* Ends the recording, also when it refuses. A null `out` drops it. */
int32_t bp_runtime_graph_end(bp_runtime_scheduler *, bp_runtime_recording *,
                             bp_runtime_graph **out) BP_RUNTIME_NOEXCEPT;
/* A batch of the stream that runs the graph; `fences` has no commands. */
int32_t bp_runtime_graph_launch(bp_runtime_scheduler *, uint32_t stream, bp_runtime_graph *,
                                const bp_batch *fences, uint64_t wait_by, uint64_t room_by,
                                uint64_t *value) BP_RUNTIME_NOEXCEPT;
int32_t bp_runtime_graph_info_of(const bp_runtime_graph *,
                                 bp_runtime_graph_info *out) BP_RUNTIME_NOEXCEPT;
/* At any time before the device is closed; launches that wait still run it. */
int32_t bp_runtime_graph_release(bp_runtime_graph *) BP_RUNTIME_NOEXCEPT;

/* A program for `explore`: hosts with steps, lanes (streams) of queues, timelines that start at 0,
 * all by number. */
#define BP_RUNTIME_STEP_SUBMIT     1u /* a batch to a lane: waits, then signals */
#define BP_RUNTIME_STEP_SIGNAL     2u /* from the host */
#define BP_RUNTIME_STEP_WAIT       3u /* looks and sleeps in one step */
#define BP_RUNTIME_STEP_WAIT_SEEN  4u /* looks, then sleeps unless something changed since */
#define BP_RUNTIME_STEP_WAIT_BLIND 5u /* looks, then sleeps whatever happened since: a bug */

#define BP_RUNTIME_EXPLORE_CLEAN    0u
#define BP_RUNTIME_EXPLORE_DEADLOCK 1u /* nobody can step, and work is left */
#define BP_RUNTIME_EXPLORE_LOST     2u /* somebody sleeps for what has happened */
#define BP_RUNTIME_EXPLORE_SHRINK   3u /* a signal that does not grow its timeline */
#define BP_RUNTIME_EXPLORE_OVERTAKE 4u /* a ready batch was overtaken more often than allowed */

typedef struct {
    uint32_t host, kind, lane, first_fence, wait_count, signal_count;
    uint64_t tag;
} bp_runtime_step; /* SIGNAL has one signal, the WAITs one wait */

typedef struct {
    uint32_t queue;
    int32_t priority;
    uint32_t flags; /* of its queue */
    uint32_t padding;
} bp_runtime_lane;

typedef struct {
    const bp_runtime_step *steps; /* those of a host in its order */
    const bp_runtime_lane *lanes;
    const bp_fence *fences; /* of the steps: first waits, then signals; timelines by number */
    uint32_t step_count, lane_count, fence_count, host_count, queue_count, timeline_count;
    uint32_t ageing;  /* as of a scheduler */
    uint32_t allowed; /* overtakings a ready batch may suffer; 0: `ageing` */
} bp_runtime_program;

/* The head of a lane whose waits have passed. */
typedef struct {
    uint64_t arrival; /* among the batches that are there, 0 the first */
    uint64_t tag;
    uint32_t lane, overtaken;
    int32_t priority;
    uint32_t padding;
} bp_runtime_ready;

/* Which of a queue's ready heads goes next, or `count`: none now. It sees the same again, so it
 * must answer the same: what it keeps is not part of a state. */
typedef uint32_t (*bp_runtime_rule)(void *data, const bp_runtime_ready *ready, uint32_t count,
                                    uint32_t ageing);

typedef struct {
    uint64_t seed;   /* orders the search */
    uint64_t states; /* bound of states looked at; 0: a million */
    uint64_t walks;  /* so many random schedules instead of the search; 0: the search */
    uint32_t depth;  /* bound of a schedule's steps; 0: none */
    uint32_t padding;
    bp_runtime_rule rule; /* null: the scheduler's own */
    void *rule_data;
} bp_runtime_explore_options;

typedef struct {
    uint32_t verdict;  /* BP_RUNTIME_EXPLORE_* */
    uint32_t complete; /* 1: every order within the program was covered */
    uint32_t steps;    /* of the schedule found */
    uint32_t padding;
    uint64_t states, schedules;
} bp_runtime_explored;

/* Single-threaded and deterministic. `text` gets the shortest schedule found and who is stuck on
 * what, a line each, cut at `capacity`; `length` is the true one. */
int32_t bp_runtime_explore(const bp_runtime_program *program,
                           const bp_runtime_explore_options *options, bp_runtime_explored *out,
                           char *text, uint64_t capacity, uint64_t *length) BP_RUNTIME_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
