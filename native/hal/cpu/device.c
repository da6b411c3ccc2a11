/* Devices: open, close, losing; see device.h. */
#define _GNU_SOURCE
#include "device.h"

#include "futex.h"
#include "isa.h"
#include "pool.h"
#include "queue.h"
#include "retire.h"
#include "thread.h"

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

int32_t bp_device_alive(bp_device *device) {
    int32_t lost = atomic_load_explicit(&device->lost, memory_order_acquire);
    return lost ? bp_fail(lost, "%s", device->lost_text) : BP_OK;
}

void bp_device_lose(bp_device *device, const char *text) {
    pthread_mutex_lock(&device->lock);
    if (atomic_load_explicit(&device->lost, memory_order_relaxed) == 0) {
        snprintf(device->lost_text, sizeof(device->lost_text), "the device is lost: %.480s", text);
        atomic_store_explicit(&device->lost, BP_DEVICE_LOST, memory_order_release);
    }
    for (bp_object *object = device->objects; object; object = object->next)
        if (object->kind == BP_KIND_TIMELINE)
            bp_timeline_poison((bp_timeline_object *)object, BP_DEVICE_LOST, device->lost_text);
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
    return BP_OK;
}

void bp_device_remove(bp_device *device, bp_object *object) {
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
        device = calloc(1, sizeof(*device));
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

static int32_t set_up(bp_device *device) {
    const char *check = getenv("BEDPLATE_CHECK");
    device->objects = device->retired = device->retired_last = NULL;
    device->tickets = device->memory_used = 0;
    device->memory_total = bp_isa_memory();
    device->lost_text[0] = 0;
    device->check = check && strcmp(check, "1") == 0;
    atomic_store_explicit(&device->lost, 0, memory_order_relaxed);
    device->pool = bp_pool_create(device->threads);
    if (!device->pool)
        return bp_fail(BP_OUT_OF_MEMORY, "the system has no %u threads for the worker pool",
                       device->threads);
    int32_t status = bp_object_publish(&device->object, BP_KIND_DEVICE, NULL);
    if (status)
        bp_pool_destroy(device->pool);
    return status;
}

int32_t bp_device_open(uint32_t index, uint64_t *out) {
    int level = 0;
    uint32_t threads = 1;
    if (!out)
        return bp_fail(BP_INVALID_ARGUMENT, "core.open got no place for its result");
    if (index >= BP_DEVICE_COUNT)
        return bp_fail(BP_NOT_FOUND, "there is no device %u; this backend has %u", index,
                       BP_DEVICE_COUNT);
    int32_t status = bp_isa_chosen(&level);
    if (status == BP_OK)
        status = bp_isa_threads(&threads);
    if (status)
        return status;
    bp_device *device = take();
    if (!device)
        return bp_fail(BP_OUT_OF_MEMORY, "no host memory for a device");
    device->isa = level;
    device->threads = threads;
    status = set_up(device);
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
            bp_timeline_poison((bp_timeline_object *)object, BP_CANCELLED, "the device was closed");
    pthread_mutex_unlock(&device->lock);
    while (atomic_load_explicit(&device->users, memory_order_acquire))
        bp_yield();
    for (bp_object *object = device->objects, *next; object; object = next) {
        next = object->next;
        if (object->kind != BP_KIND_QUEUE)
            continue;
        bp_queue_stop((bp_queue_object *)object);
        pthread_mutex_lock(&device->lock);
        next = object->next;
        bp_device_remove(device, object);
        pthread_mutex_unlock(&device->lock);
        bp_object_withdraw(object);
        bp_queue_free((bp_queue_object *)object);
    }
}

static void release_all(bp_device *device) {
    pthread_mutex_lock(&device->lock);
    while (device->objects) {
        bp_object *object = device->objects;
        if (object->kind == BP_KIND_MODULE) {
            bp_module_object *module = (bp_module_object *)object;
            for (uint32_t i = 0; i < module->kernel_count; i++)
                if (module->kernels[i].object.handle)
                    bp_object_withdraw(&module->kernels[i].object);
        }
        bp_retire(device, object);
    }
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
    bp_pool_destroy(device->pool);
    put_back(device);
    return BP_OK;
}
