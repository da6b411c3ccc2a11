/*
 * A tile of attention: up to MOST_ROWS query rows (tokens by the heads of one group) against one KV
 * head, a chunk of keys at a time.
 *
 * A chunk is two vectors' worth of keys: transposed once, so that each row gets its scores with a
 * multiply-add per dimension and its exponentials in vectors; values are widened once. Softmax runs
 * online, so nothing grows with the context.
 */
#ifndef BEDPLATE_KERNELS_CPU_ATTENTION_H
#define BEDPLATE_KERNELS_CPU_ATTENTION_H

#include "launch.h"
#include "transpose.h"

#include <math.h>

enum { MOST_ROWS = 32, MOST_DIM = 128, CHUNK = 2 * BP_LANES };

typedef struct tile {
    int64_t rows; /* tokens * group */
    int64_t dim;
    float scale, soft_cap;
    float query[MOST_ROWS][MOST_DIM];
    float sum[MOST_ROWS][MOST_DIM];
    float score[MOST_ROWS][CHUNK];
    float total[MOST_ROWS][BP_LANES]; /* by lane, added up at the end */
    float largest[MOST_ROWS];
    int64_t seen[MOST_ROWS];
    int64_t from[MOST_ROWS];
} __attribute__((aligned(64))) tile;

/* Keys and values of one KV head, CHUNK positions. */
typedef struct chunk {
    float keys[MOST_DIM][CHUNK];   /* transposed */
    float values[CHUNK][MOST_DIM]; /* widened */
    /* Both halves of the next chunk, asked for while this one is worked on. A step of a model reads
     * all weights between two looks at the cache, so it comes from memory; requests are spread over
     * the arithmetic, because a burst of them stalls. */
    const char *next_keys[2], *next_values[2];
    int64_t key_step, value_step; /* bytes to ask for in each half, per dimension and per key */
} __attribute__((aligned(64))) chunk;

/* Transposed words of BP_LANES keys into rows from `d` of c->keys, `width` words of each. */
BP_INLINE void spread(chunk *c, bp_vi *part, uint32_t type, int64_t d, int64_t width,
                      int64_t column) {
    bp_transpose(part);
#pragma GCC unroll 16
    for (int i = 0; i < BP_LANES; i++) {
        if (i >= width)
            continue;
        if (type == BP_F32) {
            bp_store(c->keys[d + i] + column, bp_as_floats(part[i]));
        } else {
            bp_store(c->keys[2 * (d + i)] + column, bp_first_bf16(part[i]));
            bp_store(c->keys[2 * (d + i) + 1] + column, bp_second_bf16(part[i]));
        }
    }
}

/* BP_LANES keys of `dim` elements into columns [column, ...) of c->keys; the first `keys` exist. */
BP_INLINE void load_key_vectors(chunk *c, const char *from, uint32_t type, int64_t dim,
                                int64_t keys, int64_t column) {
    int64_t size = type == BP_F32 ? 4 : 2, words = dim * size / 4, d = 0;
    if (keys == BP_LANES)
        for (; d + BP_LANES <= words; d += BP_LANES) {
            bp_vi part[BP_LANES];
#pragma GCC unroll 16
            for (int k = 0; k < BP_LANES; k++)
                part[k] = bp_load_words(from + k * dim * size + d * 4);
            spread(c, part, type, d, BP_LANES, column);
        }
    for (; d < words; d += BP_LANES) {
        bp_vi part[BP_LANES];
        int64_t width = words - d < BP_LANES ? words - d : BP_LANES;
        for (int k = 0; k < BP_LANES; k++) {
            part[k] = bp_no_words();
            if (k < keys)
                __builtin_memcpy(&part[k], from + k * dim * size + d * 4, (size_t)width * 4);
        }
        spread(c, part, type, d, width, column);
    }
}

BP_INLINE void load_values(chunk *c, const void *cache, uint32_t type, int64_t dim, int64_t keys,
                           int64_t row) {
    for (int64_t k = 0; k < keys; k++)
        for (int64_t d = 0; d < dim; d += BP_LANES) {
            int64_t at = k * dim + d;
            if (type == BP_F32)
                bp_store(c->values[row + k] + d, bp_load((const float *)cache + at));
            else
                bp_store(c->values[row + k] + d, bp_load_bf16((const uint16_t *)cache + at));
        }
}

/* Scores of `rows` rows against the chunk, raw. */
BP_INLINE void score_rows(tile *t, const chunk *c, int64_t row, int rows) {
    bp_vf one[4], two[4];
    for (int r = 0; r < rows; r++)
        one[r] = two[r] = bp_set(0.0f);
    for (int64_t d = 0; d < t->dim; d++) {
        if (row == 0) {
            _mm_prefetch(c->next_keys[0] + d * c->key_step, _MM_HINT_T0);
            _mm_prefetch(c->next_keys[1] + d * c->key_step, _MM_HINT_T0);
        }
        bp_vf low = bp_load(c->keys[d]), high = bp_load(c->keys[d] + BP_LANES);
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            bp_vf query = bp_set(t->query[row + r][d]);
            one[r] = bp_fma(query, low, one[r]);
            two[r] = bp_fma(query, high, two[r]);
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) {
        bp_store(t->score[row + r], one[r]);
        bp_store(t->score[row + r] + BP_LANES, two[r]);
    }
}

