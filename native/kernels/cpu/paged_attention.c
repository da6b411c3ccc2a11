/*
 * paged_attention: causal softmax attention of a ragged batch over the paged cache, prefill and
 * decode alike.
 *
 * A tile is up to TOKENS consecutive tokens of one sequence and all query heads of one KV head.
 * Keys come a vector's worth (BP_LANES) at a time: transposed once, so that each row of the tile
 * gets its scores with one multiply-add per dimension and its exponentials in one vector; values
 * are widened once. Softmax runs online; the chunks of keys start at multiples of BP_LANES whatever
 * the tile, so a row's result does not depend on its neighbours. Rows that see only part of a chunk
 * take it alone, key by key, so nothing past a row's position reaches it, not even a NaN.
 *
 * Work is shared by the number of keys seen, not by tokens. Heads are multiples of BP_LANES, at
 * most 128; block sizes are multiples of BP_LANES.
 */
#include "launch.h"
#include "transpose.h"

#include <math.h>

typedef struct parameters {
    const float *q;
    const void *k_cache;
    const void *v_cache;
    const int32_t *block_table;
    const int32_t *query_start;
    const int32_t *context_length;
    const uint32_t *sequence_count;
    void *out;
    int64_t tokens, heads, kv_heads, head_dim, block_size, blocks, sequences, table_stride;
    int64_t table_width, q_row_stride, q_head_stride, out_row_stride, out_head_stride;
    uint32_t k_type, v_type, out_type, sliding_window;
    float scale, soft_cap;
} parameters;

enum { TOKENS = 4, MOST_ROWS = 32, MOST_DIM = 128 };

typedef struct tile {
    int64_t rows; /* tokens * group */
    int64_t dim;
    float query[MOST_ROWS][MOST_DIM];
    float sum[MOST_ROWS][MOST_DIM];
    float score[MOST_ROWS][BP_LANES];
    float largest[MOST_ROWS];
    float total[MOST_ROWS];
    int64_t seen[MOST_ROWS];
    int64_t from[MOST_ROWS];
    float keys[MOST_DIM][BP_LANES];   /* transposed */
    float values[BP_LANES][MOST_DIM]; /* widened */
} __attribute__((aligned(64))) tile;

/* Positions seen by token j of a sequence, and the first of them. */
typedef struct sight {
    int64_t seen, from;
} sight;

BP_INLINE sight sight_of(const parameters *p, int64_t s, int64_t token) {
    int64_t seen = p->context_length[s] - (p->query_start[s + 1] - token) + 1;
    int64_t window = p->sliding_window;
    sight result = {seen, window && seen > window ? seen - window : 0};
    return result;
}

static void load_keys(tile *t, const void *cache, uint32_t type, int64_t at, int64_t keys) {
    int64_t width = type == BP_F32 ? t->dim : t->dim / 2, size = type == BP_F32 ? 4 : 2;
    const char *from = (const char *)cache + at * size;
    for (int64_t d = 0; d < width; d += BP_LANES) {
        bp_vi words[BP_LANES];
        if (width - d >= BP_LANES) {
            for (int64_t k = 0; k < BP_LANES; k++)
                words[k] =
                    k < keys ? bp_load_words(from + k * t->dim * size + d * 4) : bp_no_words();
        } else {
            for (int64_t k = 0; k < BP_LANES; k++) {
                words[k] = bp_no_words();
                if (k < keys)
                    __builtin_memcpy(&words[k], from + k * t->dim * size + d * 4,
                                     (size_t)(width - d) * 4);
            }
        }
        bp_transpose(words);
        int64_t left = width - d < BP_LANES ? width - d : BP_LANES;
        for (int64_t i = 0; i < left; i++) {
            if (type == BP_F32) {
                bp_store(t->keys[d + i], bp_as_floats(words[i]));
            } else {
                bp_store(t->keys[2 * (d + i)], bp_first_bf16(words[i]));
                bp_store(t->keys[2 * (d + i) + 1], bp_second_bf16(words[i]));
            }
        }
    }
}

static void load_values(tile *t, const void *cache, uint32_t type, int64_t at, int64_t keys) {
    for (int64_t k = 0; k < keys; k++, at += t->dim)
        for (int64_t d = 0; d < t->dim; d += BP_LANES)
            bp_store(t->values[k] + d, type == BP_F32
                                           ? bp_load((const float *)cache + at + d)
                                           : bp_load_bf16((const uint16_t *)cache + at + d));
}

/* Scores of `rows` rows against the chunk, raw. */
BP_INLINE void score_rows(tile *t, int64_t row, int rows) {
    bp_vf sums[4];
    for (int r = 0; r < rows; r++)
        sums[r] = bp_set(0.0f);
    for (int64_t d = 0; d < t->dim; d++) {
        bp_vf key = bp_load(t->keys[d]);
        for (int r = 0; r < rows; r++)
            sums[r] = bp_fma(bp_set(t->query[row + r][d]), key, sums[r]);
    }
    for (int r = 0; r < rows; r++)
        bp_store(t->score[row + r], sums[r]);
}

