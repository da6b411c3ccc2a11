/*
 * sample: one token per row of logits; temperature, top-k, top-p, min-p, then the inverse CDF in
 * descending probability (ties: lower id first) driven by Philox4x32-10.
 *
 * A greedy row is one vector scan. Otherwise weights exp((x - max) / temperature) are made once, in
 * vectors; the heavy tokens are ranked (hal/cpu/ops/ranking.h), and all of them only when the heavy
 * ones do not settle the row. Workspace: per row, V weights f32, V candidates u32 and V ids u32.
 */
#include "../../hal/cpu/ops/philox.h"
#include "../../hal/cpu/ops/ranking.h"
#include "launch.h"

/* Tokens this much less likely than the likeliest are left out at first. */
#define CANDIDATE_WEIGHT 0x1p-13f

typedef struct parameters {
    const float *logits;
    const uint8_t *rows;
    const uint32_t *count;
    int32_t *tokens;
    float *logprob;
    uint8_t *workspace;
    int64_t row_count, width, logits_stride, rows_stride;
} parameters;

/* Highest and lowest finite value; 0 when there is a NaN or the highest is not finite. */
static int extremes(const float *x, int64_t width, float *highest, float *lowest) {
    bp_vf high = bp_set(-INFINITY), low = bp_set(INFINITY), poison = bp_set(0.0f);
    bp_vf floor = bp_set(-3.4028235e38f);
    int64_t i = 0;
    for (; i + BP_LANES <= width; i += BP_LANES) {
        bp_vf v = bp_load(x + i);
        high = bp_max(v, high);
        low = bp_min(bp_max(v, floor), low);
        poison = poison + (v - v) * bp_set(0.0f); /* also NaN for an infinity: looked at below */
    }
    float top = bp_highest(high), bottom = -bp_highest(bp_set(0.0f) - low), bad = bp_sum(poison);
    int nan = 0;
    for (; i < width; i++) {
        nan |= x[i] != x[i];
        top = x[i] > top ? x[i] : top;
        float finite = x[i] > -3.4028235e38f ? x[i] : -3.4028235e38f;
        bottom = finite < bottom ? finite : bottom;
    }
    if (bad != 0.0f)
        for (i = 0; i < width; i++)
            nan |= x[i] != x[i];
    *highest = top;
    *lowest = bottom;
    return !nan && top >= -3.4028235e38f && top <= 3.4028235e38f;
}

static int32_t first_equal(const float *x, int64_t width, float value) {
    for (int64_t i = 0; i < width; i += 64) {
        int64_t end = i + 64 < width ? i + 64 : width;
        int found = 0;
        for (int64_t j = i; j < end; j++)
            found |= x[j] == value;
        for (int64_t j = i; found && j < end; j++)
            if (x[j] == value)
                return (int32_t)j;
    }
    return -1;
}

/* exp((x - highest) * factor) into `to` when given; their sum, in f64 over runs of 64 vectors. */
static double exponentials(const float *x, int64_t width, float highest, float factor, float *to) {
    double total = 0.0;
    for (int64_t run = 0; run < width; run += 64 * BP_LANES) {
        int64_t end = run + 64 * BP_LANES < width ? run + 64 * BP_LANES : width;
        bp_vf sum = bp_set(0.0f);
        for (int64_t i = run; i < end; i += BP_LANES) {
            int64_t left = end - i < BP_LANES ? end - i : BP_LANES;
            bp_vf v = left == BP_LANES ? bp_load(x + i) : bp_load_part(x + i, left);
            v = bp_exp((v - bp_set(highest)) * bp_set(factor));
            if (left < BP_LANES) {
                float flat[BP_LANES];
                bp_store(flat, v);
                v = bp_load_part(flat, left);
            }
            sum = sum + v;
            if (to)
                bp_store_part(to + i, v, left);
        }
        total += (double)bp_sum(sum);
    }
    return total;
}

