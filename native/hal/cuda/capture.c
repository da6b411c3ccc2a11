/* Graphs; see capture.h. */
#include "capture.h"

#include "../adopt.h"
#include "../chassis/retire.h"

#include <stdio.h>
#include <stdlib.h>

void bp_cuda_graph_free(bp_cuda_graph *graph) {
    bp_cu.graph_exec_destroy(graph->exec);
    free(graph);
}

int32_t bp_cuda_capture_record(bp_cuda_queue *queue, bp_work *work) {
    int32_t status = BP_OK;
    if (work->wait_count || work->signal_count)
        status =
            bp_fail(BP_INVALID_ARGUMENT,
                    "a batch that is recorded has %u waits and %u signals; give them to launch",
                    work->wait_count, work->signal_count);
    for (uint32_t i = 0; i < work->node_count && status == BP_OK && !queue->capture_status; i++) {
        queue->capture_status = bp_cuda_issue_node(queue->device, queue->recorder, &work->nodes[i]);
        if (queue->capture_status) {
            char why[BP_ERROR_BYTES];
            bp_error_copy(why, sizeof(why), NULL);
            bp_work_describe(work, &work->nodes[i], queue->capture_status, why, queue->capture_text,
                             sizeof(queue->capture_text));
        }
    }
    bp_cuda_queue_recycle(queue, work);
    return status;
}

int32_t bp_cuda_graph_issue(bp_cuda_queue *queue, const bp_work *work, char *text, uint64_t room) {
    const bp_cuda_graph *graph = work->own;
    bp_cu_result result = bp_cu.graph_launch(graph->exec, queue->stream);
    if (result == BP_CU_SUCCESS)
        return BP_OK;
    char words[200];
    bp_cuda_notice(queue->device, result);
    bp_cuda_words(result, words, sizeof(words));
    snprintf(text, room, "batch %llu: the graph was refused: %s", (unsigned long long)work->tag,
             words);
    return bp_cuda_status(result);
}

void bp_cuda_capture_drop(bp_cuda_queue *queue) {
    bp_cu_graph graph = NULL;
    if (queue->capturing && bp_cu.capture_end(queue->recorder, &graph) == BP_CU_SUCCESS && graph)
        bp_cu.graph_destroy(graph);
    queue->capturing = 0;
    if (queue->recorder)
        bp_cu.stream_destroy(queue->recorder);
    queue->recorder = NULL;
}

static int32_t begin_on(bp_cuda_device *device, bp_cuda_queue *queue) {
    if (queue->capturing)
        return bp_fail(BP_BUSY, "this queue is recording already");
    bp_cu_result result = BP_CU_SUCCESS;
    if (!queue->recorder)
        result = bp_cu.stream_create(&queue->recorder, BP_CU_STREAM_NON_BLOCKING, 0);
    if (result == BP_CU_SUCCESS)
        result = bp_cu.capture_begin(queue->recorder, BP_CU_STREAM_CAPTURE_MODE_RELAXED);
    bp_cuda_notice(device, result);
    if (result)
        return bp_cuda_check(result, "recording could not begin");
    queue->capturing = 1;
    queue->capture_status = BP_OK;
    return BP_OK;
}

static int32_t begin(uint64_t handle, uint64_t queue_handle) {
    bp_cuda_device *device = bp_cuda_enter(handle);
    if (!device)
        return BP_INVALID_ARGUMENT;
    int32_t status = bp_device_alive(&device->base);
    if (status == BP_OK) {
        pthread_mutex_lock(&device->base.lock);
        bp_cuda_queue *queue = bp_object_find(queue_handle, BP_KIND_QUEUE, device);
        status = queue ? begin_on(device, queue) : BP_INVALID_ARGUMENT;
        pthread_mutex_unlock(&device->base.lock);
        bp_cuda_settle(device);
    }
    bp_device_leave(&device->base);
    return status;
}

static int32_t publish(bp_cuda_device *device, bp_cu_graph_exec exec, uint64_t *out) {
    bp_cuda_graph *graph = calloc(1, sizeof(*graph));
    if (!graph) {
        bp_cu.graph_exec_destroy(exec);
        return bp_fail(BP_OUT_OF_MEMORY, "no host memory for a graph");
    }
    graph->exec = exec;
    int32_t status = bp_device_add(&device->base, &graph->object, BP_KIND_GRAPH);
    if (status)
        bp_cuda_graph_free(graph);
    else
        *out = graph->object.handle;
    return status;
}

