/*
 * Executor queues: batches in order, each run by the queue's own host thread.
 *
 * submit compiles a whole batch (batch.h) and posts it; the thread waits for its fences, gives its
 * nodes to the backend one by one (bp_executor) and signals, or poisons what it would have
 * signalled with one sentence that names tag, command and cause. While a queue records (capture.h)
 * what is submitted is kept instead. For backends with host timelines.
 */
#ifndef BEDPLATE_HAL_CHASSIS_QUEUE_H
#define BEDPLATE_HAL_CHASSIS_QUEUE_H

#include "batch.h"
#include "timeline.h"

/* First member of a backend's own queue struct. */
typedef struct bp_queue_object {
    bp_object object;
    /* The owner again, set before the thread starts. */
    bp_device *device;
    pthread_t thread;
    pthread_mutex_t lock;
    /* Under its lock: batches not yet begun, and one spare allocation for the next submit. */
    bp_work *first, *last, *spare;
    _Atomic uint32_t posted;
    _Atomic uint32_t sleeping;
    /* Submits between their append and their post. */
    _Atomic uint32_t posting;
    /* Not 0 once its work is not wanted any more. */
    _Atomic uint32_t cancel;
    /* Under the device's lock: ticket of the oldest batch not done, UINT64_MAX when idle; whether
     * it records, and what it recorded, the latest first. */
    uint64_t oldest;
    int recording;
    bp_work *recorded;
} bp_queue_object;

struct bp_graph;

/* Why a node failed; an empty text is told as the status alone. */
typedef struct bp_cause {
    const bp_node *node;
    char text[BP_FAULT_TEXT_BYTES];
} bp_cause;

/* One in each backend with executor queues, called bp_executor_own. */
typedef struct bp_executor {
    /* sizeof the backend's queue struct, whose first member is bp_queue_object. */
    uint32_t queue_bytes;
    /* Name of the thread, at most 15 characters. */
    const char *thread_name;
    /* Fills the zeroed part behind bp_queue_object. BP_OK or a status with a sentence; then close
     * is called for what was filled. */
    int32_t (*open)(bp_queue_object *queue);
    void (*close)(bp_queue_object *queue);
    /* On the thread: runs or starts one node; BP_OK, or a status and its cause. */
    int32_t (*run)(bp_queue_object *queue, const bp_node *node, bp_cause *cause);
    /* On the thread: waits until all that `run` started is done, also after one failed; then
     * BP_OK, or the status of the first that failed and its cause. Null when run waits itself. */
    int32_t (*finish)(bp_queue_object *queue, bp_cause *cause);
    /* On the thread, between the last node and `finish`: whether the platform itself will call
     * bp_work_signal once all that was started is done and nothing failed, so that a waiter need
     * not wait until this thread was woken. `finish` then returns after that call. Null when it
     * never does. */
    int (*announce)(bp_queue_object *queue, const bp_work *work);
} bp_executor;

extern const bp_executor bp_executor_own;
extern const bp_queue bp_queue_table;

/* What bp_driver wants of a queue. */
uint64_t bp_queue_oldest(const bp_object *queue);
void bp_queue_stop(bp_object *queue);
void bp_queue_free(bp_object *queue);

/* Compiles a batch and appends it; the nodes of `graph`, where that is not null, take the place of
 * its own, of which it then must have none. Holds the device's lock; after BP_OK bp_queue_post
 * follows without it, because the executor may run at once, on this core, and wants it. */
int32_t bp_queue_append(bp_device *device, bp_queue_object *queue, const bp_batch *batch,
                        const struct bp_graph *graph);
void bp_queue_post(bp_queue_object *queue);

static inline int bp_queue_cancelled(const bp_queue_object *queue) {
    return atomic_load_explicit(&queue->cancel, memory_order_relaxed) != 0;
}

/* execute.c: what a batch that is done signals; on any thread. */
void bp_work_signal(const bp_work *work);

/* Waits, runs and signals (or poisons). */
void bp_work_execute(bp_queue_object *queue, bp_work *work);

#endif
