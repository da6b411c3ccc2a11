/* The cuda backend's tables and its one export. Nothing is opened before a device is asked for. */
#include "../adopt.h"
#include "../chassis/batch.h"
#include "../chassis/host.h"
#include "blas.h"
#include "capture.h"
#include "memory.h"
#include "module.h"
#include "op.h"
#include "queue.h"
#include "timeline.h"

#include <pthread.h>

static int32_t enumerate(uint32_t *count) {
    if (!count)
        return bp_fail(BP_INVALID_ARGUMENT, "core.enumerate got no place for its result");
    return bp_driver_own.count(count);
}

static bp_text text_of(const char *words) {
    return (bp_text){words, strlen(words)};
}

static int32_t properties(uint32_t index, bp_device_properties *out) {
    int32_t status = bp_device_index(index);
    if (status)
        return status;
    const bp_cuda_facts *facts = bp_cuda_facts_of(index);
    if (!facts)
        return BP_UNAVAILABLE;
    bp_device_properties own = {.head = {1, sizeof(own)},
                                .name = text_of(facts->name),
                                .driver = text_of(bp_cu.version_text),
                                .memory_bytes = facts->memory_bytes,
                                .properties = facts->properties,
                                .property_count =
                                    sizeof(facts->properties) / sizeof(facts->properties[0])};
    return bp_answer(out, &own, sizeof(own), "device properties");
}

static int32_t capabilities(uint32_t index, bp_capability *out, uint32_t capacity,
                            uint32_t *count) {
    int32_t status = bp_device_index(index);
    if (status)
        return status;
    if (!count || (capacity && !out))
        return bp_fail(BP_INVALID_ARGUMENT, "core.capabilities got no place for its result");
    const bp_cuda_facts *facts = bp_cuda_facts_of(index);
    if (!facts)
        return BP_UNAVAILABLE;
    const struct {
        int claimed;
        bp_capability capability;
    } ALL[] = {
        {1, {BP_CAP_DEVICE_ADDRESS, BP_CAPABILITY_FLAG, 1}},
        {1, {BP_CAP_TIMELINE_WAIT_HOST, BP_CAPABILITY_FLAG, 1}},
        {1, {BP_CAP_MODULE_PTX, BP_CAPABILITY_FLAG, 1}},
        {1, {BP_CAP_MODULE_CUBIN, BP_CAPABILITY_FLAG, 1}},
        {1, {BP_CAP_TIMESTAMP, BP_CAPABILITY_FLAG, 1}},
        {bp_cu.capture_begin && bp_cu.graph_launch, {BP_CAP_CAPTURE, BP_CAPABILITY_FLAG, 1}},
        {facts->host_register, {BP_CAP_PIN_HOST, BP_CAPABILITY_FLAG, 1}},
        {facts->virtual_memory, {BP_CAP_ADDRESS_RESERVE, BP_CAPABILITY_FLAG, 1}},
        {facts->max_shared > 0,
         {BP_CAP_DYNAMIC_SHARED, BP_CAPABILITY_BYTES, (uint64_t)facts->max_shared}},
        {bp_blas_open() == BP_OK, {BP_CAP_OPS, BP_CAPABILITY_FLAG, 1}},
        {facts->clusters, {BP_CAP_CLUSTERS, BP_CAPABILITY_COUNT, BP_CUDA_CLUSTER_BLOCKS}},
    };
    uint32_t found = 0;
    for (uint32_t i = 0; i < sizeof(ALL) / sizeof(ALL[0]); i++) {
        if (!ALL[i].claimed)
            continue;
        if (found < capacity)
            out[found] = ALL[i].capability;
        found++;
    }
    *count = found;
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

/* The chassis's table, with what it leaves to the backend; filled by the first query. */
static bp_mem memory_table;

static void fill_tables(void) {
    memory_table = bp_memory_table;
    memory_table.reserve = bp_cuda_reserve;
    memory_table.map = bp_cuda_map;
    memory_table.unmap = bp_cuda_unmap;
}

static const void *ext(const bp_text *name) {
    static const char OPS[] = "bp.ops.1";
    if (!name || name->length != sizeof(OPS) - 1 || memcmp(name->data, OPS, sizeof(OPS) - 1))
        return NULL;
    return bp_blas_open() ? NULL : &bp_ops_table;
}

static const bp_api API = {
    .head = {1, sizeof(bp_api)},
    .major = BP_ABI_MAJOR,
    .minor = BP_ABI_MINOR,
    .core = &CORE,
    .mem = &memory_table,
    .queue = &bp_cuda_queue_table,
    .timeline = &bp_cuda_timeline_table,
    .module = &bp_module_table,
    .capture = &bp_cuda_capture_table,
    .ext = ext,
};

int32_t bedplate_hal_backend_query(const bp_host *given, uint32_t wanted_major,
                                   const bp_api **out) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int32_t status = bp_host_accept(given, wanted_major, out);
    if (status == BP_OK) {
        pthread_once(&once, fill_tables);
        *out = &API;
    }
    return status;
}
