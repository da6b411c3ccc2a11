/*
 * Host timelines: a 64-bit value that only grows, with a sticky error; waiters sleep on a futex.
 *
 * For backends whose work is finished by host threads. Poison and waited fit
 * bp_driver. Needs nothing of the backend.
 *
 * Any thread may look and wait. Signalling and poisoning take the timeline's lock.
 */
#ifndef BEDPLATE_HAL_CHASSIS_TIMELINE_H
#define BEDPLATE_HAL_CHASSIS_TIMELINE_H

#include "device.h"
#include "sticky.h"

typedef struct bp_timeline_object {
    bp_object object;
    _Atomic uint64_t value;
    pthread_mutex_t lock;
    bp_sticky sticky;
} bp_timeline_object;

extern const bp_timeline bp_timeline_table;

/* The first error stays. */
void bp_timeline_poison(bp_object *timeline, int32_t status, const char *text);

/* Moves it to `value` and wakes; BP_INVALID_ARGUMENT when it would not grow. */
int32_t bp_timeline_advance(bp_timeline_object *timeline, uint64_t value);

/* Sleeps until value or poison or the deadline; BP_OK, the poison, or BP_DEADLINE. No sentence. */
int32_t bp_timeline_await(bp_timeline_object *timeline, uint64_t value, uint64_t deadline_ns);

/* Whether a host waiter is inside. Holds the device's lock. */
int bp_timeline_waited(const bp_object *timeline);
void bp_timeline_free(bp_timeline_object *timeline);

#endif
