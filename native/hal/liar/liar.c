/* The liar's devices, its core table and its one export; see lie.h. */
#include "lie.h"

#include "../cpu/backend.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_OPEN  1024
#define MOST_FACTS 16

static const char *const NAMES[BP_LIE_COUNT] = {
    [BP_LIE_TEXT_OVERFLOW] = "text_overflow",
    [BP_LIE_NO_ERROR_TEXT] = "no_error_text",
    [BP_LIE_FALSE_CLAIM] = "false_claim",
    [BP_LIE_HIDDEN_TIMESTAMP] = "hidden_timestamp",
    [BP_LIE_SHARED_TEXT] = "shared_text",
    [BP_LIE_CHANGING_FACTS] = "changing_facts",
    [BP_LIE_MISALIGNED] = "misaligned",
    [BP_LIE_STALE_ACCEPTED] = "stale_accepted",
    [BP_LIE_SHORT_STRUCT] = "short_struct",
    [BP_LIE_WRONG_ADDRESS] = "wrong_address",
    [BP_LIE_PIN_COPY] = "pin_copy",
    [BP_LIE_KEPT_MEMORY] = "kept_memory",
    [BP_LIE_EARLY_FREE] = "early_free",
    [BP_LIE_WRONG_COPY] = "wrong_copy",
    [BP_LIE_SHORT_FILL] = "short_fill",
    [BP_LIE_OVERRUN] = "overrun",
    [BP_LIE_REORDERED] = "reordered",
    [BP_LIE_DROPPED_COMMAND] = "dropped_command",
    [BP_LIE_EARLY_START] = "early_start",
    [BP_LIE_EARLY_SIGNAL] = "early_signal",
    [BP_LIE_RESERVED_IGNORED] = "reserved_ignored",
    [BP_LIE_UNKNOWN_TAIL_IGNORED] = "unknown_tail_ignored",
    [BP_LIE_RANGE_UNCHECKED] = "range_unchecked",
    [BP_LIE_SKIPPED_BLOCK] = "skipped_block",
    [BP_LIE_REPEATED_BLOCK] = "repeated_block",
    [BP_LIE_LOST_TAG] = "lost_tag",
    [BP_LIE_WRONG_TIMESTAMP] = "wrong_timestamp",
    [BP_LIE_WRONG_OP] = "wrong_op",
    [BP_LIE_SWAPPED_PAIR] = "swapped_pair",
    [BP_LIE_SPOILED_INPUT] = "spoiled_input",
    [BP_LIE_EARLY_CLOCK] = "early_clock",
    [BP_LIE_VERSION_IGNORED] = "version_ignored",
    [BP_LIE_WIDE_SIGNAL] = "wide_signal",
    [BP_LIE_HASTY_EMPTY] = "hasty_empty",
    [BP_LIE_DEAF_SECOND_WAIT] = "deaf_second_wait",
    [BP_LIE_PARTIAL_BATCH] = "partial_batch",
    [BP_LIE_REFUSED_SIGNAL] = "refused_signal",
    [BP_LIE_STALE_QUEUE] = "stale_queue",
    [BP_LIE_STUCK_VALUE] = "stuck_value",
    [BP_LIE_BACKWARDS] = "backwards",
    [BP_LIE_DEADLINE_IS_SUCCESS] = "deadline_is_success",
    [BP_LIE_AMNESIA] = "amnesia",
    [BP_LIE_SILENT_FAULT] = "silent_fault",
    [BP_LIE_LOST_DEVICE] = "lost_device",
    [BP_LIE_LOST_WAKE] = "lost_wake",
    [BP_LIE_EARLY_DEADLINE] = "early_deadline",
};

typedef struct facts {
    struct facts *next;
    const bp_property *honest;
    bp_lie lie;
    bp_property properties[MOST_FACTS];
} facts;

const bp_api *bp_liar_honest;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    uint64_t device;
    bp_lie lie;
} opened[MOST_OPEN];
static facts *first_facts;
static _Thread_local bp_lie latest;

bp_lie bp_liar_of(uint64_t device) {
    bp_lie found = BP_LIE_NONE;
    pthread_mutex_lock(&lock);
    for (int i = 0; device && i < MOST_OPEN && !found; i++)
        if (opened[i].device == device)
            found = opened[i].lie;
    pthread_mutex_unlock(&lock);
    if (found)
        latest = found;
    return found;
}

