/* Timelines; see timeline.h for the contract. */
#include "timeline.h"

#include "../chassis/retire.h"
#include "queue.h"
#include "word.h"

#include <stdlib.h>

static void drop(bp_cuda_timeline *timeline) {
    bp_cuda_pending *oldest = timeline->first;
    timeline->first = oldest->next;
    bp_cuda_event_give(timeline->device, oldest);
}

uint64_t bp_cuda_timeline_look(bp_cuda_timeline *timeline) {
    uint64_t value = atomic_load_explicit(&timeline->value, memory_order_acquire);
    if (timeline->word) {
        uint64_t word = atomic_load_explicit(timeline->word, memory_order_acquire);
        return word > value ? word : value;
    }
    while (timeline->first) {
        bp_cu_result result = bp_cu.event_query(timeline->first->event);
        if (result != BP_CU_SUCCESS) {
            bp_cuda_notice(timeline->device, result);
            break;
        }
        if (timeline->first->value > value)
            value = timeline->first->value;
        atomic_store_explicit(&timeline->value, value, memory_order_release);
        drop(timeline);
    }
    return value;
}

static bp_cu_result record(bp_cuda_timeline *timeline, const bp_cuda_queue *queue, uint64_t value) {
    bp_cuda_pending *pending = bp_cuda_event_take(timeline->device);
    if (!pending)
        return BP_CU_OUT_OF_MEMORY;
    bp_cu_result result = bp_cu.event_record(pending->event, queue->stream);
    if (result) {
        bp_cuda_event_give(timeline->device, pending);
        return result;
    }
    pending->value = value;
    if (timeline->first)
        timeline->last->next = pending;
    else
        timeline->first = pending;
    timeline->last = pending;
    return result;
}

static bp_cu_result write_word(bp_cuda_timeline *timeline, const bp_cuda_queue *queue,
                               uint64_t value) {
    bp_cu_result result = bp_cu.stream_write_value(queue->stream, timeline->address, value,
                                                   BP_CU_STREAM_WRITE_VALUE_DEFAULT);
    /* A second queue may come to wait for it. */
    if (result || !timeline->device->queues->next)
        return result;
    uint64_t reached = bp_cuda_timeline_look(timeline);
    while (timeline->first && timeline->first->value <= reached)
        drop(timeline);
    return record(timeline, queue, value);
}

bp_cu_result bp_cuda_timeline_issue(bp_cuda_timeline *timeline, const bp_cuda_queue *queue,
                                    uint64_t value) {
    bp_cu_result result =
        timeline->word ? write_word(timeline, queue, value) : record(timeline, queue, value);
    if (result == BP_CU_SUCCESS) {
        timeline->issuer = queue->object.handle;
        atomic_store_explicit(&timeline->issued, value, memory_order_release);
    }
    return result;
}

/* A signal without an event, given before there was a second queue: everything that its queue has
 * by now is waited for. */
static bp_cu_result hold_tail(bp_cuda_timeline *timeline, const bp_cuda_queue *queue) {
    const bp_cuda_queue *issuer = timeline->device->queues;
    while (issuer && issuer->object.handle != timeline->issuer)
        issuer = issuer->next;
    /* It is being destroyed, and its stream runs empty. */
    if (!issuer)
        return bp_cu.context_synchronize();
    bp_cuda_pending *pending = bp_cuda_event_take(timeline->device);
    if (!pending)
        return BP_CU_OUT_OF_MEMORY;
    bp_cu_result result = bp_cu.event_record(pending->event, issuer->stream);
    if (result == BP_CU_SUCCESS)
        result = bp_cu.stream_wait_event(queue->stream, pending->event, 0);
    bp_cuda_event_give(timeline->device, pending);
    return result;
}

bp_cu_result bp_cuda_timeline_hold(bp_cuda_timeline *timeline, const bp_cuda_queue *queue,
                                   uint64_t value) {
    for (const bp_cuda_pending *one = timeline->first; one; one = one->next)
        if (one->value >= value)
            return bp_cu.stream_wait_event(queue->stream, one->event, 0);
    return hold_tail(timeline, queue);
}

void bp_cuda_timeline_poison(bp_object *object, int32_t status, const char *text) {
    bp_cuda_timeline *timeline = (bp_cuda_timeline *)object;
    if (bp_sticky_set(&timeline->sticky, status, text))
        bp_cuda_pump(timeline->device);
}