/* Scores to weights of one row for keys [first, last) of the chunk; the row's sums shrink if its
 * largest score grew. */
static void soften(tile *t, const parameters *p, int64_t row, int64_t first, int64_t last) {
    float *score = t->score[row];
    if (p->soft_cap > 0.0f)
        for (int i = 0; i < BP_LANES; i++)
            score[i] = p->soft_cap * tanhf(score[i] * p->scale / p->soft_cap);
    else
        bp_store(score, bp_load(score) * bp_set(p->scale));
    for (int64_t i = 0; i < first; i++)
        score[i] = -INFINITY;
    for (int64_t i = last; i < BP_LANES; i++)
        score[i] = -INFINITY;
    float largest = bp_highest(bp_load(score));
    if (largest > t->largest[row]) {
        float shrink[BP_LANES];
        bp_store(shrink, bp_exp(bp_set(t->largest[row] - largest)));
        t->largest[row] = largest;
        t->total[row] *= shrink[0];
        for (int64_t d = 0; d < t->dim; d += BP_LANES)
            bp_store(t->sum[row] + d, bp_load(t->sum[row] + d) * bp_set(shrink[0]));
    }
    bp_vf weight = bp_exp(bp_load(score) - bp_set(t->largest[row]));
    bp_store(score, weight);
    t->total[row] += bp_sum(weight);
}

/* sum += weight * value for `rows` rows and keys [first, last). */
BP_INLINE void blend_rows(tile *t, int64_t row, int rows, int64_t first, int64_t last) {
    for (int64_t d = 0; d < t->dim; d += 4 * BP_LANES) {
        int parts = (int)((t->dim - d) / BP_LANES < 4 ? (t->dim - d) / BP_LANES : 4);
        if (parts == 4) {
            bp_vf sums[4][4];
            for (int r = 0; r < rows; r++)
                for (int j = 0; j < 4; j++)
                    sums[r][j] = bp_load(t->sum[row + r] + d + j * BP_LANES);
            for (int64_t k = first; k < last; k++)
                for (int j = 0; j < 4; j++) {
                    bp_vf value = bp_load(t->values[k] + d + j * BP_LANES);
                    for (int r = 0; r < rows; r++)
                        sums[r][j] = bp_fma(bp_set(t->score[row + r][k]), value, sums[r][j]);
                }
            for (int r = 0; r < rows; r++)
                for (int j = 0; j < 4; j++)
                    bp_store(t->sum[row + r] + d + j * BP_LANES, sums[r][j]);
            continue;
        }
        for (int r = 0; r < rows; r++)
            for (int j = 0; j < parts; j++) {
                bp_vf sum = bp_load(t->sum[row + r] + d + j * BP_LANES);
                for (int64_t k = first; k < last; k++)
                    sum = bp_fma(bp_set(t->score[row + r][k]),
                                 bp_load(t->values[k] + d + j * BP_LANES), sum);
                bp_store(t->sum[row + r] + d + j * BP_LANES, sum);
            }
    }
}

/* Fold the loaded chunk, keys [position, position + BP_LANES), into every row that sees some. */
static void fold(tile *t, const parameters *p, int64_t position) {
    int64_t row = 0;
    for (; row + 4 <= t->rows; row += 4)
        score_rows(t, row, 4);
    for (; row < t->rows; row++)
        score_rows(t, row, 1);
    int64_t end = position + BP_LANES;
    for (row = 0; row < t->rows;) {
        int64_t whole = 0;
        while (row + whole < t->rows && whole < 4 && t->from[row + whole] <= position &&
               t->seen[row + whole] >= end)
            soften(t, p, row + whole++, 0, BP_LANES);
        if (whole == 4) {
            blend_rows(t, row, 4, 0, BP_LANES);
            row += 4;
            continue;
        }
        for (; whole; whole--, row++)
            blend_rows(t, row, 1, 0, BP_LANES);
        if (row == t->rows || (t->from[row] <= position && t->seen[row] >= end))
            continue;
        int64_t first = t->from[row] > position ? t->from[row] - position : 0;
        int64_t last = t->seen[row] < end ? t->seen[row] - position : BP_LANES;
        if (first < last) {
            soften(t, p, row, first, last);
            blend_rows(t, row, 1, first, last);
        }
        row++;
    }
}

