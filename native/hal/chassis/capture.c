/* See capture.h. */
#include "capture.h"

#include "visit.h"

#include <stdlib.h>

static void free_batches(bp_work *first) {
    for (bp_work *next; first; first = next) {
        next = first->next;
        free(first);
    }
}

void bp_graph_free(bp_graph *graph) {
    if (!graph->batches || graph->nodes != graph->batches->nodes)
        free(graph->nodes);
    free_batches(graph->batches);
    free(graph);
}

void bp_capture_drop(bp_queue_object *queue) {
    free_batches(queue->recorded);
    queue->recorded = NULL;
    queue->recording = 0;
}

static int32_t record(bp_device *device, bp_queue_object *queue, const bp_batch *batch) {
    int32_t status = BP_OK;
    bp_work *spare = NULL, *work = bp_work_compile(device, batch, &spare, &status);
    if (!work)
        return status;
    if (work->wait_count || work->signal_count) {
        status =
            bp_fail(BP_INVALID_ARGUMENT,
                    "a batch that is recorded has %u waits and %u signals; give them to launch",
                    work->wait_count, work->signal_count);
        free(work);
        return status;
    }
    /* The latest comes first until the end turns them round. */
    work->next = queue->recorded;
    queue->recorded = work;
    return BP_OK;
}

int32_t bp_capture_submit(uint64_t device, uint64_t handle, const bp_batch *batch) {
    bp_visit visit;
    int32_t status = bp_visit_begin_alive(&visit, device, handle, BP_KIND_QUEUE);
    if (status)
        return status;
    bp_queue_object *queue = visit.object;
    int records = queue->recording;
    status = records ? record(visit.device, queue, batch)
                     : bp_queue_append(visit.device, queue, batch, NULL);
    bp_visit_unlock(&visit);
    if (status == BP_OK && !records)
        bp_queue_post(queue);
    bp_device_leave(visit.device);
    return status;
}

int32_t bp_graph_lend(const bp_graph *graph, bp_work *work) {
    if (work->node_count)
        return bp_fail(BP_INVALID_ARGUMENT, "capture.launch got a batch with %u commands",
                       work->node_count);
    work->nodes = graph->nodes;
    work->node_count = graph->node_count;
    return BP_OK;
}

static bp_work *turned(bp_work *latest) {
    bp_work *first = NULL;
    for (bp_work *next; latest; latest = next) {
        next = latest->next;
        latest->next = first;
        first = latest;
    }
    return first;
}

/* Puts the nodes of all batches behind each other; in error text a command's place is that in the
 * graph. */
static int32_t join(bp_graph *graph) {
    uint64_t count = 0;
    for (const bp_work *batch = graph->batches; batch; batch = batch->next)
        count += batch->node_count;
    if (count > UINT32_MAX)
        return bp_fail(BP_INVALID_ARGUMENT, "a graph of %llu commands; at most %u",
                       (unsigned long long)count, UINT32_MAX);
    graph->node_count = (uint32_t)count;
    if (graph->batches && !graph->batches->next) {
        graph->nodes = graph->batches->nodes;
        return BP_OK;
    }
    graph->nodes = malloc(count ? count * sizeof(bp_node) : 1);
    if (!graph->nodes)
        return bp_fail(BP_OUT_OF_MEMORY, "no host memory for a graph of %llu commands",
                       (unsigned long long)count);
    uint32_t at = 0;
    for (const bp_work *batch = graph->batches; batch; batch = batch->next) {
        for (uint32_t i = 0; i < batch->node_count; i++, at++) {
            graph->nodes[at] = batch->nodes[i];
            graph->nodes[at].index = at;
        }
    }
    return BP_OK;
}

static int32_t begin_on(bp_queue_object *queue) {
    if (queue->recording)
        return bp_fail(BP_BUSY, "this queue is recording already");
    queue->recording = 1;
    return BP_OK;
}

/* The recording is over even when no graph can be made of it. */
static int32_t end_on(bp_device *device, bp_queue_object *queue, uint64_t *out) {
    if (!queue->recording)
        return bp_fail(BP_INVALID_ARGUMENT, "this queue is not recording");
    bp_graph *graph = calloc(1, sizeof(*graph));
    if (!graph) {
        bp_capture_drop(queue);
        return bp_fail(BP_OUT_OF_MEMORY, "no host memory for a graph");
    }
    graph->batches = turned(queue->recorded);
    queue->recorded = NULL;
    queue->recording = 0;
    int32_t status = join(graph);
    if (status == BP_OK)
        status = bp_device_add(device, &graph->object, BP_KIND_GRAPH);
    if (status)
        bp_graph_free(graph);
    else
        *out = graph->object.handle;
    return status;
}

static int32_t begin(uint64_t device, uint64_t queue) {
    bp_visit visit;
    int32_t status = bp_visit_begin_alive(&visit, device, queue, BP_KIND_QUEUE);
    if (status == BP_OK) {
        status = begin_on(visit.object);
        bp_visit_end(&visit);
    }
    return status;
}

static int32_t end(uint64_t device, uint64_t queue, uint64_t *out) {
    if (!out)
        return bp_fail(BP_INVALID_ARGUMENT, "capture.end got no place for its result");
    bp_visit visit;
    int32_t status = bp_visit_begin_alive(&visit, device, queue, BP_KIND_QUEUE);
    if (status == BP_OK) {
        status = end_on(visit.device, visit.object, out);
        bp_visit_end(&visit);
    }
    return status;
}

static int32_t launch_on(bp_visit *visit, uint64_t handle, const bp_batch *fences) {
    bp_queue_object *queue = visit->object;
    const bp_graph *graph = bp_object_find(handle, BP_KIND_GRAPH, visit->device);
    if (!graph)
        return BP_INVALID_ARGUMENT;
    if (queue->recording)
        return bp_fail(BP_UNSUPPORTED, "a graph cannot be launched into a recording");
    return bp_queue_append(visit->device, queue, fences, graph);
}

static int32_t launch(uint64_t device, uint64_t queue, uint64_t graph, const bp_batch *fences) {
    bp_visit visit;
    int32_t status = bp_visit_begin_alive(&visit, device, queue, BP_KIND_QUEUE);
    if (status)
        return status;
    status = launch_on(&visit, graph, fences);
    bp_visit_unlock(&visit);
    if (status == BP_OK)
        bp_queue_post(visit.object);
    bp_device_leave(visit.device);
    return status;
}

static int32_t release(uint64_t device, uint64_t graph) {
    return bp_visit_retire(device, graph, BP_KIND_GRAPH);
}

const bp_capture bp_capture_table = {
    .head = {1, sizeof(bp_capture)},
    .begin = begin,
    .end = end,
    .launch = launch,
    .release = release,
};
