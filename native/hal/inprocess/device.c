/* Devices are the machine's, their queues and memory the cpu's; see chassis/driver.h. */
#include "../cpu/device.h"

#include "../chassis/contents.h"
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
    return own->pool ? BP_OK : BP_OUT_OF_MEMORY;
}

static void close_device(bp_device *device) {
    bp_pool_destroy(bp_cpu_device_of(device)->pool);
    bp_provider_settle();
}

const bp_driver bp_driver_own = {
    .device_bytes = sizeof(bp_cpu_device),
    .count = count,
    .open = open_device,
    .close = close_device,
    BP_CONTENTS_DRIVER,
    .destroy = bp_contents_free,
};
