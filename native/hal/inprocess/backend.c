/*
 * A backend whose machine lives in the host's process, such as a simulator in Python: this file and
 * its neighbours have queues, memory and timelines in C; the machine names devices and compiles
 * modules. The query needs no machine, so the file can be asked in a process without one; there it
 * has no devices and says BP_UNAVAILABLE. Compiled once for each BP_PROVIDER_NAME.
 */
#include "../chassis/backend.h"
#include "../chassis/capture.h"
#include "../chassis/memory.h"
#include "../chassis/module.h"
#include "../chassis/queue.h"
#include "provider.h"

static int32_t properties(uint32_t index, bp_device_properties *own) {
    bp_provider machine;
    int32_t status = bp_provider_find(&machine);
    if (status)
        return status;
    return bp_provider_told(&machine, machine.properties(machine.user, index, own),
                            "the machine says nothing of its device");
}

static int32_t capabilities(uint32_t index, bp_capability *out, uint32_t capacity,
                            uint32_t *count) {
    bp_provider machine;
    int32_t status = bp_provider_find(&machine);
    if (status)
        return status;
    status = machine.capabilities(machine.user, index, out, capacity, count);
    return bp_provider_told(&machine, status, "the machine says nothing of what it can do");
}

const bp_backend bp_backend_own = {.properties = properties, .capabilities = capabilities};

static const bp_api API = {
    .head = {1, sizeof(bp_api)},
    .major = BP_ABI_MAJOR,
    .minor = BP_ABI_MINOR,
    .core = &bp_core_table,
    .mem = &bp_memory_table,
    .queue = &bp_queue_table,
    .timeline = &bp_timeline_table,
    .module = &bp_module_table,
    .capture = &bp_capture_table,
};

int32_t bedplate_hal_backend_query(const bp_host *host, uint32_t wanted_major, const bp_api **out) {
    return bp_backend_query(host, wanted_major, &API, out);
}
