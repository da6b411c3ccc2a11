/* Queues and their executor threads; see queue.h. */
#include "queue.h"

#include "capture.h"
#include "futex.h"
#include "lifetime.h"
#include "retire.h"
#include "thread.h"

#include <sched.h>
#include <stdlib.h>

uint64_t bp_queue_oldest(const bp_object *queue) {
    return ((const bp_queue_object *)queue)->oldest;
}

static bp_work *pop(bp_queue_object *queue) {
    pthread_mutex_lock(&queue->lock);
    bp_work *work = queue->first;
    if (work) {
        queue->first = work->next;
        if (!queue->first)
            queue->last = NULL;
    }
    pthread_mutex_unlock(&queue->lock);
    return work;
}

/* The batch is over: others may now free what it knew. */
static void finish(bp_device *device, bp_queue_object *queue, bp_work *work) {
    pthread_mutex_lock(&device->lock);
    pthread_mutex_lock(&queue->lock);
    queue->oldest = queue->first ? queue->first->ticket : UINT64_MAX;
    bp_work *extra = work;
    if (!queue->spare || queue->spare->capacity < work->capacity) {
        extra = queue->spare;
        queue->spare = work;
    }
    pthread_mutex_unlock(&queue->lock);
    if (device->retired)
        bp_retire_sweep(device);
    pthread_mutex_unlock(&device->lock);
    free(extra);
}

/* Until something was posted after `seen` or the queue ends. It sleeps at once: looking for the
 * next batch for a while first kept the caller, who shares the core, from submitting it (decision
 * 0019). */
static void rest(bp_queue_object *queue, uint32_t seen) {
    atomic_store_explicit(&queue->sleeping, 1, memory_order_seq_cst);
    while (atomic_load_explicit(&queue->posted, memory_order_seq_cst) == seen)
        bp_futex_wait(&queue->posted, seen, UINT64_MAX);
    atomic_store_explicit(&queue->sleeping, 0, memory_order_relaxed);
}

static void *serve(void *argument) {
    bp_queue_object *queue = argument;
    bp_device *device = queue->device;
    for (;;) {
        uint32_t seen = atomic_load_explicit(&queue->posted, memory_order_acquire);
        /* Looked at before the list: what was submitted before the end is then in it. */
        uint32_t ending = atomic_load_explicit(&queue->cancel, memory_order_acquire);
        bp_work *work = pop(queue);
        if (work) {
            bp_work_execute(queue, work);
            finish(device, queue, work);
        } else if (ending) {
            return NULL;
        } else {
            rest(queue, seen);
        }
    }
}

static void post(bp_queue_object *queue) {
    atomic_fetch_add_explicit(&queue->posted, 1, memory_order_seq_cst);
    if (atomic_load_explicit(&queue->sleeping, memory_order_seq_cst))
        bp_futex_wake(&queue->posted, 1);
}

void bp_queue_stop(bp_object *object) {
    bp_queue_object *queue = (bp_queue_object *)object;
    atomic_store_explicit(&queue->cancel, 1, memory_order_seq_cst);
    post(queue);
    pthread_join(queue->thread, NULL);
    while (atomic_load_explicit(&queue->posting, memory_order_acquire))
        sched_yield();
}

void bp_queue_free(bp_object *object) {
    bp_queue_object *queue = (bp_queue_object *)object;
    bp_executor_own.close(queue);
    bp_capture_drop(queue);
    free(queue->spare);
    pthread_mutex_destroy(&queue->lock);
    free(queue);
}

static int32_t make(bp_device *device, const bp_queue_info *info, bp_object **out) {
    (void)info;
    bp_queue_object *queue = calloc(1, bp_executor_own.queue_bytes);
    if (!queue)
        return bp_fail(BP_OUT_OF_MEMORY, "no host memory for a queue");
    queue->oldest = UINT64_MAX;
    queue->device = device;
    pthread_mutex_init(&queue->lock, NULL);
    int32_t status = bp_executor_own.open(queue);
    if (status == BP_OK &&
        bp_thread_start(&queue->thread, bp_executor_own.thread_name, serve, queue))
        status = bp_fail(BP_OUT_OF_MEMORY, "the system has no thread for another queue");
    if (status)
        bp_queue_free(&queue->object);
    else
        *out = &queue->object;
    return status;
}

static int32_t create(uint64_t device, const bp_queue_info *given, uint64_t *out) {
    return bp_queue_create(device, given, make, out);
}

static void recycle(bp_queue_object *queue, bp_work *work) {
    pthread_mutex_lock(&queue->lock);
    if (!queue->spare) {
        queue->spare = work;
        work = NULL;
    }
    pthread_mutex_unlock(&queue->lock);
    free(work);
}

static bp_work *compile(bp_device *device, bp_queue_object *queue, const bp_batch *batch,
                        int32_t *status) {
    pthread_mutex_lock(&queue->lock);
    bp_work *spare = queue->spare;
    queue->spare = NULL;
    pthread_mutex_unlock(&queue->lock);
    bp_work *work = bp_work_compile(device, batch, &spare, status);
    if (spare)
        recycle(queue, spare);
    return work;
}

/* The device's lock makes order and tickets agree. */
int32_t bp_queue_append(bp_device *device, bp_queue_object *queue, const bp_batch *batch,
                        const bp_graph *graph) {
    int32_t status = BP_OK;
    bp_work *work = compile(device, queue, batch, &status);
    if (work && graph)
        status = bp_graph_lend(graph, work);
    if (status) {
        if (work)
            recycle(queue, work);
        return status;
    }
    work->ticket = ++device->tickets;
    pthread_mutex_lock(&queue->lock);
    if (queue->last)
        queue->last->next = work;
    else
        queue->first = work;
    queue->last = work;
    if (queue->oldest == UINT64_MAX)
        queue->oldest = work->ticket;
    pthread_mutex_unlock(&queue->lock);
    /* Held until the post; destroy waits for it. */
    atomic_fetch_add_explicit(&queue->posting, 1, memory_order_relaxed);
    return BP_OK;
}

void bp_queue_post(bp_queue_object *queue) {
    post(queue);
    atomic_fetch_sub_explicit(&queue->posting, 1, memory_order_release);
}

const bp_queue bp_queue_table = {
    .head = {1, sizeof(bp_queue)},
    .create = create,
    .submit = bp_capture_submit,
    .flush = bp_queue_flush,
    .destroy = bp_queue_destroy,
};