static int32_t attend(const parameters *p, tile *t, const bp_native_launch *launch, int64_t s,
                      int64_t token, int64_t tokens, int64_t kv_head) {
    int64_t group = p->heads / p->kv_heads, first_head = kv_head * group;
    t->dim = p->head_dim;
    t->rows = 0;
    for (int64_t i = 0; i < tokens; i++) {
        sight see = sight_of(p, s, token + i);
        for (int64_t h = 0; h < group; h++, t->rows++) {
            const float *q =
                p->q + (token + i) * p->q_row_stride + (first_head + h) * p->q_head_stride;
            __builtin_memcpy(t->query[t->rows], q, (size_t)p->head_dim * sizeof(float));
            __builtin_memset(t->sum[t->rows], 0, (size_t)p->head_dim * sizeof(float));
            t->largest[t->rows] = -INFINITY;
            t->total[t->rows] = 0.0f;
            t->seen[t->rows] = see.seen;
            t->from[t->rows] = see.from;
        }
    }
    const int32_t *table = p->block_table + s * p->table_stride;
    int64_t end = t->seen[t->rows - 1];
    for (int64_t at = t->from[0] / BP_LANES * BP_LANES; at < end; at += BP_LANES) {
        int64_t block = table[at / p->block_size];
        if (block < 0 || block >= p->blocks)
            return bp_native_fail(
                launch->fault, BP_LAUNCH_FAULT, (uint64_t)token, block,
                "paged_attention: block %lld of sequence %lld, the cache has %lld",
                (long long)block, (long long)s, (long long)p->blocks);
        int64_t keys = end - at < BP_LANES ? end - at : BP_LANES;
        int64_t element =
            ((block * p->kv_heads + kv_head) * p->block_size + at % p->block_size) * p->head_dim;
        load_keys(t, p->k_cache, p->k_type, element, keys);
        load_values(t, p->v_cache, p->v_type, element, keys);
        fold(t, p, at);
    }
    for (int64_t row = 0; row < t->rows; row++) {
        int64_t at = (token + row / group) * p->out_row_stride +
                     (first_head + row % group) * p->out_head_stride;
        bp_vf factor = bp_set(1.0f / t->total[row]);
        for (int64_t d = 0; d < p->head_dim; d += BP_LANES) {
            bp_vf v = bp_load(t->sum[row] + d) * factor;
            if (p->out_type == BP_F32)
                bp_store((float *)p->out + at + d, v);
            else
                bp_store_bf16((uint16_t *)p->out + at + d, v);
        }
    }
    return BP_OK;
}

/* One KV head of the whole batch costs this many seen keys; also checks the batch. */
static int64_t total_cost(const parameters *p, int64_t sequences, const bp_native_launch *launch) {
    int64_t cost = 0;
    for (int64_t s = 0; s < sequences; s++) {
        int64_t start = p->query_start[s], queries = p->query_start[s + 1] - start;
        int64_t length = p->context_length[s];
        if (queries == 0)
            continue;
        if (queries < 0 || start < 0 || start + queries > p->tokens)
            return bp_native_fail(launch->fault, BP_LAUNCH_FAULT, (uint64_t)s, start,
                                  "paged_attention: sequence %lld has queries %lld to %lld of %lld",
                                  (long long)s, (long long)start, (long long)(start + queries),
                                  (long long)p->tokens);
        if (length < queries || length > p->table_width * p->block_size)
            return bp_native_fail(launch->fault, BP_LAUNCH_FAULT, (uint64_t)s, length,
                                  "paged_attention: context of %lld for %lld queries of sequence "
                                  "%lld, the block table "
                                  "holds %lld",
                                  (long long)length, (long long)queries, (long long)s,
                                  (long long)(p->table_width * p->block_size));
        for (int64_t token = start; token < start + queries; token++) {
            sight see = sight_of(p, s, token);
            cost += see.seen - see.from + BP_LANES;
        }
    }
    return cost;
}

/* Tokens of one KV head whose cost, counted from the batch's start, falls in [from, to). */
static int32_t head_share(const parameters *p, tile *t, const bp_native_launch *launch,
                          int64_t sequences, int64_t kv_head, int64_t from, int64_t to) {
    int64_t cost = 0, most = MOST_ROWS / (p->heads / p->kv_heads);
    most = most < TOKENS ? most : TOKENS;
    for (int64_t s = 0; s < sequences && cost < to; s++) {
        int64_t pending = 0, token = p->query_start[s];
        for (; token < p->query_start[s + 1] && cost < to; token++) {
            sight see = sight_of(p, s, token);
            int mine = cost >= from;
            cost += see.seen - see.from + BP_LANES;
            if (!mine)
                continue;
            if (++pending < most)
                continue;
            int32_t status = attend(p, t, launch, s, token + 1 - pending, pending, kv_head);
            if (status)
                return status;
            pending = 0;
        }
        int32_t status =
            pending ? attend(p, t, launch, s, token - pending, pending, kv_head) : BP_OK;
        if (status)
            return status;
    }
    return BP_OK;
}

BP_KERNEL(paged_attention) {
    const parameters *p = BP_PARAMETERS(parameters, launch);
    int64_t sequences = bp_rows(p->sequence_count, p->sequences);
    int64_t cost = total_cost(p, sequences, launch);
    if (cost < 0)
        return (int32_t)cost;
    bp_span span = bp_share(cost * p->kv_heads, launch->grid[0], first_block, block_count);
    tile t;
    for (int64_t head = 0; head < p->kv_heads; head++) {
        int64_t from = span.from - head * cost, to = span.to - head * cost;
        if (to <= 0 || from >= cost)
            continue;
        int32_t status =
            head_share(p, &t, launch, sequences, head, from > 0 ? from : 0, to < cost ? to : cost);
        if (status)
            return status;
    }
    return BP_OK;
}
