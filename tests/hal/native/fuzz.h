/*
 * Words of the fuzzer: a seeded stream of numbers, handles that are mostly wrong in one way, and
 * structs of every size in allocations of exactly that size, so that ASan sees one byte too many.
 */
#ifndef BEDPLATE_TESTS_HAL_FUZZ_H
#define BEDPLATE_TESTS_HAL_FUZZ_H

#include "bedplate/hal_loader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES, MEMORIES, QUEUES, TIMELINES, MODULES, KERNELS, PLANS, KINDS };

#define POOL        16
#define MOST_CUT    128
#define MOST_NAMES  96
#define PINNED      4096
#define OUT_PATTERN 0x5a5a5a5a5a5a5a5aull

typedef struct fuzzer {
    uint64_t state;
    /* Handles made lately, stale ones among them. */
    uint64_t pools[KINDS][POOL];
    /* The recipe that a plan was made by; fuzz_ops.c. */
    uint32_t recipes[POOL];
    uint64_t device, queue;
    /* What the present call was given; freed after it. */
    void *cuts[MOST_CUT];
    uint32_t cut_count;
    uint32_t index, turns;
    uint64_t calls, accepted;
    /* Accepted calls by function, and accepted commands by kind: what was reached at all. */
    const char *names[MOST_NAMES];
    uint64_t counts[MOST_NAMES];
    uint32_t in_batch[6];
    unsigned char pinned[PINNED];
} fuzzer;

/* SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). */
static inline uint64_t draw(fuzzer *own) {
    uint64_t z = own->state += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

static inline uint64_t below(fuzzer *own, uint64_t most) {
    return draw(own) % most;
}

static inline int chance(fuzzer *own, uint32_t percent) {
    return below(own, 100) < percent;
}

/* A number that breaks arithmetic as often as not. */
static inline uint64_t number(fuzzer *own) {
    static const uint64_t EDGES[] = {
        0, 1, 7, 8, 63, 64, 4096, UINT32_MAX, 1ull << 32, INT64_MAX, UINT64_MAX - 7, UINT64_MAX};
    switch (below(own, 4)) {
    case 0:
        return EDGES[below(own, sizeof(EDGES) / sizeof(EDGES[0]))];
    case 1:
        return draw(own);
    default:
        return below(own, 300);
    }
}

extern const bp_api *fuzz_api;
extern const bp_ops *fuzz_table_ops;
#define api fuzz_api
#define ops fuzz_table_ops

/* Ends the run with the seed and the call that broke a promise. */
void fuzz_broken(const fuzzer *own, const char *call, const char *what, long long value);

/* Holds an answer to what every answer must keep, counts it, and returns it. `out` may be null. */
int32_t fuzz_checked(fuzzer *own, const char *call, int32_t status, const uint64_t *out);
#define CALL(call, out) fuzz_checked(own, #call, (call), (out))

/* The device of a call about objects: our own, everyone's, or none. */
uint64_t fuzz_device(fuzzer *own);

/* One call of a table, a file each; fuzz_queue.c gives batches the commands of fuzz_ops.c too. */
void fuzz_memory(fuzzer *own);
void fuzz_queue(fuzzer *own);
void fuzz_timeline(fuzzer *own);
void fuzz_module(fuzzer *own);
void fuzz_ops(fuzzer *own);
void *fuzz_op_command(fuzzer *own);

/* The native module that is loaded. */
extern const char *fuzz_module_path;

/* All fuzzers, when there is more than one: they use each other's handles too. */
extern fuzzer *fuzz_all;
extern uint64_t fuzz_count;

/* Puts a handle in place of an older one; where. */
static inline uint32_t keep(fuzzer *own, int kind, uint64_t handle) {
    uint32_t slot = (uint32_t)below(own, POOL);
    __atomic_store_n(&own->pools[kind][slot], handle, __ATOMIC_RELAXED);
    return slot;
}

/* Keeps what a call made, if it did. */
static inline void made(fuzzer *own, int kind, int32_t status, const uint64_t *out) {
    if (status == BP_OK && out)
        keep(own, kind, *out);
}

static inline uint64_t pooled(fuzzer *own, int kind) {
    fuzzer *from = fuzz_count > 1 && chance(own, 30) ? &fuzz_all[below(own, fuzz_count)] : own;
    return __atomic_load_n(&from->pools[kind][below(own, POOL)], __ATOMIC_RELAXED);
}

/* A handle of that kind: live in most cases, else stale, of another kind, spoiled, or nothing. */
static inline uint64_t handle(fuzzer *own, int kind) {
    uint64_t found = pooled(own, kind);
    switch (below(own, 24)) {
    case 0:
        return pooled(own, (int)below(own, KINDS));
    case 1:
        return found ^ 1ull << below(own, 64);
    case 2:
        return number(own);
    default:
        return found;
    }
}

/* Memory of exactly `bytes`, freed after the call; null when the call holds enough already. */
static inline void *cut(fuzzer *own, uint64_t bytes) {
    if (own->cut_count == MOST_CUT)
        return NULL;
    void *made = malloc(bytes ? bytes : 1);
    if (made)
        own->cuts[own->cut_count++] = made;
    return made;
}

/* Storage for a result, or null now and then. */
static inline uint64_t *place(fuzzer *own) {
    uint64_t *made = chance(own, 3) ? NULL : cut(own, sizeof(*made));
    if (made)
        *made = OUT_PATTERN;
    return made;
}

static inline void after_call(fuzzer *own) {
    while (own->cut_count)
        free(own->cuts[--own->cut_count]);
}

/* `good` (known bytes, reserved[4] at an offset) as a caller of some age and honesty gives it. A
 * size that no struct can have comes with only a head behind it: nothing more may be looked at. */
static inline void *given(fuzzer *own, const void *good, uint32_t known, uint32_t reserved) {
    uint32_t size = known, room;
    int dirty = 0;
    switch (below(own, 16)) {
    case 0:
        return NULL;
    case 1:
        size = 8 * (uint32_t)(1 + below(own, known / 8));
        break;
    case 2:
        size = known + 8 * (uint32_t)below(own, 9);
        break;
    case 3:
        size = known + 8 * (uint32_t)(1 + below(own, 9));
        dirty = 1;
        break;
    case 4:
        size = (uint32_t)number(own);
        break;
    }
    int possible = size >= 8 && size <= 65536 && size % 8 == 0;
    room = possible ? size : 8;
    unsigned char *made = cut(own, room);
    if (!made)
        return NULL;
    memset(made, 0, room);
    memcpy(made, good, room < known ? room : known);
    bp_head head = {chance(own, 3) ? (uint32_t)number(own) : 1, size};
    memcpy(made, &head, sizeof(head));
    if (dirty && room > known)
        made[known + below(own, room - known)] = (unsigned char)(1 + below(own, 255));
    if (chance(own, 4) && room >= reserved + 32)
        made[reserved + below(own, 32)] = (unsigned char)(1 + below(own, 255));
    return made;
}

#define GIVEN(own, value)                                                                          \
    given((own), &(value), sizeof(value), offsetof(__typeof__(value), reserved))

/* Counts an accepted call or command; `name` ends at its first parenthesis. */
static inline void reached(fuzzer *own, const char *name) {
    size_t length = strcspn(name, "(");
    for (uint32_t i = 0; i < MOST_NAMES; i++) {
        if (!own->names[i])
            own->names[i] = name;
        if (strncmp(own->names[i], name, length) == 0 && strcspn(own->names[i], "(") == length) {
            own->counts[i]++;
            return;
        }
    }
}

/* Text of exactly its length, or with a null or a length of nothing. */
static inline bp_text text(fuzzer *own, const char *words) {
    bp_text made = {words, strlen(words)};
    if (chance(own, 5))
        made.length = below(own, made.length + 1);
    if (chance(own, 3))
        made = (bp_text){NULL, 0};
    return made;
}

#endif