uint64_t bp_liar_place(uint64_t most) {
    const char *text = getenv("BEDPLATE_HAL_LIAR_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 10) : 1;
    /* The multiplier of Knuth's 64-bit generator, high bits. */
    return most ? ((seed * 6364136223846793005ull + 1442695040888963407ull) >> 33) % most : 0;
}

static void remember(uint64_t device, uint64_t now, bp_lie lie) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST_OPEN; i++) {
        if (opened[i].device == device) {
            opened[i].device = now;
            opened[i].lie = lie;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
}

static int32_t enumerate(uint32_t *count) {
    int32_t status = bp_liar_honest->core->enumerate(count);
    if (status == BP_OK)
        *count = BP_LIE_COUNT - 1;
    return status;
}

/* The honest refusal of an index that is not there, else device 0. */
static uint32_t honest_index(uint32_t index) {
    return index < BP_LIE_COUNT - 1 ? 0 : index;
}

static int32_t open_device(uint32_t index, uint64_t *device) {
    int32_t status = bp_liar_honest->core->open(honest_index(index), device);
    if (status == BP_OK) {
        remember(0, *device, (bp_lie)(index + 1));
        bp_liar_of(*device);
    }
    return status;
}

static int32_t close_device(uint64_t device) {
    bp_liar_of(device);
    int32_t status = bp_liar_honest->core->close(device);
    if (status == BP_OK)
        remember(device, 0, BP_LIE_NONE);
    return status;
}

/* The honest facts and the lie's name; made once, because text lives as long as the library. */
static const facts *facts_of(const bp_device_properties *honest, bp_lie lie) {
    pthread_mutex_lock(&lock);
    facts *one = first_facts;
    while (one && (one->honest != honest->properties || one->lie != lie))
        one = one->next;
    if (!one && honest->property_count < MOST_FACTS && (one = calloc(1, sizeof(*one)))) {
        one->honest = honest->properties;
        one->lie = lie;
        memcpy(one->properties, honest->properties, honest->property_count * sizeof(bp_property));
        one->properties[honest->property_count] =
            (bp_property){{"liar.lie", 8}, {NAMES[lie], strlen(NAMES[lie])}};
        one->next = first_facts;
        first_facts = one;
    }
    pthread_mutex_unlock(&lock);
    return one;
}

static int32_t properties(uint32_t index, bp_device_properties *out) {
    bp_device_properties whole = {.head = {1, sizeof(whole)}};
    int32_t status = bp_liar_honest->core->properties(honest_index(index), out);
    if (status != BP_OK || out->head.struct_size < sizeof(whole))
        return status;
    status = bp_liar_honest->core->properties(0, &whole);
    const facts *known = status == BP_OK ? facts_of(&whole, (bp_lie)(index + 1)) : NULL;
    if (known) {
        static _Atomic uint32_t asked;
        int other = index + 1 == BP_LIE_CHANGING_FACTS && (asked++ & 2u);
        out->driver = (bp_text){other ? "liar-2" : "liar-1", 6};
        out->properties = known->properties;
        out->property_count = whole.property_count + 1;
    }
    return status;
}

static int32_t capabilities(uint32_t index, bp_capability *out, uint32_t capacity,
                            uint32_t *count) {
    bp_capability all[64];
    int32_t status = bp_liar_honest->core->capabilities(honest_index(index), all, 63, count);
    if (status != BP_OK || *count > 63 || (capacity && !out))
        return status;
    if (index + 1 == BP_LIE_FALSE_CLAIM)
        all[(*count)++] = (bp_capability){BP_CAP_CLUSTERS, BP_CAPABILITY_COUNT, 8};
    if (index + 1 == BP_LIE_HIDDEN_TIMESTAMP)
        for (uint32_t i = 0; i < *count; i++)
            if (all[i].id == BP_CAP_TIMESTAMP)
                all[i] = all[--*count];
    for (uint32_t i = 0; i < *count && i < capacity; i++)
        out[i] = all[i];
    return status;
}

static char shared_text[512];

void bp_liar_share_text(void) {
    char text[sizeof(shared_text)];
    bp_liar_honest->core->last_error(text, sizeof(text), NULL);
    pthread_mutex_lock(&lock);
    memcpy(shared_text, text, sizeof(text));
    pthread_mutex_unlock(&lock);
}

/* The shared text, cut as the contract says; 0 without one. */
static int tell_shared(char *buffer, uint64_t capacity, uint64_t *length) {
    pthread_mutex_lock(&lock);
    uint64_t bytes = strlen(shared_text), kept = bytes < capacity ? bytes : capacity - 1;
    if (bytes && length)
        *length = bytes;
    if (bytes && buffer && capacity) {
        memcpy(buffer, shared_text, kept);
        buffer[kept] = 0;
    }
    pthread_mutex_unlock(&lock);
    return bytes != 0;
}

static int32_t last_error(char *buffer, uint64_t capacity, uint64_t *length) {
    if (latest == BP_LIE_NO_ERROR_TEXT) {
        if (buffer && capacity)
            buffer[0] = 0;
        if (length)
            *length = 0;
        return BP_OK;
    }
    if (latest == BP_LIE_SHARED_TEXT && tell_shared(buffer, capacity, length))
        return BP_OK;
    /* Four bytes behind the caller's buffer. */
    if (latest == BP_LIE_TEXT_OVERFLOW && buffer && capacity)
        capacity += 4;
    return bp_liar_honest->core->last_error(buffer, capacity, length);
}

static const bp_core CORE = {
    .head = {1, sizeof(bp_core)},
    .enumerate = enumerate,
    .open = open_device,
    .close = close_device,
    .properties = properties,
    .capabilities = capabilities,
    .last_error = last_error,
};

int32_t bedplate_hal_backend_query(const bp_host *host, uint32_t wanted_major, const bp_api **out) {
    static bp_api answer;
    static bp_queue queue;
    int32_t status = bp_cpu_query(host, wanted_major, &bp_liar_honest);
    if (status != BP_OK)
        return status;
    answer = *bp_liar_honest;
    queue = *bp_liar_honest->queue;
    queue.submit = bp_liar_submit;
    queue.flush = bp_liar_flush;
    queue.destroy = bp_liar_destroy_queue;
    answer.core = &CORE;
    answer.mem = &bp_liar_memory;
    answer.queue = &queue;
    answer.timeline = &bp_liar_timeline;
    *out = &answer;
    return BP_OK;
}
