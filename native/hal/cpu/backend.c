/* The cpu backend's tables; its export is query.c, so that another backend may be made of it. */
#include "backend.h"

#include "../chassis/backend.h"
#include "../chassis/capture.h"
#include "../chassis/memory.h"
#include "../chassis/module.h"
#include "../chassis/queue.h"
#include "../chassis/text.h"
#include "device.h"
#include "isa.h"
#include "plan.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

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
        one->properties[0] = (bp_property){bp_text_of("cpu.isa"), bp_text_of(bp_isa_name(level))};
        one->properties[1] =
            (bp_property){bp_text_of("cpu.threads"), bp_text_of(one->threads_text)};
        one->properties[2] =
            (bp_property){bp_text_of("cpu.features"), bp_text_of(bp_isa_features())};
        one->properties[3] =
            (bp_property){bp_text_of("cpu.best_isa"), bp_text_of(bp_isa_name(bp_isa_best()))};
        one->next = first;
        first = one;
    }
    pthread_mutex_unlock(&lock);
    return one;
}

/* They follow the environment, so that a wrong variable shows in a listing too. */
static int32_t properties(uint32_t index, bp_device_properties *own) {
    int level = 0;
    uint32_t threads = 1;
    (void)index;
    int32_t status = bp_isa_chosen(&level);
    if (status == BP_OK)
        status = bp_isa_threads(&threads);
    if (status)
        return status;
    const facts *known = facts_of(level, threads);
    if (!known)
        return bp_fail(BP_OUT_OF_MEMORY, "no host memory for the facts of a device");
    own->name = bp_text_of(bp_isa_processor());
    own->driver = bp_text_of("cpu-1");
    own->memory_bytes = bp_isa_memory();
    own->properties = known->properties;
    own->property_count = sizeof(known->properties) / sizeof(known->properties[0]);
    return BP_OK;
}

static int32_t capabilities(uint32_t index, bp_capability *out, uint32_t capacity,
                            uint32_t *count) {
    static const bp_capability CLAIMS[] = {
        {BP_CAP_DEVICE_ADDRESS, BP_CAPABILITY_FLAG, 1},
        {BP_CAP_HOST_VISIBLE, BP_CAPABILITY_FLAG, 1},
        {BP_CAP_TIMELINE_WAIT_HOST, BP_CAPABILITY_FLAG, 1},
        {BP_CAP_MODULE_NATIVE, BP_CAPABILITY_FLAG, 1},
        {BP_CAP_OPS, BP_CAPABILITY_FLAG, 1},
        {BP_CAP_TIMESTAMP, BP_CAPABILITY_FLAG, 1},
        {BP_CAP_CAPTURE, BP_CAPABILITY_FLAG, 1},
        {BP_CAP_PIN_HOST, BP_CAPABILITY_FLAG, 1},
        {BP_CAP_DYNAMIC_SHARED, BP_CAPABILITY_BYTES, BP_MAX_SHARED_BYTES},
    };
    (void)index;
    return bp_claims(CLAIMS, sizeof(CLAIMS) / sizeof(CLAIMS[0]), out, capacity, count);
}

const bp_backend bp_backend_own = {.properties = properties, .capabilities = capabilities};

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
    .core = &bp_core_table,
    .mem = &bp_memory_table,
    .queue = &bp_queue_table,
    .timeline = &bp_timeline_table,
    .module = &bp_module_table,
    .capture = &bp_capture_table,
    .ext = ext,
};

int32_t bp_cpu_query(const bp_host *given, uint32_t wanted_major, const bp_api **out) {
    return bp_backend_query(given, wanted_major, &API, out);
}
