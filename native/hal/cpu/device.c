/* What the chassis asks of the cpu's devices; see chassis/driver.h. */
#include "device.h"

#include "../chassis/contents.h"
#include "isa.h"
#include "plan.h"
#include "pool.h"

static int32_t count(uint32_t *count) {
    *count = 1;
    return BP_OK;
}

static int32_t open_device(bp_device *device, uint32_t index) {
    bp_cpu_device *own = bp_cpu_device_of(device);
    (void)index;
    int32_t status = bp_isa_chosen(&own->isa);
    if (status == BP_OK)
        status = bp_isa_threads(&own->threads);
    if (status)
        return status;
    device->memory_total = bp_isa_memory();
    device->limits = (bp_limits){.max_shared_bytes = BP_MAX_SHARED_BYTES, .timestamp = 1};
    own->pool = bp_pool_create(own->threads);
    return own->pool ? BP_OK : BP_OUT_OF_MEMORY;
}

static void close_device(bp_device *device) {
    bp_pool_destroy(bp_cpu_device_of(device)->pool);
}

static void destroy(bp_device *device, bp_object *object) {
    if (object->kind == BP_KIND_PLAN)
        bp_plan_free((bp_plan_object *)object);
    else
        bp_contents_free(device, object);
}

const bp_driver bp_driver_own = {
    .device_bytes = sizeof(bp_cpu_device),
    .count = count,
    .open = open_device,
    .close = close_device,
    BP_CONTENTS_DRIVER,
    .destroy = destroy,
};