static int32_t end_on(bp_cuda_device *device, bp_cuda_queue *queue, uint64_t *out) {
    bp_cu_graph graph = NULL;
    bp_cu_graph_exec exec = NULL;
    if (!queue->capturing)
        return bp_fail(BP_INVALID_ARGUMENT, "this queue is not recording");
    bp_cu_result result = bp_cu.capture_end(queue->recorder, &graph);
    queue->capturing = 0;
    if (result == BP_CU_SUCCESS && !queue->capture_status)
        result = bp_cu.graph_instantiate(&exec, graph, 0);
    if (graph)
        bp_cu.graph_destroy(graph);
    bp_cuda_notice(device, result);
    if (queue->capture_status)
        return bp_fail(queue->capture_status, "%s", queue->capture_text);
    if (result)
        return bp_cuda_check(result, "the recording is no graph");
    return publish(device, exec, out);
}

static int32_t end(uint64_t handle, uint64_t queue_handle, uint64_t *out) {
    if (!out)
        return bp_fail(BP_INVALID_ARGUMENT, "capture.end got no place for its result");
    bp_cuda_device *device = bp_cuda_enter(handle);
    if (!device)
        return BP_INVALID_ARGUMENT;
    int32_t status = bp_device_alive(&device->base);
    if (status == BP_OK) {
        pthread_mutex_lock(&device->base.lock);
        bp_cuda_queue *queue = bp_object_find(queue_handle, BP_KIND_QUEUE, device);
        status = queue ? end_on(device, queue, out) : BP_INVALID_ARGUMENT;
        pthread_mutex_unlock(&device->base.lock);
        bp_cuda_settle(device);
    }
    bp_device_leave(&device->base);
    return status;
}

static int32_t launch_on(bp_cuda_device *device, bp_cuda_queue *queue, uint64_t graph_handle,
                         const bp_batch *fences) {
    int32_t status = BP_OK;
    void *graph = bp_object_find(graph_handle, BP_KIND_GRAPH, device);
    if (!graph)
        return BP_INVALID_ARGUMENT;
    if (queue->capturing)
        return bp_fail(BP_UNSUPPORTED, "a graph cannot be launched into a recording");
    if (device->base.retired)
        bp_retire_sweep(&device->base);
    bp_work *work = bp_work_compile(&device->base, fences, &queue->spare, &status);
    if (!work)
        return status;
    if (work->node_count) {
        status = bp_fail(BP_INVALID_ARGUMENT, "capture.launch got a batch with %u commands",
                         work->node_count);
        bp_cuda_queue_recycle(queue, work);
        return status;
    }
    work->own = graph;
    bp_cuda_queue_post(queue, work);
    return BP_OK;
}

static int32_t launch(uint64_t handle, uint64_t queue_handle, uint64_t graph,
                      const bp_batch *fences) {
    bp_cuda_device *device = bp_cuda_enter(handle);
    if (!device)
        return BP_INVALID_ARGUMENT;
    int32_t status = bp_device_alive(&device->base);
    if (status == BP_OK) {
        pthread_mutex_lock(&device->base.lock);
        bp_cuda_queue *queue = bp_object_find(queue_handle, BP_KIND_QUEUE, device);
        status = queue ? launch_on(device, queue, graph, fences) : BP_INVALID_ARGUMENT;
        pthread_mutex_unlock(&device->base.lock);
        bp_cuda_settle(device);
    }
    bp_device_leave(&device->base);
    return status;
}

static int32_t release(uint64_t handle, uint64_t graph_handle) {
    bp_cuda_device *device = bp_cuda_enter(handle);
    if (!device)
        return BP_INVALID_ARGUMENT;
    pthread_mutex_lock(&device->base.lock);
    bp_cuda_graph *graph = bp_object_find(graph_handle, BP_KIND_GRAPH, device);
    if (graph)
        bp_retire(&device->base, &graph->object);
    pthread_mutex_unlock(&device->base.lock);
    bp_device_leave(&device->base);
    return graph ? BP_OK : BP_INVALID_ARGUMENT;
}

const bp_capture bp_cuda_capture_table = {
    .head = {1, sizeof(bp_capture)},
    .begin = begin,
    .end = end,
    .launch = launch,
    .release = release,
};
