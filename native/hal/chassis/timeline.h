/*
 * Host timelines: a 64-bit value that only grows, with a sticky error; waiters sleep on a futex.
 *
 * For backends whose work is finished by host threads. Poison and waited fit
 * bp_driver. Needs nothing of the backend.
 *
 * Any thread may look and wait. Signalling and poisoning take the timeline's lock; the sequence
 * word changes with each, so a waiter that read before cannot sleep through.
 */
#ifndef BEDPLATE_HAL_CHASSIS_TIMELINE_H
#define BEDPLATE_HAL_CHASSIS_TIMELINE_H

#include "device.h"

typedef struct bp_timeline_object {
    bp_object object;
    _Atomic uint64_t value;
    _Atomic uint32_t sequence;
    _Atomic uint32_t sleepers;
    /* 0, or the status it is poisoned with. */
    _Atomic int32_t error;
    /* Host waiters inside wait_host; under the device's lock. */
    uint32_t waited;
    pthread_mutex_t lock;
    char text[BP_ERROR_BYTES];
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
