/*
 * Tokens of one row in descending probability, without sorting them all. They fall into bins
 * of equal width below the highest logit; a bin's count and mass are known, its members are sorted
 * (logit down, id up) only when a walk has to stop inside it.
 *
 * Philox4x32-10: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011,
 * section 3.3.
 */
#ifndef BEDPLATE_KERNELS_CPU_RANKING_H
#define BEDPLATE_KERNELS_CPU_RANKING_H

#include "launch.h"

#include <math.h>

#define BP_BINS 2048
/* Width of the binned range: logits this far below, over max(temperature, 1), share the last bin.
 */
#define BP_BINNED_RANGE 64.0f

typedef struct bp_ranking {
    const float *logits;
    const float *weights;       /* 1 for the highest logit */
    const uint32_t *candidates; /* tokens to rank, ids ascending */
    uint32_t *ids;              /* workspace, `tokens` entries */
    int64_t tokens;             /* how many candidates */
    float highest;
    float per_bin; /* bins per unit of logit */
    uint32_t start[BP_BINS + 1];
    double mass[BP_BINS];
} bp_ranking;

/* A prefix of the ranking: how many tokens, their weight, and the last of them. */
typedef struct bp_prefix {
    int64_t tokens;
    double mass;
    uint32_t last;
} bp_prefix;

/* Where a walk ends: after `tokens`, after the token that brings the mass to `mass` (past it when
 * `strict`), or before a token lighter than `least_weight`. */
typedef struct bp_stop {
    int64_t tokens;
    double mass;
    float least_weight;
    int strict;
} bp_stop;

/* A multiple of 2^-53 in [0, 1) from the first two words: 26 bits of one, 27 of the other. */
BP_INLINE double bp_uniform(uint64_t seed, uint64_t token_index) {
    uint32_t c[4] = {(uint32_t)token_index, (uint32_t)(token_index >> 32), 0, 0};
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t one = 0xd2511f53ull * c[0], two = 0xcd9e8d57ull * c[2];
        c[0] = (uint32_t)(two >> 32) ^ c[1] ^ k0;
        c[2] = (uint32_t)(one >> 32) ^ c[3] ^ k1;
        c[1] = (uint32_t)two;
        c[3] = (uint32_t)one;
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    return (double)((uint64_t)(c[0] >> 6) << 27 | c[1] >> 5) * 0x1p-53;
}

BP_INLINE int bp_bin(const bp_ranking *r, float logit) {
    float bin = (r->highest - logit) * r->per_bin;
    return bin < (float)(BP_BINS - 1) ? (int)bin : BP_BINS - 1;
}

/* Fill from logits without NaN and with a finite maximum. */
static inline void bp_rank(bp_ranking *r, float lowest, float temperature) {
    float wide = BP_BINNED_RANGE * (temperature > 1.0f ? temperature : 1.0f);
    float span = r->highest - lowest < wide ? r->highest - lowest : wide;
    r->per_bin = span > 0.0f ? (float)BP_BINS / span : 0.0f;
    if (r->per_bin > 3.0e38f)
        r->per_bin = 0.0f;
    __builtin_memset(r->start, 0, sizeof(r->start));
    for (int b = 0; b < BP_BINS; b++)
        r->mass[b] = 0.0;
    for (int64_t i = 0; i < r->tokens; i++) {
        uint32_t id = r->candidates[i];
        int b = bp_bin(r, r->logits[id]);
        r->start[b]++;
        r->mass[b] += (double)r->weights[id];
    }
    uint32_t end = 0;
    for (int b = 0; b <= BP_BINS; b++)
        r->start[b] = end += r->start[b];
    /* Backwards, so that ids ascend inside a bin and start[b] ends at its first member. */
    for (int64_t i = r->tokens - 1; i >= 0; i--) {
        uint32_t id = r->candidates[i];
        r->ids[--r->start[bp_bin(r, r->logits[id])]] = id;
    }
}

/* Whether token x ranks before token y. */
BP_INLINE int bp_before(const bp_ranking *r, uint32_t x, uint32_t y) {
    return r->logits[x] > r->logits[y] || (r->logits[x] == r->logits[y] && x < y);
}

static inline void bp_sift(const bp_ranking *r, uint32_t *heap, int64_t at, int64_t size) {
    for (int64_t child = 2 * at + 1; child < size; child = 2 * at + 1) {
        if (child + 1 < size && bp_before(r, heap[child], heap[child + 1]))
            child++;
        if (!bp_before(r, heap[at], heap[child]))
            return;
        uint32_t moved = heap[at];
        heap[at] = heap[child];
        heap[child] = moved;
        at = child;
    }
}

/* Heap sort of one bin: no recursion, no memory, and linear when it is in order already. */
static inline void bp_sort_bin(bp_ranking *r, int b) {
    uint32_t *ids = r->ids + r->start[b];
    int64_t size = (int64_t)r->start[b + 1] - r->start[b], ordered = 1;
    while (ordered < size && bp_before(r, ids[ordered - 1], ids[ordered]))
        ordered++;
    if (ordered >= size)
        return;
    for (int64_t i = size / 2 - 1; i >= 0; i--)
        bp_sift(r, ids, i, size);
    for (int64_t i = size - 1; i > 0; i--) {
        uint32_t moved = ids[0];
        ids[0] = ids[i];
        ids[i] = moved;
        bp_sift(r, ids, 0, i);
    }
}

/* Whether no member of bin b is lighter than `least`. */
BP_INLINE int bp_all_heavy(const bp_ranking *r, int b, float least) {
    if (least <= 0.0f)
        return 1;
    for (uint32_t i = r->start[b]; i < r->start[b + 1]; i++)
        if (r->weights[r->ids[i]] < least)
            return 0;
    return 1;
}

/* The longest prefix that `stop` allows. */
static inline bp_prefix bp_walk(bp_ranking *r, bp_stop stop) {
    bp_prefix prefix = {0, 0.0, 0};
    for (int b = 0; b < BP_BINS; b++) {
        int64_t members = (int64_t)r->start[b + 1] - r->start[b];
        if (!members)
            continue;
        if (prefix.tokens + members < stop.tokens &&
            (prefix.mass + r->mass[b]) * (1.0 + 1e-9) < stop.mass &&
            bp_all_heavy(r, b, stop.least_weight)) {
            prefix.tokens += members;
            prefix.mass += r->mass[b];
            continue;
        }
        bp_sort_bin(r, b);
        for (uint32_t i = r->start[b]; i < r->start[b + 1]; i++) {
            double weight = (double)r->weights[r->ids[i]];
            if (weight < (double)stop.least_weight)
                return prefix;
            prefix.tokens++;
            prefix.mass += weight;
            prefix.last = r->ids[i];
            if (prefix.tokens >= stop.tokens || prefix.mass > stop.mass ||
                (!stop.strict && prefix.mass >= stop.mass))
                return prefix;
        }
    }
    return prefix;
}

#endif
