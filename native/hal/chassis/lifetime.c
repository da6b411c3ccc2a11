/* See lifetime.h. */
#include "lifetime.h"

#include "../adopt.h"
#include "retire.h"
#include "visit.h"

static int32_t publish(bp_device *device, bp_object *queue, uint64_t *out) {
    int32_t status = bp_device_give(device, queue, BP_KIND_QUEUE, out);
    if (status) {
        bp_driver_own.stop(queue);
        bp_driver_own.free_queue(queue);
    }
    return status;
}

int32_t bp_queue_create(uint64_t handle, const bp_queue_info *given, bp_queue_make make,
                        uint64_t *out) {
    bp_queue_info info;
    bp_object *queue;
    int32_t status = BP_ADOPT(given, &info, "queue info");
    if (status == BP_OK && info.flags)
        status = bp_fail(BP_INVALID_ARGUMENT, "queue flags 0x%x are unknown", info.flags);
    if (status == BP_OK && !out)
        status = bp_fail(BP_INVALID_ARGUMENT, "queue.create got no place for its result");
    if (status)
        return status;
    bp_device *device = bp_device_enter_alive(handle, &status);
    if (!device)
        return status;
    status = make(device, &info, &queue);
    if (status == BP_OK)
        status = publish(device, queue, out);
    bp_device_leave(device);
    return status;
}

int32_t bp_queue_flush(uint64_t device, uint64_t queue) {
    bp_visit visit;
    int32_t status = bp_visit_begin(&visit, device, queue, BP_KIND_QUEUE);
    if (status == BP_OK)
        bp_visit_end(&visit);
    return status;
}

int32_t bp_queue_destroy(uint64_t device, uint64_t queue) {
    bp_visit visit;
    int32_t status = bp_visit_begin(&visit, device, queue, BP_KIND_QUEUE);
    if (status)
        return status;
    bp_object_withdraw(visit.object);
    bp_visit_unlock(&visit);
    /* It stays on the list until it has ended, so that its batches still count. */
    bp_driver_own.stop(visit.object);
    pthread_mutex_lock(&visit.device->lock);
    bp_device_remove(visit.device, visit.object);
    bp_retire_sweep(visit.device);
    bp_visit_unlock(&visit);
    bp_driver_own.free_queue(visit.object);
    bp_device_leave(visit.device);
    return BP_OK;
}
