/* The queue table of the shuffler: checks and compiles as every backend does, then hands a batch to
 * the scheduler. Takes the place of chassis/queue.c. */
#include "../chassis/capture.h"
#include "../chassis/lifetime.h"
#include "shuffle.h"

#include <stdlib.h>

#define ALIGN(bytes) (((bytes) + 15u) & ~15u)

/* Ours lies behind the executor's own struct. */
static bp_shuffle_queue *own(bp_queue_object *queue) {
    unsigned char *bytes = (unsigned char *)queue + ALIGN(bp_executor_own.queue_bytes);
    return (bp_shuffle_queue *)(void *)bytes;
}

uint64_t bp_queue_oldest(const bp_object *queue) {
    return ((const bp_queue_object *)queue)->oldest;
}

void bp_queue_stop(bp_object *object) {
    bp_queue_object *queue = (bp_queue_object *)object;
    atomic_store_explicit(&queue->cancel, 1, memory_order_seq_cst);
    bp_shuffle_leave(own(queue));
}

void bp_queue_free(bp_object *object) {
    bp_executor_own.close((bp_queue_object *)object);
    bp_capture_drop((bp_queue_object *)object);
    free(object);
}

static int32_t make(bp_device *device, const bp_queue_info *info, bp_object **out) {
    (void)info;
    uint32_t bytes = ALIGN(bp_executor_own.queue_bytes);
    bp_queue_object *queue = calloc(1, bytes + sizeof(bp_shuffle_queue));
    if (!queue)
        return bp_fail(BP_OUT_OF_MEMORY, "no host memory for a queue");
    queue->oldest = UINT64_MAX;
    queue->device = device;
    own(queue)->queue = queue;
    int32_t status = bp_executor_own.open(queue);
    if (status == BP_OK)
        status = bp_shuffle_enter(own(queue));
    if (status)
        bp_queue_free(&queue->object);
    else
        *out = &queue->object;
    return status;
}

static int32_t create(uint64_t device, const bp_queue_info *given, uint64_t *out) {
    return bp_queue_create(device, given, make, out);
}

int32_t bp_queue_append(bp_device *device, bp_queue_object *queue, const bp_batch *batch,
                        const bp_graph *graph) {
    int32_t status = BP_OK;
    bp_work *spare = NULL, *work = bp_work_compile(device, batch, &spare, &status);
    if (work && graph)
        status = bp_graph_lend(graph, work);
    bp_flight *flight = NULL;
    if (status == BP_OK) {
        flight = calloc(1, sizeof(*flight) + (uint64_t)work->node_count + work->signal_count);
        if (!flight)
            status = bp_fail(BP_OUT_OF_MEMORY, "no host memory for a batch");
    }
    if (status) {
        free(work);
        return status;
    }
    work->ticket = ++device->tickets;
    flight->work = work;
    flight->ran = (unsigned char *)(flight + 1);
    flight->given = flight->ran + work->node_count;
    flight->nodes_left = work->node_count;
    flight->signals_left = work->signal_count;
    bp_shuffle_append(own(queue), flight);
    return BP_OK;
}

/* The scheduler was told by the append. */
void bp_queue_post(bp_queue_object *queue) {
    (void)queue;
}

const bp_queue bp_queue_table = {
    .head = {1, sizeof(bp_queue)},
    .create = create,
    .submit = bp_capture_submit,
    .flush = bp_queue_flush,
    .destroy = bp_queue_destroy,
};
