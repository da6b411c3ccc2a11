/*
 * Graphs: commands recorded by a stream that runs nothing, then launched as one.
 *
 * Contract: between begin and end, batches of the queue are recorded and not run; they have no
 * fences. Recording uses a stream of its own, so batches that were kept on the host before are not
 * swallowed. Memory and modules that a graph uses must outlive it: a graph is not a batch, and
 * nothing waits for it when they are released.
 */
#ifndef BEDPLATE_HAL_CUDA_CAPTURE_H
#define BEDPLATE_HAL_CUDA_CAPTURE_H

#include "queue.h"

typedef struct bp_cuda_graph {
    bp_object object;
    bp_cu_graph_exec exec;
} bp_cuda_graph;

extern const bp_capture bp_cuda_capture_table;

/* Records a work and recycles it; BP_OK, or a status with a sentence. Locked. */
int32_t bp_cuda_capture_record(bp_cuda_queue *queue, bp_work *work);

/* Launches the graph of a work; BP_OK, or a status and its text. Locked. */
int32_t bp_cuda_graph_issue(bp_cuda_queue *queue, const bp_work *work, char *text, uint64_t room);

/* Ends a recording that nobody wants any more. */
void bp_cuda_capture_drop(bp_cuda_queue *queue);

void bp_cuda_graph_free(bp_cuda_graph *graph);

#endif
