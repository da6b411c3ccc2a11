/* See visit.h. */
#include "visit.h"

#include "retire.h"

static int32_t find(bp_visit *visit, uint64_t object, bp_kind kind) {
    pthread_mutex_lock(&visit->device->lock);
    visit->object = bp_object_find(object, kind, visit->device);
    if (visit->object)
        return BP_OK;
    bp_visit_end(visit);
    return BP_INVALID_ARGUMENT;
}

int32_t bp_visit_begin(bp_visit *visit, uint64_t device, uint64_t object, bp_kind kind) {
    visit->device = bp_device_enter(device);
    return visit->device ? find(visit, object, kind) : BP_INVALID_ARGUMENT;
}

int32_t bp_visit_begin_alive(bp_visit *visit, uint64_t device, uint64_t object, bp_kind kind) {
    int32_t status = BP_OK;
    visit->device = bp_device_enter_alive(device, &status);
    return visit->device ? find(visit, object, kind) : status;
}

void bp_visit_unlock(bp_visit *visit) {
    pthread_mutex_unlock(&visit->device->lock);
}

void bp_visit_end(bp_visit *visit) {
    bp_visit_unlock(visit);
    bp_device_leave(visit->device);
}

int32_t bp_visit_retire(uint64_t device, uint64_t object, bp_kind kind) {
    bp_visit visit;
    int32_t status = bp_visit_begin(&visit, device, object, kind);
    if (status == BP_OK) {
        bp_retire(visit.device, visit.object);
        bp_visit_end(&visit);
    }
    return status;
}
