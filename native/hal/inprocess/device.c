/* Devices are the machine's, their queues and memory the cpu's; see chassis/driver.h. */
#include "../cpu/device.h"

#include "../chassis/contents.h"
#include "../cpu/isa.h"
#include "../cpu/pool.h"
#include "../cpu/windows.h"
#include "provider.h"

static int32_t count(uint32_t *count) {
    bp_provider machine;
    int32_t status = bp_provider_find(&machine);
    if (status)
        return status;
    return bp_provider_told(&machine, machine.enumerate(machine.user, count),
                            "the machine does not say how many devices it has");
}

#define MOST_CLAIMS 64u

/* Most bytes of dynamic shared memory that the machine says it has. */
static int32_t shared_bytes(const bp_provider *machine, uint32_t index, uint32_t *bytes) {
    bp_capability claims[MOST_CLAIMS];
    uint32_t count = 0;
    int32_t status = machine->capabilities(machine->user, index, claims, MOST_CLAIMS, &count);
    status = bp_provider_told(machine, status, "the machine says nothing of what it can do");
    *bytes = 0;
    for (uint32_t i = 0; status == BP_OK && i < count && i < MOST_CLAIMS; i++)
        if (claims[i].id == BP_CAP_DYNAMIC_SHARED)
            *bytes = claims[i].value < UINT32_MAX ? (uint32_t)claims[i].value : UINT32_MAX;
    return status;
}

static int32_t open_device(bp_device *device, uint32_t index) {
    bp_cpu_device *own = bp_cpu_device_of(device);
    bp_device_properties facts = {.head = {1, sizeof(facts)}};
    bp_provider machine;
    int32_t status = bp_provider_find(&machine);
    if (status == BP_OK)
        status = bp_provider_told(&machine, machine.properties(machine.user, index, &facts),
                                  "the machine says nothing of its device");
    uint32_t most_shared = 0;
    if (status == BP_OK)
        status = shared_bytes(&machine, index, &most_shared);
    if (status == BP_OK)
        status = bp_isa_threads(&own->threads);
    if (status)
        return status;
    device->memory_total = facts.memory_bytes;
    device->limits = (bp_limits){.max_shared_bytes = most_shared, .timestamp = 1};
    own->windows = bp_windows_create();
    own->pool = own->windows ? bp_pool_create(own->threads) : NULL;
    if (own->pool)
        return BP_OK;
    bp_windows_destroy(own->windows);
    return BP_OUT_OF_MEMORY;
}

static void close_device(bp_device *device) {
    bp_pool_destroy(bp_cpu_device_of(device)->pool);
    bp_windows_destroy(bp_cpu_device_of(device)->windows);
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
