/* See backend.h. */
#include "backend.h"

#include "../adopt.h"
#include "host.h"

static int32_t enumerate(uint32_t *count) {
    if (!count)
        return bp_fail(BP_INVALID_ARGUMENT, "core.enumerate got no place for its result");
    return bp_driver_own.count(count);
}

static int32_t properties(uint32_t index, bp_device_properties *out) {
    bp_device_properties own = {.head = {1, sizeof(own)}};
    int32_t status = bp_device_index(index);
    if (status == BP_OK)
        status = bp_backend_own.properties(index, &own);
    return status ? status : bp_answer(out, &own, sizeof(own), "device properties");
}

static int32_t capabilities(uint32_t index, bp_capability *out, uint32_t capacity,
                            uint32_t *count) {
    int32_t status = bp_device_index(index);
    if (status)
        return status;
    if (!count || (capacity && !out))
        return bp_fail(BP_INVALID_ARGUMENT, "core.capabilities got no place for its result");
    return bp_backend_own.capabilities(index, out, capacity, count);
}

int32_t bp_claims(const bp_capability *claims, uint32_t known, bp_capability *out,
                  uint32_t capacity, uint32_t *count) {
    *count = 0;
    for (uint32_t i = 0; i < known; i++) {
        if (!claims[i].value)
            continue;
        if (*count < capacity)
            out[*count] = claims[i];
        ++*count;
    }
    return BP_OK;
}

const bp_core bp_core_table = {
    .head = {1, sizeof(bp_core)},
    .enumerate = enumerate,
    .open = bp_device_open,
    .close = bp_device_close,
    .properties = properties,
    .capabilities = capabilities,
    .last_error = bp_error_copy,
};

int32_t bp_backend_query(const bp_host *host, uint32_t wanted_major, const bp_api *api,
                         const bp_api **out) {
    int32_t status = bp_host_accept(host, wanted_major, out);
    if (status == BP_OK)
        *out = api;
    return status;
}
