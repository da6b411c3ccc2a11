/*
 * paged_attention: causal softmax attention of a ragged batch over the paged cache, prefill and
 * decode alike.
 *
 * Work comes in tiles (attention.h) of up to TOKENS consecutive tokens of one sequence and all
 * query heads of one KV head, shared among blocks by the number of keys seen, not by tokens. A
 * single token (decode) takes its KV heads together, chunk by chunk: they lie side by side. Chunks
 * of keys start at multiples of CHUNK whatever the tile, so a row's result does not depend on its
 * neighbours; rows that see only part of a chunk take it alone, key by key, so nothing past a row's
 * position reaches it, not even a NaN.
 *
 * Heads are multiples of 16, at most 128; block sizes are multiples of 16.
 */
#include "attention.h"

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

/* Most tokens of a tile, fewer when a group has many heads; KV heads that a single token takes
 * together. */
enum { TOKENS = 8, TOGETHER = 4 };

typedef struct work {
    tile tiles[TOGETHER];
    chunk keys_and_values;
} work;

/* A piece of a batch: `tokens` tokens of sequence s from `token`, `heads` KV heads from `head`. */
typedef struct piece {
    int64_t s, token, tokens, head, heads;
} piece;

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

/* One vector's worth of keys and values at `element` of both caches. */
/* One vector's worth of keys and values at `element` of both caches. */
BP_INLINE void load_part(const parameters *p, chunk *c, int64_t element, int64_t dim, int64_t keys,
                         int64_t at) {
    if (p->k_type == BP_F32)
        load_key_vectors(c, (const char *)p->k_cache + element * 4, BP_F32, dim, keys, at);
    else
        load_key_vectors(c, (const char *)p->k_cache + element * 2, BP_BF16_TYPE, dim, keys, at);
    if (p->v_type == BP_F32)
        load_values(c, (const float *)p->v_cache + element, BP_F32, dim, keys, at);
    else
        load_values(c, (const uint16_t *)p->v_cache + element, BP_BF16_TYPE, dim, keys, at);
}

static void load_part_64(const parameters *p, chunk *c, int64_t element, int64_t keys, int64_t at) {
    load_part(p, c, element, 64, keys, at);
}

static void load_part_any(const parameters *p, chunk *c, int64_t element, int64_t keys,
                          int64_t at) {
    load_part(p, c, element, p->head_dim, keys, at);
}

/* Keys and values [at, end) of a sequence, at most a chunk; BP_OK, or a foreign block. */
static int32_t load_chunk(const parameters *p, chunk *c, const bp_native_launch *launch, int64_t s,
                          int64_t kv_head, int64_t at, int64_t end) {
    const int32_t *table = p->block_table + s * p->table_stride;
    for (int64_t part = 0; part < CHUNK && at + part < end; part += BP_LANES) {
        int64_t position = at + part, block = table[position / p->block_size];
        if (block < 0 || block >= p->blocks)
            return bp_native_fail(
                launch->fault, BP_LAUNCH_FAULT, (uint64_t)s, block,
                "paged_attention: block %lld of sequence %lld, the cache has %lld",
                (long long)block, (long long)s, (long long)p->blocks);
        int64_t keys = end - position < BP_LANES ? end - position : BP_LANES;
        int64_t slot = (block * p->kv_heads + kv_head) * p->block_size + position % p->block_size;
        (p->head_dim == 64 ? load_part_64 : load_part_any)(p, c, slot * p->head_dim, keys, part);
    }
    return BP_OK;
}

/* Where the chunk at `at` lies; the blocks of one that is not there are those of position 0. */
static void look_ahead(const parameters *p, chunk *c, int64_t s, int64_t kv_head, int64_t at,
                       int64_t end) {
    const int32_t *table = p->block_table + s * p->table_stride;
    int64_t k_bytes = p->head_dim * (p->k_type == BP_F32 ? 4 : 2);
    int64_t v_bytes = p->head_dim * (p->v_type == BP_F32 ? 4 : 2);
    c->key_step = BP_LANES * k_bytes / p->head_dim;
    c->value_step = v_bytes / 2;
    for (int half = 0; half < 2; half++) {
        int64_t position = at + half * BP_LANES < end ? at + half * BP_LANES : 0;
        /* A foreign block makes a foreign address, which a prefetch ignores. */
        int64_t block = table[position / p->block_size];
        int64_t slot = (block * p->kv_heads + kv_head) * p->block_size + position % p->block_size;
        c->next_keys[half] = (const char *)p->k_cache + slot * k_bytes;
        c->next_values[half] = (const char *)p->v_cache + slot * v_bytes;
    }
}

