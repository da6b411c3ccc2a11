/*
 * paged_attention: q f32 [T,Hq,D] (strided rows and heads), k_cache and v_cache
 * [blocks,Hkv,block_size,D] f32 or bf16, block_table i32 [S,max_blocks], query_start i32 [S+1],
 * context_length i32 [S], sequence_count?, out f32 or bf16 [T,Hq,D].
 *
 * Token j of sequence s sits at context_length[s] - queries + j and sees positions up to its own.
 * Softmax runs online, a cache block at a time, so nothing grows with the context; the order of the
 * sum depends on the position alone. One block of work is one (token, KV head): the query heads of
 * a group share each key that is read. Entries of the table past the length are never read.
 */
#include "read.h"
#include "shape.h"

#include <math.h>

enum { Q, K_CACHE, V_CACHE, TABLE, QUERY_START, CONTEXT, SEQUENCES, OUT };
enum { MOST_HEAD = 256, MOST_KEYS = 64, GROUP = 4 };

static int32_t plan(bp_cpu_plan *plan) {
    const bp_cpu_tensor *t = plan->tensors;
    const bp_paged_attention_attributes *attributes = &plan->attributes.paged_attention;
    const char *op = "paged_attention";
    BP_CPU_TRY(bp_cpu_check_rows(op, "q", &t[Q], 3));
    BP_CPU_TRY(bp_cpu_check_rows(op, "out", &t[OUT], 3));
    BP_CPU_TRY(bp_cpu_check_rows(op, "k_cache", &t[K_CACHE], 4));
    BP_CPU_TRY(bp_cpu_check_rows(op, "v_cache", &t[V_CACHE], 4));
    BP_CPU_TRY(bp_cpu_check_rows(op, "block_table", &t[TABLE], 2));
    BP_CPU_TRY(bp_cpu_check_dtype(op, "q", &t[Q], BP_DTYPE_F32, BP_DTYPE_F32));
    BP_CPU_TRY(bp_cpu_check_dtype(op, "out", &t[OUT], BP_DTYPE_F32, BP_DTYPE_BF16));
    BP_CPU_TRY(bp_cpu_check_dtype(op, "k_cache", &t[K_CACHE], BP_DTYPE_F32, BP_DTYPE_BF16));
    BP_CPU_TRY(bp_cpu_check_dtype(op, "v_cache", &t[V_CACHE], BP_DTYPE_F32, BP_DTYPE_BF16));
    BP_CPU_TRY(bp_cpu_check_dtype(op, "block_table", &t[TABLE], BP_DTYPE_I32, BP_DTYPE_I32));
    for (uint32_t axis = 0; axis < 4; axis++)
        BP_CPU_TRY(bp_cpu_check_extent(op, "v_cache", &t[V_CACHE], axis, t[K_CACHE].shape[axis]));
    for (uint32_t axis = 0; axis < 3; axis++)
        BP_CPU_TRY(bp_cpu_check_extent(op, "out", &t[OUT], axis, t[Q].shape[axis]));
    BP_CPU_TRY(bp_cpu_check_extent(op, "q", &t[Q], 2, t[K_CACHE].shape[3]));
    int64_t sequences = t[TABLE].shape[0], heads = t[Q].shape[1], kv_heads = t[K_CACHE].shape[1];
    BP_CPU_TRY(
        bp_cpu_check_vector(op, "query_start", &t[QUERY_START], BP_DTYPE_I32, sequences + 1));
    BP_CPU_TRY(bp_cpu_check_vector(op, "context_length", &t[CONTEXT], BP_DTYPE_I32, sequences));
    BP_CPU_TRY(bp_cpu_check_count(op, &t[SEQUENCES]));
    if (kv_heads < 1 || heads % kv_heads)
        return bp_fail(BP_INVALID_ARGUMENT, "%s wants heads in whole groups, got %lld over %lld",
                       op, (long long)heads, (long long)kv_heads);
    if (t[Q].shape[2] > MOST_HEAD || t[K_CACHE].shape[2] > MOST_KEYS || t[K_CACHE].shape[2] < 1)
        return bp_fail(
            BP_UNSUPPORTED,
            "%s takes heads of at most %d and blocks of 1 to %d tokens, got %lld and %lld", op,
            MOST_HEAD, MOST_KEYS, (long long)t[Q].shape[2], (long long)t[K_CACHE].shape[2]);
    if (!(attributes->scale >= 0.0f) || !(attributes->soft_cap >= 0.0f))
        return bp_fail(BP_INVALID_ARGUMENT, "%s wants scale and soft_cap at least 0, got %g and %g",
                       op, (double)attributes->scale, (double)attributes->soft_cap);
    plan->writes = 1u << OUT;
    return BP_OK;
}

