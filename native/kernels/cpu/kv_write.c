/*
 * kv_write: k and v of each token into its cache slot, f32 or bf16. A negative slot is skipped, one
 * past the cache fails the launch and is named. Two tokens must not share a slot.
 */
#include "launch.h"

typedef struct parameters {
    const float *k;
    const float *v;
    const int32_t *slots;
    const uint32_t *count;
    void *k_cache;
    void *v_cache;
    int64_t rows, kv_heads, head_dim, block_size, blocks;
    int64_t k_row_stride, k_head_stride, v_row_stride, v_head_stride;
    uint32_t k_type, v_type;
} parameters;

static void store_head(const float *from, void *cache, int64_t at, uint32_t type, int64_t width) {
    int64_t i = 0;
    for (; i < width; i += BP_LANES) {
        int64_t left = width - i < BP_LANES ? width - i : BP_LANES;
        bp_vf v = bp_load_part(from + i, left);
        if (type == BP_F32)
            bp_store_part((float *)cache + at + i, v, left);
        else if (left == BP_LANES)
            bp_store_bf16((uint16_t *)cache + at + i, v);
        else
            bp_store_bf16_part((uint16_t *)cache + at + i, v, left);
    }
}

BP_KERNEL(kv_write) {
    const parameters *p = BP_PARAMETERS(parameters, launch);
    bp_span span = bp_share(bp_rows(p->count, p->rows), launch->grid[0], first_block, block_count);
    for (int64_t token = span.from; token < span.to; token++) {
        int64_t slot = p->slots[token];
        if (slot < 0)
            continue;
        if (slot >= p->blocks * p->block_size)
            return bp_native_fail(launch->fault, BP_LAUNCH_FAULT, first_block, slot,
                                  "kv_write: slot %lld of token %lld, the cache has %lld",
                                  (long long)slot, (long long)token,
                                  (long long)(p->blocks * p->block_size));
        int64_t block = slot / p->block_size, offset = slot % p->block_size;
        for (int64_t head = 0; head < p->kv_heads; head++) {
            int64_t at = ((block * p->kv_heads + head) * p->block_size + offset) * p->head_dim;
            store_head(p->k + token * p->k_row_stride + head * p->k_head_stride, p->k_cache, at,
                       p->k_type, p->head_dim);
            store_head(p->v + token * p->v_row_stride + head * p->v_head_stride, p->v_cache, at,
                       p->v_type, p->head_dim);
        }
    }
    return BP_OK;
}
