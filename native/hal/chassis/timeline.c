/* Timelines: see timeline.h for the contract. */
#include "timeline.h"

#include "futex.h"
#include "retire.h"
#include "visit.h"

#include <stdlib.h>

int32_t bp_timeline_advance(bp_timeline_object *timeline, uint64_t value) {
    pthread_mutex_lock(&timeline->lock);
    uint64_t now = atomic_load_explicit(&timeline->value, memory_order_relaxed);
    int32_t status = value > now ? BP_OK : BP_INVALID_ARGUMENT;
    if (status == BP_OK) {
        atomic_store_explicit(&timeline->value, value, memory_order_release);
        bp_sticky_changed(&timeline->sticky);
    }
    pthread_mutex_unlock(&timeline->lock);
    return status ? bp_sticky_must_grow(now, value) : BP_OK;
}

void bp_timeline_poison(bp_object *object, int32_t status, const char *text) {
    bp_timeline_object *timeline = (bp_timeline_object *)object;
    pthread_mutex_lock(&timeline->lock);
    bp_sticky_set(&timeline->sticky, status, text);
    pthread_mutex_unlock(&timeline->lock);
}

static int32_t state(bp_timeline_object *timeline, uint64_t value) {
    int32_t error = bp_sticky_error(&timeline->sticky);
    if (error)
        return error;
    return atomic_load_explicit(&timeline->value, memory_order_acquire) >= value ? BP_OK
                                                                                 : BP_DEADLINE;
}

int32_t bp_timeline_await(bp_timeline_object *timeline, uint64_t value, uint64_t deadline_ns) {
    int32_t status = state(timeline, value);
    if (status != BP_DEADLINE)
        return status;
    atomic_fetch_add_explicit(&timeline->sticky.sleepers, 1, memory_order_seq_cst);
    for (;;) {
        uint32_t seen = atomic_load_explicit(&timeline->sticky.sequence, memory_order_seq_cst);
        status = state(timeline, value);
        if (status != BP_DEADLINE || bp_now_ns() >= deadline_ns)
            break;
        bp_futex_wait(&timeline->sticky.sequence, seen, deadline_ns);
    }
    atomic_fetch_sub_explicit(&timeline->sticky.sleepers, 1, memory_order_seq_cst);
    return status;
}

int bp_timeline_waited(const bp_object *timeline) {
    return ((const bp_timeline_object *)timeline)->sticky.waited != 0;
}

void bp_timeline_free(bp_timeline_object *timeline) {
    pthread_mutex_destroy(&timeline->lock);
    free(timeline);
}

static int32_t create(uint64_t handle, uint64_t initial, uint64_t *out) {
    if (!out)
        return bp_fail(BP_INVALID_ARGUMENT, "timeline.create got no place for its result");
    int32_t status = BP_OK;
    bp_device *device = bp_device_enter_alive(handle, &status);
    if (!device)
        return status;
    bp_timeline_object *timeline = calloc(1, sizeof(*timeline));
    if (!timeline)
        status = bp_fail(BP_OUT_OF_MEMORY, "no host memory for a timeline");
    if (timeline) {
        atomic_init(&timeline->value, initial);
        pthread_mutex_init(&timeline->lock, NULL);
        status = bp_device_give(device, &timeline->object, BP_KIND_TIMELINE, out);
        if (status)
            bp_timeline_free(timeline);
    }
    bp_device_leave(device);
    return status;
}

/* A visit that gives the lock back, so that others may move the timeline, and holds it against
 * release. Pair with let_go when BP_OK. */
static int32_t hold(bp_visit *visit, uint64_t device, uint64_t handle) {
    int32_t status = bp_visit_begin(visit, device, handle, BP_KIND_TIMELINE);
    if (status == BP_OK) {
        ((bp_timeline_object *)visit->object)->sticky.waited++;
        bp_visit_unlock(visit);
    }
    return status;
}

static void let_go(bp_visit *visit) {
    pthread_mutex_lock(&visit->device->lock);
    if (--((bp_timeline_object *)visit->object)->sticky.waited == 0 && visit->device->retired)
        bp_retire_sweep(visit->device);
    bp_visit_end(visit);
}

/* The sentence for what state() or await found. */
static int32_t tell(bp_timeline_object *timeline, int32_t status, uint64_t value) {
    uint64_t now = atomic_load_explicit(&timeline->value, memory_order_acquire);
    return bp_sticky_tell(&timeline->sticky, status, now, value);
}

static int32_t signal_host(uint64_t device, uint64_t handle, uint64_t value) {
    bp_visit visit;
    int32_t status = hold(&visit, device, handle);
    if (status)
        return status;
    bp_timeline_object *timeline = visit.object;
    status = bp_sticky_error(&timeline->sticky);
    status = status ? tell(timeline, status, value) : bp_timeline_advance(timeline, value);
    let_go(&visit);
    return status;
}

static int32_t query(uint64_t device, uint64_t handle, uint64_t *value) {
    bp_visit visit;
    if (!value)
        return bp_fail(BP_INVALID_ARGUMENT, "timeline.query got no place for its result");
    int32_t status = hold(&visit, device, handle);
    if (status)
        return status;
    bp_timeline_object *timeline = visit.object;
    *value = atomic_load_explicit(&timeline->value, memory_order_acquire);
    status = bp_sticky_error(&timeline->sticky);
    tell(timeline, status, *value);
    let_go(&visit);
    return status;
}

static int32_t wait_host(uint64_t device, uint64_t handle, uint64_t value, uint64_t deadline_ns) {
    bp_visit visit;
    int32_t status = hold(&visit, device, handle);
    if (status)
        return status;
    status = bp_timeline_await(visit.object, value, deadline_ns);
    tell(visit.object, status, value);
    let_go(&visit);
    return status;
}

static int32_t destroy(uint64_t device, uint64_t handle) {
    bp_visit visit;
    int32_t status = bp_visit_begin(&visit, device, handle, BP_KIND_TIMELINE);
    if (status == BP_OK) {
        bp_timeline_poison(visit.object, BP_CANCELLED, "the timeline was destroyed");
        bp_retire(visit.device, visit.object);
        bp_visit_end(&visit);
    }
    return status;
}

const bp_timeline bp_timeline_table = {
    .head = {1, sizeof(bp_timeline)},
    .create = create,
    .signal = signal_host,
    .query = query,
    .wait_host = wait_host,
    .destroy = destroy,
};
