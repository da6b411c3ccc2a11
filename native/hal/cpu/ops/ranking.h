/*
 * The tokens of one row in descending probability, without sorting them all.
 *
 * Tokens fall into bins of equal width below the highest logit; a bin's count and mass are known,
 * its members are sorted (logit down, id up) only when a walk has to stop inside it. Three passes
 * over the row, then a few bins.
 *
 * Weights and candidates may be made before, as tuned kernels do, or are computed and all tokens.
 * Used by the portable loops and by native/kernels/cpu.
 */
#ifndef BEDPLATE_HAL_CPU_OPS_RANKING_H
#define BEDPLATE_HAL_CPU_OPS_RANKING_H

#include <math.h>
#include <stdint.h>

#define BP_CPU_BINS 2048
/* Width of the binned range: logits this far below, over max(temperature, 1), share the last bin.
 */
#define BP_CPU_BINNED_RANGE 64.0f

typedef struct bp_cpu_ranking {
    const float *logits;
    const float *weights;       /* 1 for the highest logit; null to compute them */
    const uint32_t *candidates; /* tokens to rank, ids ascending; null for all */
    uint32_t *ids;              /* workspace, `tokens` entries */
    int64_t tokens;             /* how many to rank */
    float highest;
    float per_bin; /* bins per unit of logit */
    double inverse_temperature;
    uint32_t start[BP_CPU_BINS + 1];
    double mass[BP_CPU_BINS];
} bp_cpu_ranking;

/* A prefix of the ranking: how many tokens, their weight, and the last of them. */
typedef struct bp_cpu_prefix {
    int64_t tokens;
    double mass;
    uint32_t last;
} bp_cpu_prefix;

/* Where a walk ends: after `tokens`, after the token that brings the mass to `mass` (past it when
 * `strict`), or before a token lighter than `least_weight`. */
typedef struct bp_cpu_stop {
    int64_t tokens;
    double mass;
    double least_weight;
    int strict;
} bp_cpu_stop;

/* Unnormalised probability: 1 for the highest logit. */
static inline double bp_cpu_weight_of(const bp_cpu_ranking *r, float logit) {
    return exp(((double)logit - (double)r->highest) * r->inverse_temperature);
}

static inline double bp_cpu_weight(const bp_cpu_ranking *r, uint32_t id) {
    return r->weights ? (double)r->weights[id] : bp_cpu_weight_of(r, r->logits[id]);
}

static inline uint32_t bp_cpu_candidate(const bp_cpu_ranking *r, int64_t i) {
    return r->candidates ? r->candidates[i] : (uint32_t)i;
}

static inline int bp_cpu_bin(const bp_cpu_ranking *r, float logit) {
    float bin = (r->highest - logit) * r->per_bin;
    return bin < (float)(BP_CPU_BINS - 1) ? (int)bin : BP_CPU_BINS - 1;
}

/* Fill from logits without NaN and with a finite maximum. */
static inline void bp_cpu_rank(bp_cpu_ranking *r, float lowest, float temperature) {
    float wide = BP_CPU_BINNED_RANGE * (temperature > 1.0f ? temperature : 1.0f);
    float span = r->highest - lowest < wide ? r->highest - lowest : wide;
    r->per_bin = span > 0.0f ? (float)BP_CPU_BINS / span : 0.0f;
    if (r->per_bin > 3.0e38f)
        r->per_bin = 0.0f;
    r->inverse_temperature = 1.0 / (double)temperature;
    for (int b = 0; b <= BP_CPU_BINS; b++)
        r->start[b] = 0;
    for (int b = 0; b < BP_CPU_BINS; b++)
        r->mass[b] = 0.0;
    for (int64_t i = 0; i < r->tokens; i++) {
        uint32_t id = bp_cpu_candidate(r, i);
        int b = bp_cpu_bin(r, r->logits[id]);
        r->start[b]++;
        r->mass[b] += bp_cpu_weight(r, id);
    }
    uint32_t end = 0;
    for (int b = 0; b <= BP_CPU_BINS; b++)
        r->start[b] = end += r->start[b];
    /* Backwards, so that ids ascend inside a bin and start[b] ends at its first member. */
    for (int64_t i = r->tokens - 1; i >= 0; i--) {
        uint32_t id = bp_cpu_candidate(r, i);
        r->ids[--r->start[bp_cpu_bin(r, r->logits[id])]] = id;
    }
}

/* Whether token x ranks before token y. */
static inline int bp_cpu_before(const bp_cpu_ranking *r, uint32_t x, uint32_t y) {
    return r->logits[x] > r->logits[y] || (r->logits[x] == r->logits[y] && x < y);
}

static inline void bp_cpu_sift(const bp_cpu_ranking *r, uint32_t *heap, int64_t at, int64_t size) {
    for (int64_t child = 2 * at + 1; child < size; child = 2 * at + 1) {
        if (child + 1 < size && bp_cpu_before(r, heap[child], heap[child + 1]))
            child++;
        if (!bp_cpu_before(r, heap[at], heap[child]))
            return;
        uint32_t moved = heap[at];
        heap[at] = heap[child];
        heap[child] = moved;
        at = child;
    }
}

/* Heap sort of one bin: no recursion, no memory, and linear when it is in order already. */
static inline void bp_cpu_sort_bin(bp_cpu_ranking *r, int b) {
    uint32_t *ids = r->ids + r->start[b];
    int64_t size = (int64_t)r->start[b + 1] - r->start[b], ordered = 1;
    while (ordered < size && bp_cpu_before(r, ids[ordered - 1], ids[ordered]))
        ordered++;
    if (ordered >= size)
        return;
    for (int64_t i = size / 2 - 1; i >= 0; i--)
        bp_cpu_sift(r, ids, i, size);
    for (int64_t i = size - 1; i > 0; i--) {
        uint32_t moved = ids[0];
        ids[0] = ids[i];
        ids[i] = moved;
        bp_cpu_sift(r, ids, 0, i);
    }
}

/* Whether no member of bin b is lighter than `least`; 0 also when that would cost an exp a member
 * to know. */
static inline int bp_cpu_all_heavy(const bp_cpu_ranking *r, int b, double least) {
    if (least <= 0.0)
        return 1;
    if (!r->weights) {
        /* The lightest member a bin may hold, less a little for rounding in bp_cpu_bin. */
        float edge = r->highest - (float)(b + 2) / r->per_bin;
        return b < BP_CPU_BINS - 1 && r->per_bin > 0.0f && bp_cpu_weight_of(r, edge) >= least;
    }
    for (uint32_t i = r->start[b]; i < r->start[b + 1]; i++)
        if ((double)r->weights[r->ids[i]] < least)
            return 0;
    return 1;
}

/* The longest prefix that `stop` allows. */
static inline bp_cpu_prefix bp_cpu_walk(bp_cpu_ranking *r, bp_cpu_stop stop) {
    bp_cpu_prefix prefix = {0, 0.0, 0};
    for (int b = 0; b < BP_CPU_BINS; b++) {
        int64_t members = (int64_t)r->start[b + 1] - r->start[b];
        if (!members)
            continue;
        if (prefix.tokens + members < stop.tokens &&
            (prefix.mass + r->mass[b]) * (1.0 + 1e-9) < stop.mass &&
            bp_cpu_all_heavy(r, b, stop.least_weight)) {
            prefix.tokens += members;
            prefix.mass += r->mass[b];
            continue;
        }
        bp_cpu_sort_bin(r, b);
        for (uint32_t i = r->start[b]; i < r->start[b + 1]; i++) {
            double weight = bp_cpu_weight(r, r->ids[i]);
            if (weight < stop.least_weight)
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
