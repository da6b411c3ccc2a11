/* The cpu backend's tables; its export is query.c, so that another backend may be made of it. */
#include "backend.h"

#include "../adopt.h"
#include "../chassis/host.h"
#include "../chassis/memory.h"
#include "../chassis/module.h"
#include "../chassis/queue.h"
#include "device.h"
#include "isa.h"
#include "plan.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static int32_t enumerate(uint32_t *count) {
    if (!count)
        return bp_fail(BP_INVALID_ARGUMENT, "core.enumerate got no place for its result");
    return bp_driver_own.count(count);
}

static bp_text text_of(const char *words) {
    return (bp_text){words, strlen(words)};
}

/* What is said of a device under one setting of the environment. */
typedef struct facts {
    struct facts *next;
    int level;
    uint32_t threads;
    char threads_text[16];
    bp_property properties[4];
} facts;

/* The facts of a setting; made once for each, because text given out lives as long as the library.
 * Null when memory is short. */
static const facts *facts_of(int level, uint32_t threads) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static facts *first;
    pthread_mutex_lock(&lock);
    facts *one = first;
    while (one && (one->level != level || one->threads != threads))
        one = one->next;
    if (!one && (one = calloc(1, sizeof(*one)))) {
        one->level = level;
        one->threads = threads;
        snprintf(one->threads_text, sizeof(one->threads_text), "%u", threads);
        one->properties[0] = (bp_property){text_of("cpu.isa"), text_of(bp_isa_name(level))};
        one->properties[1] = (bp_property){text_of("cpu.threads"), text_of(one->threads_text)};
        one->properties[2] = (bp_property){text_of("cpu.features"), text_of(bp_isa_features())};
        one->properties[3] =
            (bp_property){text_of("cpu.best_isa"), text_of(bp_isa_name(bp_isa_best()))};
        one->next = first;
        first = one;
    }
    pthread_mutex_unlock(&lock);
    return one;
}

/* They follow the environment, so that a wrong variable shows in a listing too. */
static int32_t properties(uint32_t index, bp_device_properties *out) {
    int level = 0;
    uint32_t threads = 1;
    int32_t status = bp_device_index(index);
    if (status == BP_OK)
        status = bp_isa_chosen(&level);
    if (status == BP_OK)
        status = bp_isa_threads(&threads);
    if (status)
        return status;
    const facts *known = facts_of(level, threads);
    if (!known)
        return bp_fail(BP_OUT_OF_MEMORY, "no host memory for the facts of a device");
    bp_device_properties own = {.head = {1, sizeof(own)},
                                .name = text_of(bp_isa_processor()),
                                .driver = text_of("cpu-1"),
                                .memory_bytes = bp_isa_memory(),
                                .properties = known->properties,
                                .property_count = 4};
    return bp_answer(out, &own, sizeof(own), "device properties");
}

static int32_t capabilities(uint32_t index, bp_capability *out, uint32_t capacity,
                            uint32_t *count) {
    static const bp_capability ALL[] = {
        {BP_CAP_DEVICE_ADDRESS, BP_CAPABILITY_FLAG, 1},
        {BP_CAP_HOST_VISIBLE, BP_CAPABILITY_FLAG, 1},
        {BP_CAP_TIMELINE_WAIT_HOST, BP_CAPABILITY_FLAG, 1},
        {BP_CAP_MODULE_NATIVE, BP_CAPABILITY_FLAG, 1},
        {BP_CAP_OPS, BP_CAPABILITY_FLAG, 1},
        {BP_CAP_TIMESTAMP, BP_CAPABILITY_FLAG, 1},
        {BP_CAP_PIN_HOST, BP_CAPABILITY_FLAG, 1},
        {BP_CAP_DYNAMIC_SHARED, BP_CAPABILITY_BYTES, BP_MAX_SHARED_BYTES},
    };
    const uint32_t known = sizeof(ALL) / sizeof(ALL[0]);
    int32_t status = bp_device_index(index);
    if (status)
        return status;
    if (!count || (capacity && !out))
        return bp_fail(BP_INVALID_ARGUMENT, "core.capabilities got no place for its result");
    for (uint32_t i = 0; i < known && i < capacity; i++)
        out[i] = ALL[i];
    *count = known;
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

static const void *ext(const bp_text *name) {
    static const char OPS[] = "bp.ops.1";
    if (name && name->length == sizeof(OPS) - 1 && memcmp(name->data, OPS, name->length) == 0)
        return &bp_ops_table;
    return NULL;
}

static const bp_api API = {
    .head = {1, sizeof(bp_api)},
    .major = BP_ABI_MAJOR,
    .minor = BP_ABI_MINOR,
    .core = &CORE,
    .mem = &bp_memory_table,
    .queue = &bp_queue_table,
    .timeline = &bp_timeline_table,
    .module = &bp_module_table,
    .ext = ext,
};

int32_t bp_cpu_query(const bp_host *given, uint32_t wanted_major, const bp_api **out) {
    int32_t status = bp_host_accept(given, wanted_major, out);
    if (status == BP_OK)
        *out = &API;
    return status;
}