static const int32_t *integers(const bp_cpu_tensor *t) {
    return (const int32_t *)(const void *)t->data;
}

static int64_t sequence_count(const bp_cpu_tensor *t) {
    return bp_cpu_rows(&t[SEQUENCES], t[TABLE].shape[0]);
}

static uint64_t blocks(const bp_cpu_run *run) {
    const bp_cpu_tensor *t = run->tensors;
    int64_t tokens = integers(&t[QUERY_START])[sequence_count(t)];
    if (tokens < 0)
        tokens = 0;
    if (tokens > t[Q].shape[0])
        tokens = t[Q].shape[0];
    return (uint64_t)(tokens * t[K_CACHE].shape[1]);
}

/* The sequence whose queries hold `token`: the last start at or before it. */
static int64_t sequence_of(const int32_t *start, int64_t sequences, int64_t token) {
    int64_t low = 0, high = sequences;
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        if (start[middle] <= token)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Running softmax of up to GROUP query heads over one KV head. */
typedef struct softmax {
    float query[GROUP][MOST_HEAD];
    float sum[GROUP][MOST_HEAD];
    float largest[GROUP];
    float total[GROUP];
    float score[GROUP][MOST_KEYS];
} softmax;

/* Scores of `keys` keys against each head, then fold them and their values in. */
static void fold(softmax *s, const bp_cpu_tensor *t, int64_t heads, int64_t cache_index,
                 int64_t value_index, int64_t keys,
                 const bp_paged_attention_attributes *attributes) {
    int64_t d = t[Q].shape[2], padded = (d + 15) & ~(int64_t)15;
    float row[MOST_HEAD];
    for (int64_t key = 0; key < keys; key++) {
        bp_cpu_read(t[K_CACHE].dtype,
                    bp_cpu_at(&t[K_CACHE], cache_index + key * t[K_CACHE].stride[2]), d, row);
        for (int64_t i = d; i < padded; i++)
            row[i] = 0.0f;
        for (int64_t h = 0; h < heads; h++) {
            float score = bp_cpu_dot(s->query[h], row, padded) * attributes->scale;
            if (attributes->soft_cap > 0.0f)
                score = attributes->soft_cap * tanhf(score / attributes->soft_cap);
            s->score[h][key] = score;
        }
    }
    for (int64_t h = 0; h < heads; h++) {
        float largest = s->largest[h];
        for (int64_t key = 0; key < keys; key++)
            largest = s->score[h][key] > largest || s->score[h][key] != s->score[h][key]
                          ? s->score[h][key]
                          : largest;
        float shrink = s->total[h] > 0.0f ? expf(s->largest[h] - largest) : 0.0f;
        s->largest[h] = largest;
        s->total[h] *= shrink;
        for (int64_t i = 0; i < d; i++)
            s->sum[h][i] *= shrink;
        for (int64_t key = 0; key < keys; key++) {
            s->score[h][key] = expf(s->score[h][key] - largest);
            s->total[h] += s->score[h][key];
        }
    }
    for (int64_t key = 0; key < keys; key++) {
        bp_cpu_read(t[V_CACHE].dtype,
                    bp_cpu_at(&t[V_CACHE], value_index + key * t[V_CACHE].stride[2]), d, row);
        for (int64_t h = 0; h < heads; h++)
            for (int64_t i = 0; i < d; i++)
                s->sum[h][i] += s->score[h][key] * row[i];
    }
}

static int32_t attend(const bp_cpu_run *run, int64_t token, int64_t kv_head, int64_t first_head,
                      int64_t heads) {
    const bp_cpu_tensor *t = run->tensors;
    const bp_paged_attention_attributes *attributes = &run->plan->attributes.paged_attention;
    const int32_t *start = integers(&t[QUERY_START]);
    int64_t s = sequence_of(start, sequence_count(t), token), size = t[K_CACHE].shape[2];
    if (token < start[s] || token >= start[s + 1])
        return bp_native_fail(
            run->fault, BP_LAUNCH_FAULT, (uint64_t)token, start[s],
            "paged_attention: query_start does not ascend from 0 at sequence %lld", (long long)s);
    int64_t length = integers(&t[CONTEXT])[s], seen = length - (start[s + 1] - token) + 1;
    if (seen < 1 || length > t[TABLE].shape[1] * size)
        return bp_native_fail(
            run->fault, BP_LAUNCH_FAULT, (uint64_t)token, length,
            "paged_attention: context of %lld for %d queries of sequence %lld, the "
            "block table holds %lld",
            (long long)length, start[s + 1] - start[s], (long long)s,
            (long long)(t[TABLE].shape[1] * size));
    int64_t window = attributes->sliding_window;
    int64_t from = window && seen > window ? seen - window : 0, d = t[Q].shape[2];
    softmax state;
    memset(state.total, 0, sizeof(state.total));
    for (int64_t h = 0; h < heads; h++) {
        state.largest[h] = -INFINITY;
        memset(state.sum[h], 0, sizeof(state.sum[h]));
        memset(state.query[h], 0, sizeof(state.query[h]));
        int64_t at = token * t[Q].stride[0] + (first_head + h) * t[Q].stride[1];
        bp_cpu_read(t[Q].dtype, bp_cpu_at(&t[Q], at), d, state.query[h]);
    }
    const int32_t *table = integers(&t[TABLE]) + s * t[TABLE].stride[0];
    for (int64_t position = from; position < seen;) {
        int64_t block = table[position / size], offset = position % size;
        int64_t keys = size - offset < seen - position ? size - offset : seen - position;
        if (block < 0 || block >= t[K_CACHE].shape[0])
            return bp_native_fail(
                run->fault, BP_LAUNCH_FAULT, (uint64_t)token, block,
                "paged_attention: block %lld of sequence %lld, the cache has %lld",
                (long long)block, (long long)s, (long long)t[K_CACHE].shape[0]);
        const bp_cpu_tensor *k = &t[K_CACHE], *v = &t[V_CACHE];
        fold(&state, t, heads,
             block * k->stride[0] + kv_head * k->stride[1] + offset * k->stride[2],
             block * v->stride[0] + kv_head * v->stride[1] + offset * v->stride[2], keys,
             attributes);
        position += keys;
    }
    for (int64_t h = 0; h < heads; h++) {
        for (int64_t i = 0; i < d; i++)
            state.sum[h][i] /= state.total[h];
        int64_t at = token * t[OUT].stride[0] + (first_head + h) * t[OUT].stride[1];
        bp_cpu_write(t[OUT].dtype, bp_cpu_at(&t[OUT], at), d, state.sum[h]);
    }
    return BP_OK;
}

static int32_t run(const bp_cpu_run *run, uint64_t first, uint64_t count) {
    const bp_cpu_tensor *t = run->tensors;
    int64_t kv_heads = t[K_CACHE].shape[1], group = t[Q].shape[1] / kv_heads;
    for (uint64_t block = first; block < first + count; block++) {
        int64_t token = (int64_t)block / kv_heads, kv_head = (int64_t)block % kv_heads;
        for (int64_t head = 0; head < group; head += GROUP)
            BP_CPU_TRY(attend(run, token, kv_head, kv_head * group + head,
                              group - head < GROUP ? group - head : GROUP));
    }
    return BP_OK;
}

const bp_cpu_op bp_cpu_op_paged_attention = {
    .id = BP_OP_PAGED_ATTENTION,
    .name = "paged_attention",
    .attribute_bytes = sizeof(bp_paged_attention_attributes),
    .tensors = 8,
    .optional = 1u << SEQUENCES,
    .plan = plan,
    .blocks = blocks,
    .run = run,
};
