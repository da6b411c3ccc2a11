/* Queues; see queue.h. */
#include "queue.h"

#include "../chassis/host.h"
#include "../chassis/lifetime.h"
#include "../chassis/retire.h"
#include "../chassis/single.h"
#include "capture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum readiness { READY, KEPT, FAILED } readiness;

/* Whether the fences of a work are certain; for FAILED, the one that is poisoned in *by. */
static readiness look(const bp_work *work, bp_cuda_timeline **by) {
    readiness found = READY;
    for (uint32_t i = 0; i < work->wait_count; i++) {
        bp_cuda_timeline *timeline = (bp_cuda_timeline *)work->waits[i].timeline;
        if (bp_sticky_error(&timeline->sticky)) {
            *by = timeline;
            return FAILED;
        }
        if (atomic_load_explicit(&timeline->issued, memory_order_relaxed) < work->waits[i].value)
            found = KEPT;
    }
    return found;
}

static void poison_signals(const bp_work *work, int32_t status, const char *text) {
    for (uint32_t i = 0; i < work->signal_count; i++)
        bp_cuda_timeline_poison(work->signals[i].timeline, status, text);
}

static __attribute__((cold)) void fail(const bp_work *work, int32_t status, const char *text) {
    bp_host_log(BP_LOG_ERROR, text);
    poison_signals(work, status, text);
}

/* Lets the stream wait for what other streams will bring. */
static __attribute__((noinline)) int32_t issue_waits(bp_cuda_queue *queue, const bp_work *work) {
    for (uint32_t i = 0; i < work->wait_count; i++) {
        bp_cuda_timeline *timeline = (bp_cuda_timeline *)work->waits[i].timeline;
        uint64_t value = work->waits[i].value;
        /* The stream's own signal comes before by its order. */
        if (timeline->issuer == queue->object.handle || bp_cuda_timeline_look(timeline) >= value)
            continue;
        bp_cu_result result = bp_cuda_timeline_hold(timeline, queue, value);
        if (result) {
            bp_cuda_notice(queue->device, result);
            return bp_cuda_check(result, "a fence could not be waited for");
        }
    }
    return BP_OK;
}

static __attribute__((noinline)) void issue_signals(bp_cuda_queue *queue, const bp_work *work) {
    char text[BP_ERROR_BYTES];
    for (uint32_t i = 0; i < work->signal_count; i++) {
        bp_cuda_timeline *timeline = (bp_cuda_timeline *)work->signals[i].timeline;
        uint64_t value = work->signals[i].value;
        uint64_t issued = atomic_load_explicit(&timeline->issued, memory_order_relaxed);
        if (value <= issued) {
            snprintf(text, sizeof(text),
                     "batch %llu: a timeline at %llu cannot be signalled to %llu: it must grow",
                     (unsigned long long)work->tag, (unsigned long long)issued,
                     (unsigned long long)value);
            bp_cuda_timeline_poison(&timeline->object, BP_INVALID_ARGUMENT, text);
            continue;
        }
        bp_cu_result result = bp_cuda_timeline_issue(timeline, queue, value);
        if (result) {
            bp_cuda_notice(queue->device, result);
            bp_cuda_timeline_poison(&timeline->object,
                                    bp_cuda_check(result, "a signal could not be given"),
                                    bp_error_text());
        }
    }
}

/* What a node could not be put into its stream for. */
static __attribute__((cold)) void fail_node(const bp_work *work, const bp_node *node,
                                            int32_t status) {
    char why[BP_ERROR_BYTES], text[2 * BP_ERROR_BYTES];
    bp_error_copy(why, sizeof(why), NULL);
    bp_work_describe(work, node, status, why, text, sizeof(text));
    fail(work, status, text);
}

/* Whether all of it is in the stream; else its signals are poisoned. */
static int issue_nodes(bp_cuda_queue *queue, const bp_work *work) {
    for (uint32_t i = 0; i < work->node_count; i++) {
        int32_t status = bp_cuda_issue_node(queue->device, queue->stream, &work->nodes[i]);
        if (status) {
            fail_node(work, &work->nodes[i], status);
            return 0;
        }
    }
    return 1;
}

/* The same for the batch of a graph. */
static __attribute__((noinline)) int issue_graph(bp_cuda_queue *queue, const bp_work *work) {
    char text[2 * BP_ERROR_BYTES];
    int32_t status = bp_cuda_graph_issue(queue, work, text, sizeof(text));
    if (status)
        fail(work, status, text);
    return status == BP_OK;
}

