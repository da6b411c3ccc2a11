/* Lies about memory. */
#include "lie.h"

#include <string.h>

static int32_t create(uint64_t device, const bp_memory_info *wanted, uint64_t *memory) {
    bp_liar_of(device);
    return bp_liar_honest->mem->create(device, wanted, memory);
}

/* The handle goes, as much memory as it had stays taken, and written. */
static int32_t release_and_keep(uint64_t device, uint64_t memory) {
    bp_memory_info info = {.head = {1, sizeof(info)}};
    uint64_t kept;
    int32_t known = bp_liar_honest->mem->describe(device, memory, &info);
    int32_t status = bp_liar_honest->mem->release(device, memory);
    if (known != BP_OK || status != BP_OK)
        return status;
    bp_memory_info wanted = {.head = {1, sizeof(wanted)}, .bytes = info.bytes};
    if (bp_liar_honest->mem->create(device, &wanted, &kept) == BP_OK && info.bytes <= 1u << 20 &&
        bp_liar_honest->mem->describe(device, kept, &info) == BP_OK)
        memset(info.host, 0xA5, info.bytes);
    return BP_OK;
}

static int32_t release(uint64_t device, uint64_t memory) {
    bp_memory_info info = {.head = {1, sizeof(info)}};
    /* Says yes and keeps it. */
    if (bp_liar_of(device) == BP_LIE_STALE_ACCEPTED &&
        bp_liar_honest->mem->describe(device, memory, &info) == BP_OK)
        return BP_OK;
    if (bp_liar_of(device) == BP_LIE_EARLY_FREE &&
        bp_liar_honest->mem->describe(device, memory, &info) == BP_OK && info.host)
        memset(info.host, 0xDD, info.bytes);
    if (bp_liar_of(device) == BP_LIE_KEPT_MEMORY)
        return release_and_keep(device, memory);
    return bp_liar_honest->mem->release(device, memory);
}

static int32_t describe(uint64_t device, uint64_t memory, bp_memory_info *out) {
    bp_lie lie = bp_liar_of(device);
    uint32_t size = out ? out->head.struct_size : 0;
    /* Writes its own whole struct into a shorter one. */
    if (lie == BP_LIE_SHORT_STRUCT && out && size < sizeof(*out))
        out->head.struct_size = sizeof(*out);
    int32_t status = bp_liar_honest->mem->describe(device, memory, out);
    if (out)
        out->head.struct_size = size;
    if (status == BP_OK && size >= sizeof(*out)) {
        out->address += lie == BP_LIE_MISALIGNED ? 8 : lie == BP_LIE_WRONG_ADDRESS ? 64 : 0;
    }
    return status;
}

static int32_t pin(uint64_t device, void *host, uint64_t bytes, uint64_t *memory) {
    if (bp_liar_of(device) != BP_LIE_PIN_COPY || !host || !memory || bytes == 0 || bytes > 4096)
        return bp_liar_honest->mem->pin(device, host, bytes, memory);
    bp_memory_info info = {.head = {1, sizeof(info)}, .bytes = bytes};
    int32_t status = bp_liar_honest->mem->create(device, &info, memory);
    if (status == BP_OK)
        status = bp_liar_honest->mem->describe(device, *memory, &info);
    if (status == BP_OK)
        memcpy(info.host, host, bytes);
    return status;
}

const bp_mem bp_liar_memory = {
    .head = {1, sizeof(bp_mem)},
    .create = create,
    .release = release,
    .describe = describe,
    .pin = pin,
};
