/*
 * Timelines that the device moves: a 64-bit value that only grows, with a sticky error.
 *
 * Two ways for the device to signal, chosen at open (BEDPLATE_HAL_CUDA_TIMELINES, else by the
 * device). On words the stream writes the value into pinned host memory, and looking is a load. On
 * events the stream records one, and looking asks the driver. `value` is what is known to be
 * reached; `issued` is what it will reach without the host, because work that is already in a
 * stream will signal it. Only such values are waited for on a stream, so no stream ever depends on
 * the host; see queue.h.
 *
 * A stream waits for events on either way, never for a word: while a stream waits for a word the
 * driver tells of no fault (tests/hal/native/cuda/contract_fault.c), so the word of work that
 * failed would be waited for without end. On words an event is recorded behind a signal only when
 * there is another queue that could wait for it.
 */
#ifndef BEDPLATE_HAL_CUDA_TIMELINE_H
#define BEDPLATE_HAL_CUDA_TIMELINE_H

#include "../chassis/sticky.h"
#include "device.h"

struct bp_cuda_queue;

/* An event behind a signal in flight, or one of the device's stock. */
typedef struct bp_cuda_pending {
    struct bp_cuda_pending *next;
    uint64_t value;
    bp_cu_event event;
} bp_cuda_pending;

typedef struct bp_cuda_timeline {
    bp_object object;
    bp_cuda_device *device;
    /* What the device writes, and its address there; null on events. */
    _Atomic uint64_t *word;
    bp_cu_address address;
    _Atomic uint64_t value;
    _Atomic uint64_t issued;
    /* Handle of the queue of the latest issued signal; under the device's lock. */
    uint64_t issuer;
    /* Events behind signals in flight, oldest first; under the device's lock. */
    bp_cuda_pending *first, *last;
    /* Told of signals of the host and of poison, not of what the device does. */
    bp_sticky sticky;
} bp_cuda_timeline;

extern const bp_timeline bp_cuda_timeline_table;

int32_t bp_cuda_timelines_open(bp_cuda_device *device);
void bp_cuda_timelines_close(bp_cuda_device *device);

/* An event without timing from the device's stock, or null; and back into it, also while a stream
 * still waits for it. Under the lock. */
bp_cuda_pending *bp_cuda_event_take(bp_cuda_device *device);
void bp_cuda_event_give(bp_cuda_device *device, bp_cuda_pending *pending);

/* The value that is reached now. Under the lock on events; anywhere on words. */
uint64_t bp_cuda_timeline_look(bp_cuda_timeline *timeline);

/* Puts a signal behind what the stream of `queue` has; the value must be above `issued`. Under the
 * lock. */
bp_cu_result bp_cuda_timeline_issue(bp_cuda_timeline *timeline, const struct bp_cuda_queue *queue,
                                    uint64_t value);

/* Lets the stream of `queue` wait for a value that is issued and not reached. Under the lock. */
bp_cu_result bp_cuda_timeline_hold(bp_cuda_timeline *timeline, const struct bp_cuda_queue *queue,
                                   uint64_t value);

/* wait.c: looks and waits of the host, as the timeline table wants them. */
int32_t bp_cuda_timeline_query(uint64_t device, uint64_t timeline, uint64_t *value);
int32_t bp_cuda_timeline_wait(uint64_t device, uint64_t timeline, uint64_t value,
                              uint64_t deadline_ns);

/* What bp_driver wants. Poison also lets batches go that waited for it. Under the lock. */
void bp_cuda_timeline_poison(bp_object *timeline, int32_t status, const char *text);
int bp_cuda_timeline_waited(const bp_object *timeline);
void bp_cuda_timeline_free(bp_cuda_timeline *timeline);

#endif