int bp_cuda_timeline_waited(const bp_object *timeline) {
    return ((const bp_cuda_timeline *)timeline)->sticky.waited != 0;
}

void bp_cuda_timeline_free(bp_cuda_timeline *timeline) {
    if (timeline->word)
        bp_cuda_word_give(timeline->device, timeline);
    while (timeline->first)
        drop(timeline);
    free(timeline);
}

static int32_t create_on(bp_cuda_device *device, uint64_t initial, uint64_t *out) {
    bp_cuda_timeline *timeline = calloc(1, sizeof(*timeline));
    if (!timeline)
        return bp_fail(BP_OUT_OF_MEMORY, "no host memory for a timeline");
    timeline->device = device;
    atomic_init(&timeline->value, initial);
    atomic_init(&timeline->issued, initial);
    pthread_mutex_lock(&device->base.lock);
    int32_t status = device->words ? bp_cuda_word_take(device, timeline) : BP_OK;
    if (status == BP_OK) {
        if (timeline->word)
            atomic_store_explicit(timeline->word, initial, memory_order_release);
        status = bp_device_add(&device->base, &timeline->object, BP_KIND_TIMELINE);
    }
    if (status == BP_OK)
        *out = timeline->object.handle;
    else
        bp_cuda_timeline_free(timeline);
    pthread_mutex_unlock(&device->base.lock);
    return status;
}

static int32_t create(uint64_t handle, uint64_t initial, uint64_t *out) {
    if (!out)
        return bp_fail(BP_INVALID_ARGUMENT, "timeline.create got no place for its result");
    bp_cuda_device *device = bp_cuda_enter(handle);
    if (!device)
        return BP_INVALID_ARGUMENT;
    int32_t status = bp_device_alive(&device->base);
    if (status == BP_OK)
        status = create_on(device, initial, out);
    bp_cuda_settle(device);
    bp_device_leave(&device->base);
    return status;
}

/* Under the lock. */
static int32_t advance(bp_cuda_timeline *timeline, uint64_t value) {
    uint64_t now = bp_cuda_timeline_look(timeline);
    uint64_t issued = atomic_load_explicit(&timeline->issued, memory_order_relaxed);
    if (issued > now)
        now = issued;
    if (value <= now)
        return bp_sticky_must_grow(now, value);
    atomic_store_explicit(&timeline->value, value, memory_order_release);
    atomic_store_explicit(&timeline->issued, value, memory_order_release);
    bp_sticky_changed(&timeline->sticky);
    bp_cuda_pump(timeline->device);
    return BP_OK;
}

static int32_t signal_host(uint64_t handle, uint64_t timeline_handle, uint64_t value) {
    bp_cuda_device *device = bp_cuda_enter(handle);
    if (!device)
        return BP_INVALID_ARGUMENT;
    int32_t status = BP_INVALID_ARGUMENT;
    pthread_mutex_lock(&device->base.lock);
    bp_cuda_timeline *timeline = bp_object_find(timeline_handle, BP_KIND_TIMELINE, device);
    if (timeline) {
        status = bp_sticky_error(&timeline->sticky);
        status =
            status ? bp_sticky_tell(&timeline->sticky, status, 0, value) : advance(timeline, value);
    }
    pthread_mutex_unlock(&device->base.lock);
    bp_cuda_settle(device);
    bp_device_leave(&device->base);
    return status;
}

static int32_t destroy(uint64_t handle, uint64_t timeline_handle) {
    bp_cuda_device *device = bp_cuda_enter(handle);
    if (!device)
        return BP_INVALID_ARGUMENT;
    pthread_mutex_lock(&device->base.lock);
    bp_cuda_timeline *timeline = bp_object_find(timeline_handle, BP_KIND_TIMELINE, device);
    if (timeline) {
        bp_cuda_timeline_poison(&timeline->object, BP_CANCELLED, "the timeline was destroyed");
        bp_retire(&device->base, &timeline->object);
    }
    pthread_mutex_unlock(&device->base.lock);
    bp_device_leave(&device->base);
    return timeline ? BP_OK : BP_INVALID_ARGUMENT;
}

const bp_timeline bp_cuda_timeline_table = {
    .head = {1, sizeof(bp_timeline)},
    .create = create,
    .signal = signal_host,
    .query = bp_cuda_timeline_query,
    .wait_host = bp_cuda_timeline_wait,
    .destroy = destroy,
};
