/* The cuda backend's tables and its one export. Nothing is opened before a device is asked for. */
#include "../chassis/backend.h"
#include "../chassis/batch.h"
#include "../chassis/text.h"
#include "blas.h"
#include "capture.h"
#include "memory.h"
#include "module.h"
#include "op.h"
#include "queue.h"
#include "tensor_map.h"
#include "timeline.h"

#include <pthread.h>

static int32_t properties(uint32_t index, bp_device_properties *own) {
    const bp_cuda_facts *facts = bp_cuda_facts_of(index);
    if (!facts)
        return BP_UNAVAILABLE;
    own->name = bp_text_of(facts->name);
    own->driver = bp_text_of(bp_cu.version_text);
    own->memory_bytes = facts->memory_bytes;
    own->properties = facts->properties;
    own->property_count = sizeof(facts->properties) / sizeof(facts->properties[0]);
    return BP_OK;
}

static int32_t capabilities(uint32_t index, bp_capability *out, uint32_t capacity,
                            uint32_t *count) {
    const bp_cuda_facts *facts = bp_cuda_facts_of(index);
    if (!facts)
        return BP_UNAVAILABLE;
    const bp_capability claims[] = {
        {BP_CAP_DEVICE_ADDRESS, BP_CAPABILITY_FLAG, 1},
        {BP_CAP_TIMELINE_WAIT_HOST, BP_CAPABILITY_FLAG, 1},
        {BP_CAP_MODULE_PTX, BP_CAPABILITY_FLAG, 1},
        {BP_CAP_MODULE_CUBIN, BP_CAPABILITY_FLAG, 1},
        {BP_CAP_TIMESTAMP, BP_CAPABILITY_FLAG, 1},
        {BP_CAP_CAPTURE, BP_CAPABILITY_FLAG, bp_cu.capture_begin && bp_cu.graph_launch},
        {BP_CAP_PIN_HOST, BP_CAPABILITY_FLAG, facts->host_register != 0},
        {BP_CAP_ADDRESS_RESERVE, BP_CAPABILITY_FLAG, facts->virtual_memory != 0},
        {BP_CAP_EXPORT_MEMORY, BP_CAPABILITY_FLAG, facts->external != 0},
        {BP_CAP_IMPORT_MEMORY, BP_CAPABILITY_FLAG, facts->external != 0},
        {BP_CAP_TENSOR_MAP, BP_CAPABILITY_FLAG, facts->tensor_maps != 0},
        {BP_CAP_OPS, BP_CAPABILITY_FLAG, bp_blas_open() == BP_OK},
        {BP_CAP_DYNAMIC_SHARED, BP_CAPABILITY_BYTES, (uint64_t)facts->max_shared},
        {BP_CAP_CLUSTERS, BP_CAPABILITY_COUNT, facts->clusters ? BP_CUDA_CLUSTER_BLOCKS : 0},
    };
    return bp_claims(claims, sizeof(claims) / sizeof(claims[0]), out, capacity, count);
}

const bp_backend bp_backend_own = {.properties = properties, .capabilities = capabilities};

/* The chassis's table, with what it leaves to the backend; filled by the first query. */
static bp_mem memory_table;

static void fill_tables(void) {
    memory_table = bp_memory_table;
    memory_table.reserve = bp_cuda_reserve;
    memory_table.map = bp_cuda_map;
    memory_table.unmap = bp_cuda_unmap;
    memory_table.export_memory = bp_cuda_export;
    memory_table.import_memory = bp_cuda_import;
}

/* The loader asks before anybody asked for a device, when nothing is known and nothing may be
 * opened: a table is withheld only once it is known that no device has it. */
static const void *ext(const bp_text *name) {
    static const char OPS[] = "bp.ops.1", TENSOR_MAPS[] = "bp.tensor_map.1";
    if (name && name->length == sizeof(OPS) - 1 && memcmp(name->data, OPS, sizeof(OPS) - 1) == 0)
        return bp_blas_missing() ? NULL : &bp_ops_table;
    if (name && name->length == sizeof(TENSOR_MAPS) - 1 &&
        memcmp(name->data, TENSOR_MAPS, sizeof(TENSOR_MAPS) - 1) == 0)
        return bp_cuda_none_has_tensor_maps() ? NULL : &bp_cuda_tensor_maps_table;
    return NULL;
}

static const bp_api API = {
    .head = {1, sizeof(bp_api)},
    .major = BP_ABI_MAJOR,
    .minor = BP_ABI_MINOR,
    .core = &bp_core_table,
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
    pthread_once(&once, fill_tables);
    return bp_backend_query(given, wanted_major, &API, out);
}
