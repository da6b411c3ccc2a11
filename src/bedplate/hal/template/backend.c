/*
 * template: a backend over host memory. Replace what these functions do by your device.
 *
 * hal_kit.h keeps the contract of the ABI: handles, the size rule, fences, poison, cancelling,
 * deadlines. What is yours is here: what the device is called, its memory, and how bytes move.
 * Every function may be called from any thread, one call at a time. One that fails leaves a
 * sentence: `return bp_kit_refuse(BP_DEVICE_LOST, "engine %u does not answer", index);`
 */
#define _GNU_SOURCE
#include "bedplate/hal_kit.h"

#define MEMORY_BYTES (1ull << 30)

/* What the device can do beyond the mandatory tables. `bedplate hal conform` tests every claim;
 * take HOST_VISIBLE away when the host cannot use the pointers of `allocate`. */
static const bp_capability CLAIMS[] = {
    {BP_CAP_HOST_VISIBLE, BP_CAPABILITY_FLAG, 1},
    {BP_CAP_TIMELINE_WAIT_HOST, BP_CAPABILITY_FLAG, 1},
};

static int32_t describe(uint32_t index, bp_device_properties *out) {
    static const bp_property FACTS[] = {{{"template.kind", 13}, {"host memory", 11}}};
    (void)index;
    out->name = (bp_text){"template device", 15};
    /* Certificates are bound to it: change it whenever what drives the device changes. */
    out->driver = (bp_text){"template-1", 10};
    out->memory_bytes = MEMORY_BYTES;
    out->properties = FACTS;
    out->property_count = 1;
    return BP_OK;
}

static void *allocate(uint32_t index, uint64_t bytes, uint64_t alignment) {
    (void)index;
    return aligned_alloc(alignment, (bytes + alignment - 1) & -alignment);
}

static void release(uint32_t index, void *data, uint64_t bytes) {
    (void)index;
    (void)bytes;
    free(data);
}

static int32_t copy(uint32_t index, void *to, const void *from, uint64_t bytes) {
    (void)index;
    memcpy(to, from, bytes);
    return BP_OK;
}

static int32_t fill(uint32_t index, void *to, uint64_t bytes, uint32_t pattern, uint32_t width) {
    (void)index;
    for (uint64_t i = 0; i < bytes; i += width)
        memcpy((unsigned char *)to + i, &pattern, width);
    return BP_OK;
}

static const bp_kit_driver DRIVER = {
    .device_count = 1,
    .describe = describe,
    .claims = CLAIMS,
    .claim_count = sizeof(CLAIMS) / sizeof(CLAIMS[0]),
    .allocate = allocate,
    .release = release,
    .copy = copy,
    .fill = fill,
};

/* The one export. Before this call the library does nothing: no thread, no driver, no device. */
BP_EXPORT int32_t bedplate_hal_backend_query(const bp_host *host, uint32_t wanted_major,
                                             const bp_api **out) {
    (void)host;
    return bp_kit_query(&DRIVER, wanted_major, out);
}