static inline void issue(bp_cuda_queue *queue, const bp_work *work) {
    if (queue->issued == queue->done)
        queue->first_tag = work->tag;
    queue->last_tag = work->tag;
    queue->issued = work->ticket;
    /* Launches alone do without; see issue.c. */
    if (work->wait_count || work->signal_count || work->own)
        bp_cuda_current(queue->device);
    int32_t status = work->wait_count ? issue_waits(queue, work) : BP_OK;
    if (status)
        fail(work, status, bp_error_text());
    else if ((work->own ? issue_graph(queue, work) : issue_nodes(queue, work)) &&
             work->signal_count)
        issue_signals(queue, work);
}

void bp_cuda_queue_recycle(bp_cuda_queue *queue, bp_work *work) {
    if (!queue->spare) {
        queue->spare = work;
        return;
    }
    if (queue->spare && queue->spare->capacity >= work->capacity) {
        free(work);
        return;
    }
    free(queue->spare);
    queue->spare = work;
}

/* The queue's first kept work may be over in one way or another; whether it was. */
static int advance(bp_cuda_queue *queue) {
    char text[BP_ERROR_BYTES];
    bp_cuda_timeline *by = NULL;
    bp_work *work = queue->first;
    readiness state = work ? look(work, &by) : KEPT;
    if (state == KEPT)
        return 0;
    queue->first = work->next;
    if (!queue->first)
        queue->last = NULL;
    if (state == READY) {
        issue(queue, work);
    } else {
        snprintf(text, sizeof(text), "batch %llu: a fence it waited for failed: %.430s",
                 (unsigned long long)work->tag, by->sticky.text);
        fail(work, bp_sticky_error(&by->sticky), text);
    }
    bp_cuda_queue_recycle(queue, work);
    return 1;
}

void bp_cuda_pump(bp_cuda_device *device) {
    /* Issuing and poisoning come back here; the outermost call goes on until nothing moves. */
    if (device->pumping)
        return;
    device->pumping = 1;
    for (int moved = 1; moved;) {
        moved = 0;
        for (bp_cuda_queue *queue = device->queues; queue; queue = queue->next)
            while (advance(queue))
                moved = 1;
    }
    device->pumping = 0;
}

/* For a work with nothing before it and nothing to wait for: it is not put on the list. */
static void issue_now(bp_cuda_queue *queue, const bp_work *work) {
    issue(queue, work);
    /* Others may have waited for what it signals. */
    if (work->signal_count)
        bp_cuda_pump(queue->device);
}

void bp_cuda_queue_post(bp_cuda_queue *queue, bp_work *work) {
    work->ticket = ++queue->device->base.tickets;
    work->next = NULL;
    if (!queue->first && !work->wait_count) {
        issue_now(queue, work);
        bp_cuda_queue_recycle(queue, work);
        return;
    }
    if (queue->last)
        queue->last->next = work;
    else
        queue->first = work;
    queue->last = work;
    bp_cuda_pump(queue->device);
}

/* Moves `done` as far as the mark tells, and sets a mark where there is none. */
static void mark(bp_cuda_queue *queue) {
    if (queue->marked) {
        bp_cu_result result = bp_cu.event_query(queue->mark);
        if (result != BP_CU_SUCCESS) {
            bp_cuda_notice(queue->device, result);
            return;
        }
        queue->done = queue->marked;
        queue->marked = 0;
    }
    if (queue->issued == queue->done)
        return;
    bp_cu_result result = bp_cu.event_record(queue->mark, queue->stream);
    bp_cuda_notice(queue->device, result);
    if (result == BP_CU_SUCCESS) {
        queue->marked = queue->issued;
        /* Idle already, most likely. */
        if (bp_cu.event_query(queue->mark) == BP_CU_SUCCESS) {
            queue->done = queue->marked;
            queue->marked = 0;
        }
    }
}

/* Batches after `done` may be over; that makes the answer too small, never too large. */
uint64_t bp_cuda_queue_oldest(const bp_object *object) {
    bp_cuda_queue *queue = (bp_cuda_queue *)(uintptr_t)object;
    if (queue->issued != queue->done)
        mark(queue);
    /* After a fault nothing runs any more. */
    if (queue->issued != queue->done && !queue->device->sticky)
        return queue->done + 1;
    return queue->first ? queue->first->ticket : UINT64_MAX;
}

