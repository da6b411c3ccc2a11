/*
 * Graphs of executor queues: batches that were compiled once and are launched as one.
 *
 * Between begin and end what a queue is given is recorded and not run; such a batch has no fences.
 * A launch then compiles its own fences alone, so that its cost does not grow with the graph. The
 * memory, modules and plans that a graph names must outlive its last launch; a graph that is
 * released lives until the launches before are done (retire.h).
 */
#ifndef BEDPLATE_HAL_CHASSIS_CAPTURE_H
#define BEDPLATE_HAL_CHASSIS_CAPTURE_H

#include "queue.h"

typedef struct bp_graph {
    bp_object object;
    /* The recorded batches, which own what the nodes point to. */
    bp_work *batches;
    /* All their nodes in order; the only batch's own, or an allocation of ours. */
    bp_node *nodes;
    uint32_t node_count;
} bp_graph;

extern const bp_capture bp_capture_table;

/* The submit of every executor queue: appends a batch, or keeps it while the queue records. */
int32_t bp_capture_submit(uint64_t device, uint64_t queue, const bp_batch *batch);

/* Gives the graph's nodes to a work that has fences alone, or refuses. Holds the device's lock. */
int32_t bp_graph_lend(const bp_graph *graph, bp_work *work);

/* Forgets what a queue has recorded. */
void bp_capture_drop(bp_queue_object *queue);

void bp_graph_free(bp_graph *graph);

#endif
