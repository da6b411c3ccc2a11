/* Timelines: see timeline.h for the contract. */
#include "timeline.h"

#include "futex.h"
#include "retire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void changed(bp_timeline_object *timeline) {
    atomic_fetch_add_explicit(&timeline->sequence, 1, memory_order_seq_cst);
    if (atomic_load_explicit(&timeline->sleepers, memory_order_seq_cst))
        bp_futex_wake(&timeline->sequence, INT_MAX);
}

int32_t bp_timeline_advance(bp_timeline_object *timeline, uint64_t value) {
    pthread_mutex_lock(&timeline->lock);
    uint64_t now = atomic_load_explicit(&timeline->value, memory_order_relaxed);
    int32_t status = value > now ? BP_OK : BP_INVALID_ARGUMENT;
    if (status == BP_OK) {
        atomic_store_explicit(&timeline->value, value, memory_order_release);
        changed(timeline);
    }
    pthread_mutex_unlock(&timeline->lock);
    if (status)
        return bp_fail(status, "a timeline at %llu cannot be signalled to %llu: it must grow",
                       (unsigned long long)now, (unsigned long long)value);
    return BP_OK;
}

void bp_timeline_poison(bp_object *object, int32_t status, const char *text) {
    bp_timeline_object *timeline = (bp_timeline_object *)object;
    pthread_mutex_lock(&timeline->lock);
    if (atomic_load_explicit(&timeline->error, memory_order_relaxed) == 0) {
        snprintf(timeline->text, sizeof(timeline->text), "%s", text);
        atomic_store_explicit(&timeline->error, status, memory_order_release);
        changed(timeline);
    }
    pthread_mutex_unlock(&timeline->lock);
}

static int32_t state(bp_timeline_object *timeline, uint64_t value) {
    int32_t error = atomic_load_explicit(&timeline->error, memory_order_acquire);
    if (error)
        return error;
    return atomic_load_explicit(&timeline->value, memory_order_acquire) >= value ? BP_OK
                                                                                 : BP_DEADLINE;
}

int32_t bp_timeline_await(bp_timeline_object *timeline, uint64_t value, uint64_t deadline_ns) {
    int32_t status = state(timeline, value);
    if (status != BP_DEADLINE)
        return status;
    atomic_fetch_add_explicit(&timeline->sleepers, 1, memory_order_seq_cst);
    for (;;) {
        uint32_t seen = atomic_load_explicit(&timeline->sequence, memory_order_seq_cst);
        status = state(timeline, value);
        if (status != BP_DEADLINE || bp_now_ns() >= deadline_ns)
            break;
        bp_futex_wait(&timeline->sequence, seen, deadline_ns);
    }
    atomic_fetch_sub_explicit(&timeline->sleepers, 1, memory_order_seq_cst);
    return status;
}

int bp_timeline_waited(const bp_object *timeline) {
    return ((const bp_timeline_object *)timeline)->waited != 0;
}

void bp_timeline_free(bp_timeline_object *timeline) {
    pthread_mutex_destroy(&timeline->lock);
    free(timeline);
}

static int32_t create(uint64_t handle, uint64_t initial, uint64_t *out) {
    if (!out)
        return bp_fail(BP_INVALID_ARGUMENT, "timeline.create got no place for its result");
    bp_device *device = bp_device_enter(handle);
    if (!device)
        return BP_INVALID_ARGUMENT;
    int32_t status = bp_device_alive(device);
    bp_timeline_object *timeline = status ? NULL : calloc(1, sizeof(*timeline));
    if (!status && !timeline)
        status = bp_fail(BP_OUT_OF_MEMORY, "no host memory for a timeline");
    if (timeline) {
        atomic_init(&timeline->value, initial);
        pthread_mutex_init(&timeline->lock, NULL);
        pthread_mutex_lock(&device->lock);
        status = bp_device_add(device, &timeline->object, BP_KIND_TIMELINE);
        if (status)
            bp_timeline_free(timeline);
        else
            *out = timeline->object.handle;
        pthread_mutex_unlock(&device->lock);
    }
    bp_device_leave(device);
    return status;
}

