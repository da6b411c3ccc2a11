/*
 * The opencl backend: every device of every platform that the ICD loader finds.
 *
 * Nothing is opened before the first question about devices. Claims follow what a device reports.
 */
#include "../adopt.h"
#include "../chassis/host.h"
#include "../chassis/memory.h"
#include "../chassis/module.h"
#include "../chassis/queue.h"
#include "facts.h"

static int32_t enumerate(uint32_t *count) {
    if (!count)
        return bp_fail(BP_INVALID_ARGUMENT, "core.enumerate got no place for its result");
    return bp_cl_count(count);
}

static int32_t properties(uint32_t index, bp_device_properties *out) {
    int32_t status = bp_device_index(index);
    if (status)
        return status;
    const bp_cl_facts *facts = bp_cl_facts_of(index);
    bp_device_properties own = {.head = {1, sizeof(own)},
                                .name = facts->name,
                                .driver = facts->driver,
                                .memory_bytes = facts->memory_bytes,
                                .properties = facts->properties,
                                .property_count = BP_CL_PROPERTIES};
    return bp_answer(out, &own, sizeof(own), "device properties");
}

static int32_t capabilities(uint32_t index, bp_capability *out, uint32_t capacity,
                            uint32_t *count) {
    int32_t status = bp_device_index(index);
    if (status)
        return status;
    if (!count || (capacity && !out))
        return bp_fail(BP_INVALID_ARGUMENT, "core.capabilities got no place for its result");
    const bp_cl_facts *facts = bp_cl_facts_of(index);
    const struct {
        int has;
        bp_capability claim;
    } all[] = {
        {1, {BP_CAP_TIMELINE_WAIT_HOST, BP_CAPABILITY_FLAG, 1}},
        {1, {BP_CAP_PIN_HOST, BP_CAPABILITY_FLAG, 1}},
        {facts->shared, {BP_CAP_HOST_VISIBLE, BP_CAPABILITY_FLAG, 1}},
        {facts->compiler, {BP_CAP_MODULE_OPENCL_C, BP_CAPABILITY_FLAG, 1}},
        {facts->profiling, {BP_CAP_TIMESTAMP, BP_CAPABILITY_FLAG, 1}},
        {facts->local_bytes != 0,
         {BP_CAP_DYNAMIC_SHARED, BP_CAPABILITY_BYTES,
          facts->local_bytes < UINT32_MAX ? facts->local_bytes : UINT32_MAX}},
    };
    *count = 0;
    for (uint32_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (!all[i].has)
            continue;
        if (*count < capacity)
            out[*count] = all[i].claim;
        ++*count;
    }
    return BP_OK;
}

static const bp_core CORE = {
    .head = {1, sizeof(bp_core)},
    .enumerate = enumerate,
    .open = bp_device_open,
    .close = bp_device_close,
    .properties = properties,
    .capabilities = capabilities,
    .last_error = bp_error_copy,
};

static const bp_api API = {
    .head = {1, sizeof(bp_api)},
    .major = BP_ABI_MAJOR,
    .minor = BP_ABI_MINOR,
    .core = &CORE,
    .mem = &bp_memory_table,
    .queue = &bp_queue_table,
    .timeline = &bp_timeline_table,
    .module = &bp_module_table,
};

int32_t bedplate_hal_backend_query(const bp_host *host, uint32_t wanted_major, const bp_api **out) {
    int32_t status = bp_host_accept(host, wanted_major, out);
    if (status == BP_OK)
        *out = &API;
    return status;
}