/* Queries of one KV head's tile, sums empty. */
static void begin(const parameters *p, tile *t, const piece *w, int64_t kv_head) {
    int64_t group = p->heads / p->kv_heads;
    t->dim = p->head_dim;
    t->scale = p->scale;
    t->soft_cap = p->soft_cap;
    t->rows = 0;
    for (int64_t i = 0; i < w->tokens; i++) {
        sight see = sight_of(p, w->s, w->token + i);
        for (int64_t h = 0; h < group; h++, t->rows++) {
            const float *q =
                p->q + (w->token + i) * p->q_row_stride + (kv_head * group + h) * p->q_head_stride;
            __builtin_memcpy(t->query[t->rows], q, (size_t)p->head_dim * sizeof(float));
            __builtin_memset(t->sum[t->rows], 0, (size_t)p->head_dim * sizeof(float));
            t->largest[t->rows] = -INFINITY;
            bp_store(t->total[t->rows], bp_set(0.0f));
            t->seen[t->rows] = see.seen;
            t->from[t->rows] = see.from;
        }
    }
}

static void finish(const parameters *p, tile *t, const piece *w, int64_t kv_head) {
    int64_t group = p->heads / p->kv_heads;
    for (int64_t row = 0; row < t->rows; row++) {
        int64_t at = (w->token + row / group) * p->out_row_stride +
                     (kv_head * group + row % group) * p->out_head_stride;
        bp_vf factor = bp_set(1.0f / bp_sum(bp_load(t->total[row])));
        for (int64_t d = 0; d < p->head_dim; d += BP_LANES) {
            bp_vf v = bp_load(t->sum[row] + d) * factor;
            if (p->out_type == BP_F32)
                bp_store((float *)p->out + at + d, v);
            else
                bp_store_bf16((uint16_t *)p->out + at + d, v);
        }
    }
}

/* One piece of at most TOGETHER heads. */
static int32_t attend(const parameters *p, work *memory, const bp_native_launch *launch,
                      const piece *w) {
    tile *tiles = memory->tiles;
    for (int64_t h = 0; h < w->heads; h++)
        begin(p, &tiles[h], w, w->head + h);
    int64_t end = tiles[0].seen[tiles[0].rows - 1];
    for (int64_t at = tiles[0].from[0] / CHUNK * CHUNK; at < end; at += CHUNK)
        for (int64_t h = 0; h < w->heads; h++) {
            chunk *c = &memory->keys_and_values;
            int32_t status = load_chunk(p, c, launch, w->s, w->head + h, at, end);
            if (status)
                return status;
            look_ahead(p, c, w->s, w->head + h, at + CHUNK, end);
            fold(&tiles[h], c, at);
        }
    for (int64_t h = 0; h < w->heads; h++)
        finish(p, &tiles[h], w, w->head + h);
    return BP_OK;
}

BP_INLINE int64_t token_cost(sight see) {
    return see.seen - see.from + BP_LANES;
}

/* What one KV head of a sequence costs, in keys seen. */
static int64_t sequence_cost(const parameters *p, int64_t s) {
    int64_t start = p->query_start[s], queries = p->query_start[s + 1] - start;
    if (!p->sliding_window)
        return queries * (p->context_length[s] + BP_LANES) - queries * (queries - 1) / 2;
    int64_t cost = 0;
    for (int64_t token = start; token < start + queries; token++)
        cost += token_cost(sight_of(p, s, token));
    return cost;
}

