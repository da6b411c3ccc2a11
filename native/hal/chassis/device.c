/* Devices: open, close, losing; see device.h. */
#define _GNU_SOURCE
#include "device.h"

#include "retire.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t free_lock = PTHREAD_MUTEX_INITIALIZER;
static bp_device *first_free;

bp_device *bp_device_enter(uint64_t handle) {
    bp_device *device = bp_object_find(handle, BP_KIND_DEVICE, NULL);
    if (!device)
        return NULL;
    atomic_fetch_add_explicit(&device->users, 1, memory_order_seq_cst);
    /* It may have been closed, even opened anew, before we counted. */
    if (bp_object_find(handle, BP_KIND_DEVICE, NULL) == device)
        return device;
    bp_device_leave(device);
    return NULL;
}

void bp_device_leave(bp_device *device) {
    atomic_fetch_sub_explicit(&device->users, 1, memory_order_release);
}

bp_device *bp_device_lock(uint64_t handle) {
    bp_device *device = bp_object_find(handle, BP_KIND_DEVICE, NULL);
    if (!device)
        return NULL;
    pthread_mutex_lock(&device->lock);
    /* It may have been closed, even opened anew, before we had the lock. */
    if (bp_object_find(handle, BP_KIND_DEVICE, NULL) == device)
        return device;
    pthread_mutex_unlock(&device->lock);
    return NULL;
}

void bp_device_unlock(bp_device *device) {
    pthread_mutex_unlock(&device->lock);
}

int32_t bp_device_tell_lost(const bp_device *device) {
    return bp_fail(BP_DEVICE_LOST, "%s", device->lost_text);
}

bp_device *bp_device_enter_alive(uint64_t handle, int32_t *status) {
    bp_device *device = bp_device_enter(handle);
    *status = device ? bp_device_alive(device) : BP_INVALID_ARGUMENT;
    if (!device || *status == BP_OK)
        return device;
    bp_device_leave(device);
    return NULL;
}

void bp_device_lose(bp_device *device, const char *text) {
    pthread_mutex_lock(&device->lock);
    if (atomic_load_explicit(&device->lost, memory_order_relaxed) == 0) {
        snprintf(device->lost_text, sizeof(device->lost_text), "the device is lost: %.480s", text);
        atomic_store_explicit(&device->lost, BP_DEVICE_LOST, memory_order_release);
    }
    for (bp_object *object = device->objects; object; object = object->next)
        if (object->kind == BP_KIND_TIMELINE)
            bp_driver_own.poison(object, BP_DEVICE_LOST, device->lost_text);
    pthread_mutex_unlock(&device->lock);
}

int32_t bp_device_add(bp_device *device, bp_object *object, bp_kind kind) {
    int32_t status = bp_object_publish(object, kind, device);
    if (status)
        return status;
    object->previous = NULL;
    object->next = device->objects;
    if (object->next)
        object->next->previous = object;
    device->objects = object;
    device->queue_count += kind == BP_KIND_QUEUE;
    return BP_OK;
}

int32_t bp_device_give(bp_device *device, bp_object *object, bp_kind kind, uint64_t *out) {
    pthread_mutex_lock(&device->lock);
    int32_t status = bp_device_add(device, object, kind);
    if (status == BP_OK)
        *out = object->handle;
    pthread_mutex_unlock(&device->lock);
    return status;
}

void bp_device_remove(bp_device *device, bp_object *object) {
    device->queue_count -= object->kind == BP_KIND_QUEUE;
    if (object->previous)
        object->previous->next = object->next;
    else
        device->objects = object->next;
    if (object->next)
        object->next->previous = object->previous;
    object->next = object->previous = NULL;
}

/* A device struct that nobody uses: recycled or new. */
static bp_device *take(void) {
    pthread_mutex_lock(&free_lock);
    bp_device *device = first_free;
    if (device)
        first_free = device->next_free;
    pthread_mutex_unlock(&free_lock);
    if (!device) {
        device = calloc(1, bp_driver_own.device_bytes);
        if (device)
            pthread_mutex_init(&device->lock, NULL);
    }
    return device;
}