/* Ids of weights of at least `least`, ascending; returns how many. */
static int64_t collect(const float *weights, int64_t width, float least, uint32_t *ids) {
    int64_t count = 0, i = 0;
    for (; i + BP_LANES <= width; i += BP_LANES) {
        uint32_t found = bp_at_least(bp_load(weights + i), bp_set(least));
        for (; found; found &= found - 1)
            ids[count++] = (uint32_t)(i + __builtin_ctz(found));
    }
    for (; i < width; i++)
        if (weights[i] >= least)
            ids[count++] = (uint32_t)i;
    return count;
}

/* The token of a ranked row, or -1 when the candidates do not settle it. `total` is the weight of
 * all tokens, `whole` says that all are candidates. */
static int32_t settle(bp_cpu_ranking *ranking, const bp_sample_row *row, int64_t width,
                      double total, int whole) {
    double mass = 0.0;
    for (int b = 0; b < BP_CPU_BINS; b++)
        mass += ranking->mass[b];
    bp_cpu_prefix kept = {.tokens = width, .mass = whole ? mass : total};
    if (row->top_k > 0 && row->top_k < width) {
        if (!whole && row->top_k > ranking->tokens)
            return -1;
        kept = bp_cpu_walk(ranking, (bp_cpu_stop){row->top_k, INFINITY, 0.0, 0});
    }
    if (row->top_p < 1.0f) {
        double wanted = (double)row->top_p * kept.mass;
        if (!whole && wanted > mass * (1.0 - 1e-6))
            return -1;
        kept = bp_cpu_walk(ranking, (bp_cpu_stop){kept.tokens, wanted, 0.0, 0});
    }
    if (row->min_p > 0.0f) {
        double least = row->min_p < 1.0f ? (double)row->min_p : 1.0;
        if (!whole && least < (double)CANDIDATE_WEIGHT)
            return -1;
        kept = bp_cpu_walk(ranking, (bp_cpu_stop){kept.tokens, INFINITY, least, 0});
    }
    double target = bp_cpu_uniform(row->seed, row->token_index) * kept.mass;
    if (!whole && target > mass * (1.0 - 1e-6))
        return -1;
    return (int32_t)bp_cpu_walk(ranking, (bp_cpu_stop){kept.tokens, target, 0.0, 1}).last;
}

static int32_t draw(const parameters *p, const float *x, const bp_sample_row *row, float highest,
                    float lowest, uint8_t *workspace) {
    float *weights = (float *)(void *)workspace;
    uint32_t *candidates = (uint32_t *)(void *)(workspace + p->width * 4);
    bp_cpu_ranking ranking = {.logits = x,
                              .weights = weights,
                              .candidates = candidates,
                              .ids = (uint32_t *)(void *)(workspace + p->width * 8),
                              .highest = highest};
    double total = exponentials(x, p->width, highest, 1.0f / row->temperature, weights);
    float least[2] = {CANDIDATE_WEIGHT, 0.0f};
    int32_t token = -1;
    for (int whole = 0; whole < 2 && token < 0; whole++) {
        ranking.tokens = collect(weights, p->width, least[whole], candidates);
        bp_cpu_rank(&ranking, lowest, row->temperature);
        token = settle(&ranking, row, p->width, total, whole);
    }
    return token;
}

BP_KERNEL(sample) {
    const parameters *p = BP_PARAMETERS(parameters, launch);
    bp_span span =
        bp_share(bp_rows(p->count, p->row_count), launch->grid[0], first_block, block_count);
    for (int64_t r = span.from; r < span.to; r++) {
        const float *x = p->logits + r * p->logits_stride;
        bp_sample_row row;
        __builtin_memcpy(&row, p->rows + r * p->rows_stride, sizeof(row));
        float highest, lowest;
        int32_t token = -1;
        if (extremes(x, p->width, &highest, &lowest) && row.temperature >= 0.0f)
            token = row.temperature == 0.0f
                        ? first_equal(x, p->width, highest)
                        : draw(p, x, &row, highest, lowest, p->workspace + r * p->width * 12);
        p->tokens[r] = token;
        if (p->logprob)
            p->logprob[r] = token < 0 ? NAN
                                      : (float)((double)x[token] - (double)highest -
                                                log(exponentials(x, p->width, highest, 1.0f, 0)));
    }
    return BP_OK;
}