/* Looks it up and holds it against release; null with a sentence. Pair with let_go. */
static bp_timeline_object *hold(bp_device *device, uint64_t handle) {
    pthread_mutex_lock(&device->lock);
    bp_timeline_object *timeline = bp_object_find(handle, BP_KIND_TIMELINE, device);
    if (timeline)
        timeline->waited++;
    pthread_mutex_unlock(&device->lock);
    return timeline;
}

static void let_go(bp_device *device, bp_timeline_object *timeline) {
    pthread_mutex_lock(&device->lock);
    if (--timeline->waited == 0 && device->retired)
        bp_retire_sweep(device);
    pthread_mutex_unlock(&device->lock);
}

/* The sentence for what state() or await found. */
static int32_t tell(bp_timeline_object *timeline, int32_t status, uint64_t value) {
    if (status == BP_OK)
        return status;
    if (atomic_load_explicit(&timeline->error, memory_order_acquire))
        return bp_fail(status, "%s", timeline->text);
    uint64_t now = atomic_load_explicit(&timeline->value, memory_order_acquire);
    return bp_fail(status, "a timeline is at %llu and did not reach %llu before the deadline",
                   (unsigned long long)now, (unsigned long long)value);
}

static int32_t signal_host(uint64_t handle, uint64_t timeline_handle, uint64_t value) {
    bp_device *device = bp_device_enter(handle);
    if (!device)
        return BP_INVALID_ARGUMENT;
    int32_t status = BP_INVALID_ARGUMENT;
    bp_timeline_object *timeline = hold(device, timeline_handle);
    if (timeline) {
        status = atomic_load_explicit(&timeline->error, memory_order_acquire);
        status = status ? tell(timeline, status, value) : bp_timeline_advance(timeline, value);
        let_go(device, timeline);
    }
    bp_device_leave(device);
    return status;
}

static int32_t query(uint64_t handle, uint64_t timeline_handle, uint64_t *value) {
    if (!value)
        return bp_fail(BP_INVALID_ARGUMENT, "timeline.query got no place for its result");
    bp_device *device = bp_device_enter(handle);
    if (!device)
        return BP_INVALID_ARGUMENT;
    int32_t status = BP_INVALID_ARGUMENT;
    bp_timeline_object *timeline = hold(device, timeline_handle);
    if (timeline) {
        *value = atomic_load_explicit(&timeline->value, memory_order_acquire);
        status = atomic_load_explicit(&timeline->error, memory_order_acquire);
        tell(timeline, status, *value);
        let_go(device, timeline);
    }
    bp_device_leave(device);
    return status;
}

static int32_t wait_host(uint64_t handle, uint64_t timeline_handle, uint64_t value,
                         uint64_t deadline_ns) {
    bp_device *device = bp_device_enter(handle);
    if (!device)
        return BP_INVALID_ARGUMENT;
    int32_t status = BP_INVALID_ARGUMENT;
    bp_timeline_object *timeline = hold(device, timeline_handle);
    if (timeline) {
        status = bp_timeline_await(timeline, value, deadline_ns);
        tell(timeline, status, value);
        let_go(device, timeline);
    }
    bp_device_leave(device);
    return status;
}

static int32_t destroy(uint64_t handle, uint64_t timeline_handle) {
    bp_device *device = bp_device_enter(handle);
    if (!device)
        return BP_INVALID_ARGUMENT;
    pthread_mutex_lock(&device->lock);
    bp_timeline_object *timeline = bp_object_find(timeline_handle, BP_KIND_TIMELINE, device);
    if (timeline) {
        bp_timeline_poison(&timeline->object, BP_CANCELLED, "the timeline was destroyed");
        bp_retire(device, &timeline->object);
    }
    pthread_mutex_unlock(&device->lock);
    bp_device_leave(device);
    return timeline ? BP_OK : BP_INVALID_ARGUMENT;
}

const bp_timeline bp_timeline_table = {
    .head = {1, sizeof(bp_timeline)},
    .create = create,
    .signal = signal_host,
    .query = query,
    .wait_host = wait_host,
    .destroy = destroy,
};
