/*
 * paged_attention: causal softmax attention of a ragged batch over the paged cache, prefill and
 * decode alike.
 *
 * Work comes in tiles (attention.h) of up to TOKENS consecutive tokens of one sequence and all
 * query heads of one KV head, shared among blocks by the number of keys seen, not by tokens. Chunks
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

/* Most tokens of a tile; fewer when a group has many heads. */
enum { TOKENS = 8 };

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
BP_INLINE void load_part(const parameters *p, tile *t, int64_t element, int64_t dim, int64_t keys,
                         int64_t at) {
    if (p->k_type == BP_F32)
        load_key_vectors(t, (const char *)p->k_cache + element * 4, BP_F32, dim, keys, at);
    else
        load_key_vectors(t, (const char *)p->k_cache + element * 2, BP_BF16_TYPE, dim, keys, at);
    if (p->v_type == BP_F32)
        load_values(t, (const float *)p->v_cache + element, BP_F32, dim, keys, at);
    else
        load_values(t, (const uint16_t *)p->v_cache + element, BP_BF16_TYPE, dim, keys, at);
}

static void load_part_64(const parameters *p, tile *t, int64_t element, int64_t keys, int64_t at) {
    load_part(p, t, element, 64, keys, at);
}

static void load_part_any(const parameters *p, tile *t, int64_t element, int64_t keys, int64_t at) {
    load_part(p, t, element, t->dim, keys, at);
}

/* Keys and values [at, end) of a sequence, at most a chunk; BP_OK, or a foreign block. */
static int32_t load_chunk(const parameters *p, tile *t, const bp_native_launch *launch, int64_t s,
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
        (t->dim == 64 ? load_part_64 : load_part_any)(p, t, slot * t->dim, keys, part);
    }
    return BP_OK;
}

/* Ask for the next chunk while this one is worked on: blocks lie anywhere, so no hardware stream
 * finds them. */
static void prefetch_chunk(const parameters *p, int64_t s, int64_t kv_head, int64_t at,
                           int64_t end) {
    const int32_t *table = p->block_table + s * p->table_stride;
    int64_t k_size = p->k_type == BP_F32 ? 4 : 2, v_size = p->v_type == BP_F32 ? 4 : 2;
    for (int64_t part = 0; part < CHUNK && at + part < end; part += BP_LANES) {
        int64_t position = at + part, block = table[position / p->block_size];
        if (block < 0 || block >= p->blocks)
            return;
        int64_t slot = (block * p->kv_heads + kv_head) * p->block_size + position % p->block_size;
        const char *k = (const char *)p->k_cache + slot * p->head_dim * k_size;
        const char *v = (const char *)p->v_cache + slot * p->head_dim * v_size;
        for (int64_t byte = 0; byte < BP_LANES * p->head_dim * k_size; byte += 64)
            _mm_prefetch(k + byte, _MM_HINT_T0);
        for (int64_t byte = 0; byte < BP_LANES * p->head_dim * v_size; byte += 64)
            _mm_prefetch(v + byte, _MM_HINT_T0);
    }
}

static int32_t attend(const parameters *p, tile *t, const bp_native_launch *launch, int64_t s,
                      int64_t token, int64_t tokens, int64_t kv_head) {
    int64_t group = p->heads / p->kv_heads, first_head = kv_head * group;
    t->dim = p->head_dim;
    t->scale = p->scale;
    t->soft_cap = p->soft_cap;
    t->rows = 0;
    for (int64_t i = 0; i < tokens; i++) {
        sight see = sight_of(p, s, token + i);
        for (int64_t h = 0; h < group; h++, t->rows++) {
            const float *q =
                p->q + (token + i) * p->q_row_stride + (first_head + h) * p->q_head_stride;
            __builtin_memcpy(t->query[t->rows], q, (size_t)p->head_dim * sizeof(float));
            __builtin_memset(t->sum[t->rows], 0, (size_t)p->head_dim * sizeof(float));
            t->largest[t->rows] = -INFINITY;
            bp_store(t->total[t->rows], bp_set(0.0f));
            t->seen[t->rows] = see.seen;
            t->from[t->rows] = see.from;
        }
    }
    int64_t end = t->seen[t->rows - 1];
    for (int64_t at = t->from[0] / CHUNK * CHUNK; at < end; at += CHUNK) {
        int32_t status = load_chunk(p, t, launch, s, kv_head, at, end);
        if (status)
            return status;
        prefetch_chunk(p, s, kv_head, at + CHUNK, end);
        fold(t, at);
    }
    for (int64_t row = 0; row < t->rows; row++) {
        int64_t at = (token + row / group) * p->out_row_stride +
                     (first_head + row % group) * p->out_head_stride;
        bp_vf factor = bp_set(1.0f / bp_sum(bp_load(t->total[row])));
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