static void score_tile(tile *t, const chunk *c) {
    int64_t row = 0;
    for (; row + 4 <= t->rows; row += 4)
        score_rows(t, c, row, 4);
    switch (t->rows - row) {
    case 3:
        score_rows(t, c, row, 3);
        break;
    case 2:
        score_rows(t, c, row, 2);
        break;
    case 1:
        score_rows(t, c, row, 1);
        break;
    default:
        break;
    }
}

static void cap(float *score, float scale, float soft_cap) {
    for (int i = 0; i < CHUNK; i++)
        score[i] = soft_cap * tanhf(score[i] * scale / soft_cap);
}

/* Scores to weights of one row for keys [first, last) of the chunk; the row's sums shrink if its
 * largest score grew. */
static void soften(tile *t, int64_t row, int64_t first, int64_t last) {
    float *score = t->score[row];
    bp_vf scale = bp_set(t->scale);
    if (t->soft_cap > 0.0f) {
        cap(score, t->scale, t->soft_cap);
        scale = bp_set(1.0f);
    }
    for (int64_t i = 0; i < first; i++)
        score[i] = -INFINITY;
    for (int64_t i = last; i < CHUNK; i++)
        score[i] = -INFINITY;
    bp_vf one = bp_load(score) * scale, two = bp_load(score + BP_LANES) * scale;
    float largest = bp_highest(bp_max(one, two));
    bp_vf total = bp_load(t->total[row]);
    if (largest > t->largest[row]) {
        bp_vf shrink = bp_exp(bp_set(t->largest[row] - largest));
        t->largest[row] = largest;
        total = total * shrink;
        for (int64_t d = 0; d < t->dim; d += BP_LANES)
            bp_store(t->sum[row] + d, bp_load(t->sum[row] + d) * shrink);
    }
    bp_vf top = bp_set(t->largest[row]);
    one = bp_exp(one - top);
    two = bp_exp(two - top);
    bp_store(score, one);
    bp_store(score + BP_LANES, two);
    bp_store(t->total[row], total + (one + two));
}

/* sum += weight * value for `rows` rows and keys [first, last), `parts` vectors of the head. */
BP_INLINE void blend(tile *t, const chunk *c, int64_t row, int rows, int64_t d, int parts,
                     int64_t first, int64_t last) {
    bp_vf sums[4][4];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int j = 0; j < parts; j++)
            sums[r][j] = bp_load(t->sum[row + r] + d + j * BP_LANES);
    for (int64_t k = first; k < last; k++) {
        if (row == 0) {
            _mm_prefetch(c->next_values[0] + k * c->value_step, _MM_HINT_T0);
            _mm_prefetch(c->next_values[1] + k * c->value_step, _MM_HINT_T0);
        }
        bp_vf value[4];
#pragma GCC unroll 4
        for (int j = 0; j < parts; j++)
            value[j] = bp_load(c->values[k] + d + j * BP_LANES);
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            bp_vf weight = bp_set(t->score[row + r][k]);
#pragma GCC unroll 4
            for (int j = 0; j < parts; j++)
                sums[r][j] = bp_fma(weight, value[j], sums[r][j]);
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int j = 0; j < parts; j++)
            bp_store(t->sum[row + r] + d + j * BP_LANES, sums[r][j]);
}

/* Vectors of one head that fit the registers beside four (AVX-512) or two rows of sums. */
enum { PARTS = BP_AVX512 ? 4 : 2 };

BP_INLINE void blend_rows(tile *t, const chunk *c, int64_t row, int rows, int64_t first,
                          int64_t last) {
    int64_t d = 0;
    for (; d + PARTS * BP_LANES <= t->dim; d += PARTS * BP_LANES)
        blend(t, c, row, rows, d, PARTS, first, last);
    for (; d < t->dim; d += BP_LANES)
        blend(t, c, row, rows, d, 1, first, last);
}

/* As blend_rows, 1 to 4 rows. */
static void blend_group(tile *t, const chunk *c, int64_t row, int64_t rows, bp_span keys) {
    switch (rows) {
    case 4:
        blend_rows(t, c, row, 4, keys.from, keys.to);
        break;
    case 3:
        blend_rows(t, c, row, 3, keys.from, keys.to);
        break;
    case 2:
        blend_rows(t, c, row, 2, keys.from, keys.to);
        break;
    default:
        blend_rows(t, c, row, 1, keys.from, keys.to);
        break;
    }
}

/* Keys of the chunk at `position` that a row sees. */
BP_INLINE bp_span keys_seen(const tile *t, int64_t row, int64_t position) {
    int64_t from = t->from[row] - position, to = t->seen[row] - position;
    bp_span keys = {from > 0 ? from : 0, to < CHUNK ? to : CHUNK};
    return keys;
}

/* Fold the loaded chunk, keys [position, position + CHUNK), into every row that sees some; rows
 * that see the same keys (the heads of one token at least) go together. */
static void fold(tile *t, const chunk *c, int64_t position) {
    score_tile(t, c);
    for (int64_t row = 0, rows; row < t->rows; row += rows) {
        bp_span keys = keys_seen(t, row, position);
        for (rows = 1; rows < 4 && row + rows < t->rows; rows++) {
            bp_span other = keys_seen(t, row + rows, position);
            if (other.from != keys.from || other.to != keys.to)
                break;
        }
        if (keys.from >= keys.to)
            continue;
        for (int64_t i = 0; i < rows; i++)
            soften(t, row + i, keys.from, keys.to);
        blend_group(t, c, row, rows, keys);
    }
}

#endif
