/* The shuffler's devices, its core table and its one export; see shuffle.h. */
#include "../adopt.h"
#include "../chassis/text.h"
#include "../cpu/backend.h"
#include "shuffle.h"

#include <stdlib.h>

#define WORDS(literal)  {literal, sizeof(literal) - 1}
#define BREACH(literal) {WORDS("liar.lie"), WORDS(literal)}

static const bp_property BREACHES[BP_BREACH_COUNT] = {
    [BP_BREACH_TORN_BATCH] = BREACH("torn_batch"),
    [BP_BREACH_OVERTAKING_BATCH] = BREACH("overtaking_batch"),
    [BP_BREACH_SIGNAL_BEFORE_WORK] = BREACH("signal_before_work"),
    [BP_BREACH_FORGOTTEN_FENCE] = BREACH("forgotten_fence"),
};

static const bp_api *honest;

static int32_t enumerate(uint32_t *count) {
    int32_t status = honest->core->enumerate(count);
    if (status == BP_OK)
        *count = BP_BREACH_COUNT;
    return status;
}

/* The honest refusal of an index that is not there, else device 0. */
static uint32_t honest_index(uint32_t index) {
    return index < BP_BREACH_COUNT ? 0 : index;
}

static int32_t open_device(uint32_t index, uint64_t *handle) {
    int32_t status = honest->core->open(honest_index(index), handle);
    bp_device *device = status == BP_OK ? bp_device_enter(*handle) : NULL;
    if (device) {
        device->index = index;
        bp_device_leave(device);
    }
    return status;
}

static int32_t properties(uint32_t index, bp_device_properties *out) {
    bp_device_properties whole = {.head = {1, sizeof(whole)}};
    int32_t status = honest->core->properties(honest_index(index), &whole);
    if (status)
        return status;
    whole.name = bp_text_of("the processor, in any order");
    whole.driver = bp_text_of("shuffle-1");
    if (index > 0) {
        whole.properties = &BREACHES[index];
        whole.property_count = 1;
    }
    return bp_answer(out, &whole, sizeof(whole), "device properties");
}

static int32_t capabilities(uint32_t index, bp_capability *out, uint32_t capacity,
                            uint32_t *count) {
    return honest->core->capabilities(honest_index(index), out, capacity, count);
}

int32_t bedplate_hal_backend_query(const bp_host *host, uint32_t wanted_major, const bp_api **out) {
    static bp_api answer;
    static bp_core core;
    int32_t status = bp_cpu_query(host, wanted_major, &honest);
    if (status != BP_OK)
        return status;
    if (!out)
        return bp_fail(BP_INVALID_ARGUMENT, "the query got no place for its result");
    core = *honest->core;
    core.enumerate = enumerate;
    core.open = open_device;
    core.properties = properties;
    core.capabilities = capabilities;
    answer = *honest;
    answer.core = &core;
    *out = &answer;
    return BP_OK;
}
