/* Devices are the machine's, their queues and memory the cpu's; see chassis/driver.h. */
#include "../cpu/device.h"

#include "../chassis/memory.h"
#include "../chassis/module.h"
#include "../chassis/queue.h"
#include "../chassis/timeline.h"
#include "../cpu/isa.h"
#include "../cpu/pool.h"
#include "provider.h"

static int32_t count(uint32_t *count) {
    bp_provider machine;
    int32_t status = bp_provider_find(&machine);
    if (status)
        return status;
    return bp_provider_told(&machine, machine.enumerate(machine.user, count),
                            "the machine does not say how many devices it has");
}

static int32_t open_device(bp_device *device, uint32_t index) {
    bp_cpu_device *own = bp_cpu_device_of(device);
    bp_device_properties facts = {.head = {1, sizeof(facts)}};
    bp_provider machine;
    int32_t status = bp_provider_find(&machine);
    if (status == BP_OK)
        status = bp_provider_told(&machine, machine.properties(machine.user, index, &facts),
                                  "the machine says nothing of its device");
    if (status == BP_OK)
        status = bp_isa_threads(&own->threads);
    if (status)
        return status;
    device->memory_total = facts.memory_bytes;
    device->limits = (bp_limits){.max_shared_bytes = BP_MAX_SHARED_BYTES, .timestamp = 1};
    own->pool = bp_pool_create(own->threads);
    if (!own->pool)
        return bp_fail(BP_OUT_OF_MEMORY, "the system has no %u threads for the worker pool",
                       own->threads);
    return BP_OK;
}

static void close_device(bp_device *device) {
    bp_pool_destroy(bp_cpu_device_of(device)->pool);
    bp_provider_settle();
}

static void destroy(bp_device *device, bp_object *object) {
    if (object->kind == BP_KIND_MEMORY)
        bp_memory_free(device, (bp_memory *)object);
    else if (object->kind == BP_KIND_TIMELINE)
        bp_timeline_free((bp_timeline_object *)object);
    else if (object->kind == BP_KIND_MODULE)
        bp_module_free((bp_module_object *)object);
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
