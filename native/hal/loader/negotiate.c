/*
 * From what a backend answered to what a host may use: majors equal, minor the smallest of host,
 * loader and backend, mandatory tables present, reserved words zero, no empty slot.
 *
 * Trade-off: the result points straight at the backend's functions, so a call costs one indirection
 * and no check; what crosses later (batches, infos) is checked by the callee with hal_struct.h.
 */
#include "../adopt.h"
#include "bedplate/hal_loader.h"
#include "stubs.h"

#include <stdlib.h>

typedef struct completed {
    bp_api api;
    bp_core core;
    bp_mem mem;
    bp_queue queue;
    bp_timeline timeline;
    bp_module module;
    bp_capture capture;
    bp_ops ops;
    bp_tensor_maps tensor_maps;
    int has_ops, has_tensor_maps;
} completed;

int32_t bp_hal_absent(const char *function) {
    return bp_fail(BP_UNSUPPORTED, "this backend has no %s", function);
}

static const void *no_ext(const bp_text *name) {
    (void)name;
    return NULL;
}

/* A null table is fine here; one with a bad head or reserved words is not. */
static int32_t check_table(const void *table, uint32_t size, uint32_t reserved_offset,
                           const char *name) {
    unsigned char scratch[512];
    if (!table)
        return BP_OK;
    return bp_adopt(table, scratch, size, reserved_offset, name);
}

#define CHECK_TABLE(table, kind, name)                                                             \
    do {                                                                                           \
        _Static_assert(sizeof(kind) <= 512, "check_table has room");                               \
        int32_t refused = check_table((table), sizeof(kind), offsetof(kind, reserved), (name));    \
        if (refused)                                                                               \
            return refused;                                                                        \
    } while (0)

static int32_t check_tables(const bp_api *api) {
    if (!api->core || !api->mem || !api->queue || !api->timeline)
        return bp_fail(BP_INVALID_ARGUMENT, "the backend has no %s table, which every one needs",
                       !api->core    ? "core"
                       : !api->mem   ? "mem"
                       : !api->queue ? "queue"
                                     : "timeline");
    CHECK_TABLE(api->core, bp_core, "table core");
    CHECK_TABLE(api->mem, bp_mem, "table mem");
    CHECK_TABLE(api->queue, bp_queue, "table queue");
    CHECK_TABLE(api->timeline, bp_timeline, "table timeline");
    CHECK_TABLE(api->module, bp_module, "table module");
    CHECK_TABLE(api->capture, bp_capture, "table capture");
    return BP_OK;
}

/* Completes a whole, checked answer. */
static int32_t complete(const bp_api *own, uint32_t major, uint32_t minor, const bp_api **out) {
    static const bp_text OPS = {"bp.ops.1", 8}, TENSOR_MAPS = {"bp.tensor_map.1", 15};
    completed *whole = calloc(1, sizeof(*whole));
    if (!whole)
        return bp_fail(BP_OUT_OF_MEMORY, "no memory for a backend's tables");
    const bp_ops *ops = own->ext ? own->ext(&OPS) : NULL;
    const bp_tensor_maps *maps = own->ext ? own->ext(&TENSOR_MAPS) : NULL;
    int32_t status = check_table(ops, sizeof(bp_ops), offsetof(bp_ops, reserved), "table ops");
    if (status == BP_OK)
        status = check_table(maps, sizeof(bp_tensor_maps), offsetof(bp_tensor_maps, reserved),
                             "table tensor_maps");
    if (status) {
        free(whole);
        return status;
    }
    whole->api = *own;
    whole->api.head.struct_size = sizeof(whole->api);
    whole->api.major = major;
    /* The loader is a side too: what it does not know it does not hand out. */
    whole->api.minor = own->minor < minor ? own->minor : minor;
    if (whole->api.minor > BP_ABI_MINOR)
        whole->api.minor = BP_ABI_MINOR;
    bp_hal_fill_core(&whole->core, own->core);
    bp_hal_fill_mem(&whole->mem, own->mem);
    bp_hal_fill_queue(&whole->queue, own->queue);
    bp_hal_fill_timeline(&whole->timeline, own->timeline);
    bp_hal_fill_module(&whole->module, own->module);
    bp_hal_fill_capture(&whole->capture, own->capture);
    bp_hal_fill_ops(&whole->ops, ops);
    whole->has_ops = ops != NULL;
    bp_hal_fill_tensor_maps(&whole->tensor_maps, maps);
    whole->has_tensor_maps = maps != NULL;
    whole->api.core = &whole->core;
    whole->api.mem = &whole->mem;
    whole->api.queue = &whole->queue;
    whole->api.timeline = &whole->timeline;
    whole->api.module = &whole->module;
    whole->api.capture = &whole->capture;
    if (!whole->api.ext)
        whole->api.ext = no_ext;
    *out = &whole->api;
    return BP_OK;
}

int32_t bp_hal_adopt(const bp_api *answer, uint32_t major, uint32_t minor, const bp_api **out) {
    if (!out)
        return bp_fail(BP_INVALID_ARGUMENT, "bp_hal_adopt got no place for its result");
    *out = NULL;
    if (!answer)
        return bp_fail(BP_UNAVAILABLE, "the backend answered with a null table");
    bp_api own;
    int32_t status = BP_ADOPT(answer, &own, "the backend's answer");
    if (status)
        return status;
    if (own.major != major)
        return bp_fail(BP_VERSION, "the backend speaks ABI %u.%u, this host %u.%u", own.major,
                       own.minor, major, minor);
    status = check_tables(&own);
    return status ? status : complete(&own, major, minor, out);
}

int32_t bp_hal_ops(const bp_api *api, const bp_ops **out) {
    if (!out)
        return bp_fail(BP_INVALID_ARGUMENT, "bp_hal_ops got no place for its result");
    *out = NULL;
    if (!api)
        return bp_fail(BP_INVALID_ARGUMENT, "bp_hal_ops got a null backend");
    const completed *whole = (const completed *)(const void *)api;
    *out = &whole->ops;
    if (!whole->has_ops)
        return bp_fail(BP_UNSUPPORTED, "this backend has no table bp.ops.1");
    return BP_OK;
}

int32_t bp_hal_tensor_maps(const bp_api *api, const bp_tensor_maps **out) {
    if (!out)
        return bp_fail(BP_INVALID_ARGUMENT, "bp_hal_tensor_maps got no place for its result");
    *out = NULL;
    if (!api)
        return bp_fail(BP_INVALID_ARGUMENT, "bp_hal_tensor_maps got a null backend");
    const completed *whole = (const completed *)(const void *)api;
    *out = &whole->tensor_maps;
    if (!whole->has_tensor_maps)
        return bp_fail(BP_UNSUPPORTED, "this backend has no table bp.tensor_map.1");
    return BP_OK;
}
