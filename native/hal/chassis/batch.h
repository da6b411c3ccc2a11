/*
 * From a batch to work: everything is checked before anything runs, so a refused batch has no
 * effect. Handles become pointers here; whoever runs the work looks nothing up, and retire.h keeps
 * what it points to alive.
 *
 * One pass over the commands fills an allocation that an earlier batch left. Where it is too small
 * the bytes are counted in a pass of their own, and the work is made anew. Timelines stay plain
 * objects: what a fence is, only the backend's queue knows.
 */
#ifndef BEDPLATE_HAL_CHASSIS_BATCH_H
#define BEDPLATE_HAL_CHASSIS_BATCH_H

#include "launch.h"

typedef struct bp_op_node {
    /* For error text; lives as long as the library. */
    const char *name;
    /* What bp_batch_driver.op made of it, bp_batch_driver.op_bytes long. */
    void *bound;
} bp_op_node;

/* Copy (to and from), fill (to, pattern; bytes a multiple of pattern_bytes), timestamp (to). */
typedef struct bp_span_node {
    bp_span to, from;
    uint32_t pattern, pattern_bytes;
} bp_span_node;

/* One command, ready to run. */
typedef struct bp_node {
    /* BP_COMMAND_*, and its place in the batch for error text. */
    uint32_t kind;
    uint32_t index;
    union {
        bp_launch_node launch;
        bp_op_node op;
        bp_span_node span;
    };
} bp_node;

typedef struct bp_point {
    bp_object *timeline;
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
    /* The backend's; null from the compiler. */
    void *own;
} bp_work;

/* One in each backend, called bp_batch_driver_own. */
typedef struct bp_batch_driver {
    /* Whether launches keep their arguments as pieces. */
    int pieces;
    /* What else the backend asks of a launch, or null. Holds the lock. */
    int32_t (*launch)(bp_device *device, const bp_launch_node *node);
    /* Binds an op: fills node->name and the op_bytes at node->bound, which are 16-byte aligned.
     * Null refuses ops as BP_UNSUPPORTED. Holds the lock. */
    uint32_t op_bytes;
    int32_t (*op)(bp_device *device, const bp_op_command *command, bp_op_node *node);
} bp_batch_driver;

extern const bp_batch_driver bp_batch_driver_own;

/* A checked, compiled batch without a ticket, or null with *status and a sentence. `spare` may hold
 * a work to use again, which is then taken. Free the work with free(). Holds the device's lock. */
bp_work *bp_work_compile(bp_device *device, const bp_batch *batch, bp_work **spare,
                         int32_t *status);

/* The sentence of a failed node: tag, place, name, and `why`, or the status without one. */
void bp_work_describe(const bp_work *work, const bp_node *node, int32_t status, const char *why,
                      char *text, uint64_t room);

#endif
