/*
 * The opencl backend: every device of every platform that the ICD loader finds.
 *
 * Nothing is opened before the first question about devices. Claims follow what a device reports.
 */
#include "../chassis/backend.h"
#include "../chassis/capture.h"
#include "../chassis/memory.h"
#include "../chassis/module.h"
#include "../chassis/queue.h"
#include "facts.h"

static int32_t properties(uint32_t index, bp_device_properties *own) {
    const bp_cl_facts *facts = bp_cl_facts_of(index);
    own->name = facts->name;
    own->driver = facts->driver;
    own->memory_bytes = facts->memory_bytes;
    own->properties = facts->properties;
    own->property_count = BP_CL_PROPERTIES;
    return BP_OK;
}

static int32_t capabilities(uint32_t index, bp_capability *out, uint32_t capacity,
                            uint32_t *count) {
    const bp_cl_facts *facts = bp_cl_facts_of(index);
    const uint64_t local = facts->local_bytes < UINT32_MAX ? facts->local_bytes : UINT32_MAX;
    const bp_capability claims[] = {
        {BP_CAP_TIMELINE_WAIT_HOST, BP_CAPABILITY_FLAG, 1},
        {BP_CAP_CAPTURE, BP_CAPABILITY_FLAG, 1},
        {BP_CAP_PIN_HOST, BP_CAPABILITY_FLAG, 1},
        {BP_CAP_HOST_VISIBLE, BP_CAPABILITY_FLAG, facts->shared != 0},
        {BP_CAP_MODULE_OPENCL_C, BP_CAPABILITY_FLAG, facts->compiler != 0},
        {BP_CAP_TIMESTAMP, BP_CAPABILITY_FLAG, facts->profiling != 0},
        {BP_CAP_DYNAMIC_SHARED, BP_CAPABILITY_BYTES, local},
    };
    return bp_claims(claims, sizeof(claims) / sizeof(claims[0]), out, capacity, count);
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
