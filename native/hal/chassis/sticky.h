/*
 * What every timeline has beside its value: an error that stays, and sleepers that are told of a
 * change.
 *
 * Who moves a value, and under which lock, is the timeline's own matter; setting the error wants
 * the same lock. Anybody may look. The sequence changes with each change, so a sleeper that read it
 * before cannot sleep through. Needs nothing of the backend.
 */
#ifndef BEDPLATE_HAL_CHASSIS_STICKY_H
#define BEDPLATE_HAL_CHASSIS_STICKY_H

#include "../error.h"

#include <stdatomic.h>

typedef struct bp_sticky {
    _Atomic uint32_t sequence, sleepers;
    /* 0, or the status it is poisoned with; the text is written before. */
    _Atomic int32_t error;
    /* Host waiters inside; under the device's lock. */
    uint32_t waited;
    char text[BP_ERROR_BYTES];
} bp_sticky;

static inline int32_t bp_sticky_error(const bp_sticky *sticky) {
    return atomic_load_explicit(&sticky->error, memory_order_acquire);
}

/* Wakes who sleeps on the sequence: the value moved, or the error came. */
void bp_sticky_changed(bp_sticky *sticky);

/* Poisons and wakes; whether this was the first error, which is the one that stays. */
int bp_sticky_set(bp_sticky *sticky, int32_t status, const char *text);

/* BP_OK, or what a look or a wait found with its sentence: the poison's, or that a timeline at
 * `now` did not reach `value`. */
int32_t bp_sticky_tell(const bp_sticky *sticky, int32_t status, uint64_t now, uint64_t value);

/* The sentence for a timeline at `now` that would not grow; BP_INVALID_ARGUMENT. */
int32_t bp_sticky_must_grow(uint64_t now, uint64_t value);

#endif
