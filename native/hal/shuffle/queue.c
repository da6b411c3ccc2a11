/* The queue table of the shuffler: checks and compiles as every backend does, then hands a batch to
 * the scheduler. Takes the place of chassis/queue.c. */
#include "../adopt.h"
#include "../chassis/retire.h"
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
    free(object);
}

static int32_t start(bp_device *device, uint64_t *out) {
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
    if (status) {
        bp_queue_free(&queue->object);
        return status;
    }
    pthread_mutex_lock(&device->lock);
    status = bp_device_add(device, &queue->object, BP_KIND_QUEUE);
    if (status == BP_OK)
        *out = queue->object.handle;
    pthread_mutex_unlock(&device->lock);
    if (status) {
        bp_queue_stop(&queue->object);
        bp_queue_free(&queue->object);
    }
    return status;
}

static int32_t create(uint64_t handle, const bp_queue_info *given, uint64_t *out) {
    bp_queue_info info;
    int32_t status = BP_ADOPT(given, &info, "queue info");
    if (status == BP_OK && info.flags)
        status = bp_fail(BP_INVALID_ARGUMENT, "queue flags 0x%x are unknown", info.flags);
    if (status == BP_OK && !out)
        status = bp_fail(BP_INVALID_ARGUMENT, "queue.create got no place for its result");
    if (status)
        return status;
    bp_device *device = bp_device_enter(handle);
    if (!device)
        return BP_INVALID_ARGUMENT;
    status = bp_device_alive(device);
    if (status == BP_OK)
        status = start(device, out);
    bp_device_leave(device);
    return status;
}

/* Holds the device's lock. */
static int32_t append(bp_device *device, bp_queue_object *queue, const bp_batch *batch) {
    int32_t status = BP_OK;
    bp_work *spare = NULL, *work = bp_work_compile(device, batch, &spare, &status);
    if (!work)
        return status;
    uint64_t marks = (uint64_t)work->node_count + work->signal_count;
    bp_flight *flight = calloc(1, sizeof(*flight) + marks);
    if (!flight) {
        free(work);
        return bp_fail(BP_OUT_OF_MEMORY, "no host memory for a batch");
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

static int32_t submit(uint64_t handle, uint64_t queue_handle, const bp_batch *batch) {
    bp_device *device = bp_device_enter(handle);
    if (!device)
        return BP_INVALID_ARGUMENT;
    int32_t status = bp_device_alive(device);
    if (status == BP_OK) {
        pthread_mutex_lock(&device->lock);
        bp_queue_object *queue = bp_object_find(queue_handle, BP_KIND_QUEUE, device);
        status = queue ? append(device, queue, batch) : BP_INVALID_ARGUMENT;
        pthread_mutex_unlock(&device->lock);
    }
    bp_device_leave(device);
    return status;
}

static int32_t flush(uint64_t handle, uint64_t queue_handle) {
    bp_device *device = bp_device_enter(handle);
    if (!device)
        return BP_INVALID_ARGUMENT;
    pthread_mutex_lock(&device->lock);
    const void *queue = bp_object_find(queue_handle, BP_KIND_QUEUE, device);
    pthread_mutex_unlock(&device->lock);
    bp_device_leave(device);
    return queue ? BP_OK : BP_INVALID_ARGUMENT;
}

static int32_t destroy(uint64_t handle, uint64_t queue_handle) {
    bp_device *device = bp_device_enter(handle);
    if (!device)
        return BP_INVALID_ARGUMENT;
    pthread_mutex_lock(&device->lock);
    bp_queue_object *queue = bp_object_find(queue_handle, BP_KIND_QUEUE, device);
    if (queue)
        bp_object_withdraw(&queue->object);
    pthread_mutex_unlock(&device->lock);
    if (queue) {
        bp_queue_stop(&queue->object);
        pthread_mutex_lock(&device->lock);
        bp_device_remove(device, &queue->object);
        bp_retire_sweep(device);
        pthread_mutex_unlock(&device->lock);
        bp_queue_free(&queue->object);
    }
    bp_device_leave(device);
    return queue ? BP_OK : BP_INVALID_ARGUMENT;
}

const bp_queue bp_queue_table = {
    .head = {1, sizeof(bp_queue)},
    .create = create,
    .submit = submit,
    .flush = flush,
    .destroy = destroy,
};
