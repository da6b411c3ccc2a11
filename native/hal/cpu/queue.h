/*
 * Queues: batches in order, each run by the queue's own executor thread.
 *
 * submit checks a whole batch and turns it into nodes with raw pointers (submit.c); the executor
 * only runs nodes (execute.c). retire.h keeps what they point to alive.
 */
#ifndef BEDPLATE_HAL_CPU_QUEUE_H
#define BEDPLATE_HAL_CPU_QUEUE_H

#include "device.h"
#include "module.h"
#include "plan.h"
#include "timeline.h"

typedef struct bp_launch_node {
    bp_native_entry entry;
    bp_text name;
    uint32_t grid[3], block[3];
    uint64_t blocks;
    const unsigned char *parameters;
    uint32_t parameters_bytes;
    uint32_t shared_bytes;
} bp_launch_node;

typedef struct bp_op_node {
    const bp_cpu_plan *plan;
    unsigned char **addresses;
    unsigned char *workspace;
} bp_op_node;

typedef struct bp_span_node {
    unsigned char *to;
    const unsigned char *from;
    uint64_t bytes;
    uint32_t pattern, pattern_bytes;
} bp_span_node;

/* One command, ready to run. */
typedef struct bp_node {
    uint32_t kind;
    uint32_t index;
    union {
        bp_launch_node launch;
        bp_op_node op;
        bp_span_node span;
    };
} bp_node;

typedef struct bp_point {
    bp_timeline_object *timeline;
    uint64_t value;
} bp_point;

/* One batch in flight; what it points to lies behind it in the same allocation. */
typedef struct bp_work {
    struct bp_work *next;
    uint64_t capacity;
    uint64_t tag, ticket;
    uint32_t wait_count, signal_count, node_count;
    bp_point *waits, *signals;
    bp_node *nodes;
} bp_work;

typedef struct bp_shared {
    unsigned char *data;
    uint32_t bytes;
} bp_shared;

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
    _Atomic uint32_t cancel;
    /* Ticket of the oldest batch not done, UINT64_MAX when idle; under the device's lock. */
    uint64_t oldest;
    /* Executor's own: scratch of each worker, and the record of the failing kernel. */
    bp_shared *shared;
    bp_native_fault fault;
} bp_queue_object;

#define BP_MAX_SHARED_BYTES (1u << 20)

extern const bp_queue bp_queue_table;

/* Smallest ticket in flight on the device, UINT64_MAX when none. Holds the device's lock. */
uint64_t bp_queue_oldest(bp_device *device);

/* Cancels and waits for its thread. Without the device's lock. */
void bp_queue_stop(bp_queue_object *queue);
void bp_queue_free(bp_queue_object *queue);

/* submit.c: a checked, compiled batch, or null with *status and a sentence. Holds the device's
 * lock; `spare` may be null and is used or left. */
bp_work *bp_work_compile(bp_device *device, const bp_batch *batch, bp_work **spare,
                         int32_t *status);

/* execute.c: waits, runs and signals (or poisons). */
void bp_work_execute(bp_device *device, bp_queue_object *queue, bp_work *work);

#endif