static void put_back(bp_device *device) {
    pthread_mutex_lock(&free_lock);
    device->next_free = first_free;
    first_free = device;
    pthread_mutex_unlock(&free_lock);
}

static int32_t set_up(bp_device *device, uint32_t index) {
    const char *check = getenv("BEDPLATE_CHECK");
    device->objects = device->retired = device->retired_last = NULL;
    device->tickets = device->memory_used = device->memory_total = 0;
    device->queue_count = 0;
    device->lost_text[0] = 0;
    device->index = index;
    device->check = check && strcmp(check, "1") == 0;
    device->limits = (bp_limits){0};
    atomic_store_explicit(&device->lost, 0, memory_order_relaxed);
    /* What is behind belongs to the backend; enter never looks there. */
    memset(device + 1, 0, bp_driver_own.device_bytes - sizeof(*device));
    int32_t status = bp_driver_own.open(device, index);
    if (status)
        return status;
    status = bp_object_publish(&device->object, BP_KIND_DEVICE, NULL);
    if (status)
        bp_driver_own.close(device);
    return status;
}

int32_t bp_device_index(uint32_t index) {
    uint32_t count = 0;
    int32_t status = bp_driver_own.count(&count);
    if (status == BP_OK && index >= count)
        status = bp_fail(BP_NOT_FOUND, "there is no device %u; this backend has %u", index, count);
    return status;
}

int32_t bp_device_open(uint32_t index, uint64_t *out) {
    if (!out)
        return bp_fail(BP_INVALID_ARGUMENT, "core.open got no place for its result");
    int32_t status = bp_device_index(index);
    if (status)
        return status;
    bp_device *device = take();
    if (!device)
        return bp_fail(BP_OUT_OF_MEMORY, "no host memory for a device");
    status = set_up(device, index);
    if (status)
        put_back(device);
    else
        *out = device->object.handle;
    return status;
}

/* Wakes host waiters and ends queues; the device's handle is already stale. */
static void quiet(bp_device *device) {
    pthread_mutex_lock(&device->lock);
    for (bp_object *object = device->objects; object; object = object->next)
        if (object->kind == BP_KIND_TIMELINE)
            bp_driver_own.poison(object, BP_CANCELLED, "the device was closed");
    pthread_mutex_unlock(&device->lock);
    while (atomic_load_explicit(&device->users, memory_order_seq_cst))
        sched_yield();
    for (bp_object *object = device->objects, *next; object; object = next) {
        next = object->next;
        if (object->kind != BP_KIND_QUEUE)
            continue;
        bp_driver_own.stop(object);
        pthread_mutex_lock(&device->lock);
        next = object->next;
        bp_device_remove(device, object);
        pthread_mutex_unlock(&device->lock);
        bp_object_withdraw(object);
        bp_driver_own.free_queue(object);
    }
}

static void release_all(bp_device *device) {
    pthread_mutex_lock(&device->lock);
    while (device->objects)
        bp_retire(device, device->objects);
    bp_retire_sweep(device);
    pthread_mutex_unlock(&device->lock);
}

int32_t bp_device_close(uint64_t handle) {
    bp_device *device = bp_device_enter(handle);
    if (!device)
        return BP_INVALID_ARGUMENT;
    pthread_mutex_lock(&device->lock);
    int mine = bp_object_find(handle, BP_KIND_DEVICE, NULL) == device;
    if (mine)
        bp_object_withdraw(&device->object);
    pthread_mutex_unlock(&device->lock);
    bp_device_leave(device);
    if (!mine)
        return BP_INVALID_ARGUMENT;
    quiet(device);
    release_all(device);
    bp_driver_own.close(device);
    put_back(device);
    return BP_OK;
}