/* Whether a sequence's queries and context fit the tensors. */
static int32_t check(const parameters *p, int64_t s, const bp_native_launch *launch) {
    long long start = p->query_start[s], end = p->query_start[s + 1];
    long long length = p->context_length[s], most = p->table_width * p->block_size;
    if (end < start || start < 0 || end > p->tokens)
        return bp_native_fail(launch->fault, BP_LAUNCH_FAULT, (uint64_t)s, start,
                              "paged_attention: sequence %lld has queries %lld to %lld of %lld",
                              (long long)s, start, end, (long long)p->tokens);
    if (end > start && (length < end - start || length > most))
        return bp_native_fail(launch->fault, BP_LAUNCH_FAULT, (uint64_t)s, length,
                              "paged_attention: context of %lld for %lld queries of sequence %lld, "
                              "the block table holds %lld",
                              length, end - start, (long long)s, most);
    return BP_OK;
}

/* Heads of a single token whose cost, counted from the first head's, starts in [from, to). */
static int32_t share_token(const parameters *p, work *memory, const bp_native_launch *launch,
                           int64_t s, int64_t cost, int64_t from, int64_t to) {
    int64_t head = (from + cost - 1) / cost, end = (to + cost - 1) / cost;
    for (; head < end; head += TOGETHER) {
        piece w = {s, p->query_start[s], 1, head, end - head < TOGETHER ? end - head : TOGETHER};
        int32_t status = attend(p, memory, launch, &w);
        if (status)
            return status;
    }
    return BP_OK;
}

/* Tokens of one KV head whose cost, counted from the sequence's start, begins in [from, to). */
static int32_t share_head(const parameters *p, work *memory, const bp_native_launch *launch,
                          int64_t s, int64_t kv_head, int64_t from, int64_t to) {
    int64_t most = MOST_ROWS / (p->heads / p->kv_heads), cost = 0;
    piece w = {s, p->query_start[s], 0, kv_head, 1};
    most = most < TOKENS ? most : TOKENS;
    for (int64_t token = w.token; token < p->query_start[s + 1] && cost < to; token++) {
        if (cost < from)
            w.token = token + 1;
        else
            w.tokens++;
        cost += token_cost(sight_of(p, s, token));
        if (w.tokens < most)
            continue;
        int32_t status = attend(p, memory, launch, &w);
        if (status)
            return status;
        w.token = token + 1;
        w.tokens = 0;
    }
    return w.tokens ? attend(p, memory, launch, &w) : BP_OK;
}

static int64_t clamp(int64_t value, int64_t most) {
    return value < 0 ? 0 : value > most ? most : value;
}

/* The part [from, to) of a sequence's cost over all its heads. */
static int32_t share_sequence(const parameters *p, work *memory, const bp_native_launch *launch,
                              int64_t s, int64_t cost, int64_t from, int64_t to) {
    if (p->query_start[s + 1] - p->query_start[s] == 1)
        return share_token(p, memory, launch, s, cost, from, to);
    for (int64_t head = from / cost; head < p->kv_heads && head * cost < to; head++) {
        int32_t status = share_head(p, memory, launch, s, head, clamp(from - head * cost, cost),
                                    clamp(to - head * cost, cost));
        if (status)
            return status;
    }
    return BP_OK;
}

BP_KERNEL(paged_attention) {
    const parameters *p = BP_PARAMETERS(parameters, launch);
    int64_t sequences = bp_rows(p->sequence_count, p->sequences), total = 0, start = 0;
    work memory;
    for (int64_t s = 0; s < sequences; s++) {
        int32_t status = check(p, s, launch);
        if (status)
            return status;
        total += sequence_cost(p, s) * p->kv_heads;
    }
    bp_span span = bp_share(total, launch->grid[0], first_block, block_count);
    for (int64_t s = 0; s < sequences && start < span.to; s++) {
        int64_t cost = sequence_cost(p, s), whole = cost * p->kv_heads;
        int64_t from = clamp(span.from - start, whole), to = clamp(span.to - start, whole);
        int32_t status = from < to ? share_sequence(p, &memory, launch, s, cost, from, to) : BP_OK;
        if (status)
            return status;
        start += whole;
    }
    return BP_OK;
}
