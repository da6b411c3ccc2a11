/*
 * An open device: its lock, its objects, its limits, and whether it is lost.
 *
 * Every function of the tables brackets its work with bp_device_enter and bp_device_leave; close
 * waits for all of them. A device struct is recycled as a device only, so enter may look at one
 * that is being closed. Each open is a device of its own: losing one does not touch another.
 */
#ifndef BEDPLATE_HAL_CHASSIS_DEVICE_H
#define BEDPLATE_HAL_CHASSIS_DEVICE_H

#include "../error.h"
#include "driver.h"

#include <pthread.h>
#include <stdatomic.h>

/* What launches and commands are held to; set by bp_driver.open. */
typedef struct bp_limits {
    /* Most dynamic shared memory; 0 refuses any as BP_UNSUPPORTED. */
    uint32_t max_shared_bytes;
    /* Most blocks of a cluster; 0 refuses clusters as BP_UNSUPPORTED. */
    uint32_t max_cluster_blocks;
    /* Whether the timestamp command works. */
    int timestamp;
} bp_limits;

/* First member of a backend's own device struct. */
typedef struct bp_device {
    bp_object object;
    _Atomic uint32_t users;
    /* 0, or the sticky BP_DEVICE_LOST. */
    _Atomic int32_t lost;
    pthread_mutex_t lock;
    /* All below: under the lock. */
    bp_object *objects;
    /* How many of them are queues. */
    uint32_t queue_count;
    /* Released, still possibly used by work in flight; oldest first. */
    bp_object *retired, *retired_last;
    /* Batches submitted so far; also the ticket of the latest. */
    uint64_t tickets;
    uint64_t memory_used, memory_total;
    char lost_text[BP_ERROR_BYTES];
    /* Set at open: the index, and whether BEDPLATE_CHECK=1 asks for invariants and junk. */
    uint32_t index;
    int check;
    bp_limits limits;
    struct bp_device *next_free;
} bp_device;

/* The open device of a handle, or null with a sentence. Pair with leave. */
bp_device *bp_device_enter(uint64_t handle);
/* The same for a device that is not lost; null with its status and a sentence. */
bp_device *bp_device_enter_alive(uint64_t handle, int32_t *status);
void bp_device_leave(bp_device *device);

/* The open device of a handle with its lock held, or null with a sentence. For a call that does all
 * of its work under the lock: it need not be counted, because close takes the handle away under the
 * lock too. Pair with bp_device_unlock, after which the device is not touched. */
bp_device *bp_device_lock(uint64_t handle);
void bp_device_unlock(bp_device *device);

/* The sentence of a lost device; BP_DEVICE_LOST. */
int32_t bp_device_tell_lost(const bp_device *device) __attribute__((cold));

/* BP_OK, or BP_DEVICE_LOST with its sentence. */
static inline int32_t bp_device_alive(const bp_device *device) {
    return atomic_load_explicit(&device->lost, memory_order_acquire) ? bp_device_tell_lost(device)
                                                                     : BP_OK;
}

/* Loses the device: sticky, all its timelines poisoned. Takes the lock. */
void bp_device_lose(bp_device *device, const char *text);

/* Puts a new object on the device's list and publishes it. Holds the lock. */
int32_t bp_device_add(bp_device *device, bp_object *object, bp_kind kind);

/* The same for a caller without the lock, who is given the handle; from then on another may
 * release it. */
int32_t bp_device_give(bp_device *device, bp_object *object, bp_kind kind, uint64_t *out);

/* Takes it off the list. Holds the lock. */
void bp_device_remove(bp_device *device, bp_object *object);

/* BP_OK, or BP_NOT_FOUND with a sentence, for an index the driver may not have. */
int32_t bp_device_index(uint32_t index);

/* core table */
int32_t bp_device_open(uint32_t index, uint64_t *out);
int32_t bp_device_close(uint64_t handle);

#endif
