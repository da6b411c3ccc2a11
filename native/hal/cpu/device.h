/*
 * An open device: its lock, its objects, its worker pool, and whether it is lost.
 *
 * Every function of the tables brackets its work with bp_device_enter and bp_device_leave; close
 * waits for all of them. A device struct is recycled as a device only, so enter may look at one
 * that is being closed. Each open is a device of its own: losing one does not touch another.
 */
#ifndef BEDPLATE_HAL_CPU_DEVICE_H
#define BEDPLATE_HAL_CPU_DEVICE_H

#include "../error.h"
#include "object.h"

#include <pthread.h>
#include <stdatomic.h>

struct bp_pool;

typedef struct bp_device {
    bp_object object;
    _Atomic uint32_t users;
    /* 0, or the sticky BP_DEVICE_LOST. */
    _Atomic int32_t lost;
    pthread_mutex_t lock;
    /* All below: under the lock. */
    bp_object *objects;
    /* Released, still possibly used by work in flight; oldest first. */
    bp_object *retired, *retired_last;
    /* Batches submitted so far; also the ticket of the latest. */
    uint64_t tickets;
    uint64_t memory_used, memory_total;
    char lost_text[BP_ERROR_BYTES];
    int isa;
    uint32_t threads;
    int check;
    struct bp_pool *pool;
    struct bp_device *next_free;
} bp_device;

/* The open device of a handle, or null with a sentence. Pair with leave. */
bp_device *bp_device_enter(uint64_t handle);
void bp_device_leave(bp_device *device);

/* BP_OK, or BP_DEVICE_LOST with its sentence. */
int32_t bp_device_alive(bp_device *device);

/* Loses the device: sticky, all its timelines poisoned. Takes the lock. */
void bp_device_lose(bp_device *device, const char *text);

/* Puts a new object on the device's list and publishes it. Holds the lock. */
int32_t bp_device_add(bp_device *device, bp_object *object, bp_kind kind);

/* Takes it off the list. Holds the lock. */
void bp_device_remove(bp_device *device, bp_object *object);

/* core table */
int32_t bp_device_open(uint32_t index, uint64_t *out);
int32_t bp_device_close(uint64_t handle);

#define BP_DEVICE_COUNT 1u

#endif
