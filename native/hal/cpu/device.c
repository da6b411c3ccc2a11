/* What the chassis asks of the cpu's devices; see chassis/driver.h. */
#include "device.h"

#include "../chassis/memory.h"
#include "../chassis/module.h"
#include "../chassis/queue.h"
#include "../chassis/timeline.h"
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
    if (!own->pool)
        return bp_fail(BP_OUT_OF_MEMORY, "the system has no %u threads for the worker pool",
                       own->threads);
    return BP_OK;
}

static void close_device(bp_device *device) {
    bp_pool_destroy(bp_cpu_device_of(device)->pool);
}

static void destroy(bp_device *device, bp_object *object) {
    switch (object->kind) {
    case BP_KIND_MEMORY:
        bp_memory_free(device, (bp_memory *)object);
        break;
    case BP_KIND_TIMELINE:
        bp_timeline_free((bp_timeline_object *)object);
        break;
    case BP_KIND_MODULE:
        bp_module_free((bp_module_object *)object);
        break;
    case BP_KIND_PLAN:
        bp_plan_free((bp_plan_object *)object);
        break;
    default:
        /* Kernels go with their module, queues join their thread first. */
        break;
    }
}

const bp_driver bp_driver_own = {
    .device_bytes = sizeof(bp_cpu_device),
    .count = count,
    .open = open_device,
    .close = close_device,
    .poison = bp_timeline_poison,
    .waited = bp_timeline_waited,
    .oldest = bp_queue_oldest,
    .stop = bp_queue_stop,
    .free_queue = bp_queue_free,
    .destroy = destroy,
};