void bp_cuda_queue_stop(bp_object *object) {
    bp_cuda_queue *queue = (bp_cuda_queue *)object;
    bp_cuda_device *device = queue->device;
    pthread_mutex_lock(&device->base.lock);
    /* Taken off first: poison lets other batches go, and these must not be among them. */
    bp_work *kept = queue->first;
    queue->first = queue->last = NULL;
    for (bp_work *next; kept; kept = next) {
        next = kept->next;
        poison_signals(kept, BP_CANCELLED, "the queue was destroyed");
        free(kept);
    }
    for (bp_cuda_queue **link = &device->queues; *link; link = &(*link)->next)
        if (*link == queue) {
            *link = queue->next;
            break;
        }
    pthread_mutex_unlock(&device->base.lock);
    bp_cuda_current(device);
    bp_cuda_capture_drop(queue);
    bp_cuda_notice(device, bp_cu.stream_synchronize(queue->stream));
    bp_cuda_settle(device);
    queue->done = queue->issued;
    queue->marked = 0;
}

void bp_cuda_queue_free(bp_object *object) {
    bp_cuda_queue *queue = (bp_cuda_queue *)object;
    bp_cu.stream_destroy(queue->stream);
    bp_cu.event_destroy(queue->mark);
    free(queue->spare);
    free(queue);
}

/* The driver's lower numbers run first; ours do later, and 0 is its 0. */
static int priority_of(int32_t wanted) {
    int least = 0, greatest = 0;
    bp_cu.stream_priorities(&least, &greatest);
    int64_t own = -(int64_t)wanted;
    return (int)(own > least ? least : own < greatest ? greatest : own);
}

/* On the list before it has a handle, which is before anybody can use it. */
static int32_t make(bp_device *base, const bp_queue_info *info, bp_object **out) {
    bp_cuda_device *device = bp_cuda_device_of(base);
    bp_cuda_queue *queue = calloc(1, sizeof(*queue));
    if (!queue)
        return bp_fail(BP_OUT_OF_MEMORY, "no host memory for a queue");
    queue->device = device;
    bp_cuda_current(device);
    bp_cu_result result = bp_cu.event_create(&queue->mark, BP_CU_EVENT_DISABLE_TIMING);
    if (result == BP_CU_SUCCESS) {
        result = bp_cu.stream_create(&queue->stream, BP_CU_STREAM_NON_BLOCKING,
                                     priority_of(info->priority));
        if (result)
            bp_cu.event_destroy(queue->mark);
    }
    if (result) {
        free(queue);
        bp_cuda_notice(device, result);
        bp_cuda_settle(device);
        return bp_cuda_check(result, "making a queue");
    }
    pthread_mutex_lock(&base->lock);
    queue->next = device->queues;
    device->queues = queue;
    pthread_mutex_unlock(&base->lock);
    *out = &queue->object;
    return BP_OK;
}

static int32_t create(uint64_t handle, const bp_queue_info *info, uint64_t *out) {
    return bp_queue_create(handle, info, make, out);
}

static int32_t submit_locked(bp_cuda_device *device, bp_cuda_queue *queue, const bp_batch *batch) {
    int32_t status = BP_OK;
    if (device->base.retired) {
        bp_cuda_current(device);
        bp_retire_sweep(&device->base);
    }
    bp_single single;
    bp_work *work = NULL;
    if (!queue->first && !queue->capturing)
        work = bp_single_compile(&device->base, batch, &single);
    if (work) {
        work->ticket = ++device->base.tickets;
        issue_now(queue, work);
        return BP_OK;
    }
    work = bp_work_compile(&device->base, batch, &queue->spare, &status);
    if (!work)
        return status;
    if (queue->capturing)
        return bp_cuda_capture_record(queue, work);
    bp_cuda_queue_post(queue, work);
    return BP_OK;
}

static int32_t submit(uint64_t handle, uint64_t queue_handle, const bp_batch *batch) {
    bp_device *base = bp_device_lock(handle);
    if (!base)
        return BP_INVALID_ARGUMENT;
    bp_cuda_device *device = bp_cuda_device_of(base);
    int32_t status = bp_device_alive(base);
    if (status == BP_OK) {
        bp_cuda_queue *queue = bp_object_find(queue_handle, BP_KIND_QUEUE, device);
        status = queue ? submit_locked(device, queue, batch) : BP_INVALID_ARGUMENT;
    }
    bp_cuda_unlock(device);
    return status;
}

const bp_queue bp_cuda_queue_table = {
    .head = {1, sizeof(bp_queue)},
    .create = create,
    .submit = submit,
    /* What can run is in its stream already. */
    .flush = bp_queue_flush,
    .destroy = bp_queue_destroy,
};
