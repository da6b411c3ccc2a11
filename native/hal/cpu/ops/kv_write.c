/*
 * kv_write: k, v f32 [T,Hkv,D] (strided rows and heads), slots i32 [T], count?, k_cache and v_cache
 * [blocks,Hkv,block_size,D] f32 or bf16 in place. slot = block * block_size + offset; a negative
 * one is skipped, one past the cache fails the launch. Two tokens must not share a slot. One block
 * is one token.
 */
#include "read.h"
#include "shape.h"

enum { K, V, SLOTS, COUNT, K_CACHE, V_CACHE };

static int32_t plan(bp_cpu_plan *plan) {
    const bp_cpu_tensor *t = plan->tensors;
    for (int i = 0; i < 2; i++) {
        const bp_cpu_tensor *from = &t[K + i], *cache = &t[K_CACHE + i];
        const char *name = i ? "v" : "k", *cache_name = i ? "v_cache" : "k_cache";
        BP_CPU_TRY(bp_cpu_check_rows("kv_write", name, from, 3));
        BP_CPU_TRY(bp_cpu_check_dtype("kv_write", name, from, BP_DTYPE_F32, BP_DTYPE_F32));
        BP_CPU_TRY(bp_cpu_check_rows("kv_write", cache_name, cache, 4));
        BP_CPU_TRY(bp_cpu_check_dtype("kv_write", cache_name, cache, BP_DTYPE_F32, BP_DTYPE_BF16));
        for (uint32_t axis = 0; axis < 4; axis++)
            BP_CPU_TRY(
                bp_cpu_check_extent("kv_write", cache_name, cache, axis, t[K_CACHE].shape[axis]));
        BP_CPU_TRY(bp_cpu_check_extent("kv_write", name, from, 0, t[K].shape[0]));
        BP_CPU_TRY(bp_cpu_check_extent("kv_write", name, from, 1, cache->shape[1]));
        BP_CPU_TRY(bp_cpu_check_extent("kv_write", name, from, 2, cache->shape[3]));
    }
    BP_CPU_TRY(bp_cpu_check_vector("kv_write", "slots", &t[SLOTS], BP_DTYPE_I32, t[K].shape[0]));
    BP_CPU_TRY(bp_cpu_check_count("kv_write", &t[COUNT]));
    plan->writes = 1u << K_CACHE | 1u << V_CACHE;
    return BP_OK;
}

static uint64_t blocks(const bp_cpu_run *run) {
    return (uint64_t)bp_cpu_rows(&run->tensors[COUNT], run->tensors[K].shape[0]);
}

static void store(const bp_cpu_tensor *from, const bp_cpu_tensor *cache, int64_t token,
                  int64_t slot) {
    int64_t size = cache->shape[2], block = slot / size, offset = slot % size;
    for (int64_t head = 0; head < cache->shape[1]; head++) {
        int64_t to = block * cache->stride[0] + head * cache->stride[1] + offset * cache->stride[2];
        bp_cpu_write(cache->dtype, bp_cpu_at(cache, to), cache->shape[3],
                     (const float *)(void *)bp_cpu_at(from, token * from->stride[0] +
                                                                head * from->stride[1]));
    }
}

static int32_t run(const bp_cpu_run *run, uint64_t first, uint64_t count) {
    const bp_cpu_tensor *t = run->tensors;
    const int32_t *slots = (const int32_t *)(const void *)t[SLOTS].data;
    int64_t capacity = t[K_CACHE].shape[0] * t[K_CACHE].shape[2];
    for (uint64_t token = first; token < first + count; token++) {
        int64_t slot = slots[token];
        if (slot < 0)
            continue;
        if (slot >= capacity)
            return bp_native_fail(run->fault, BP_LAUNCH_FAULT, token, slot,
                                  "kv_write: slot %lld of token %llu, the cache has %lld",
                                  (long long)slot, (unsigned long long)token, (long long)capacity);
        store(&t[K], &t[K_CACHE], (int64_t)token, slot);
        store(&t[V], &t[V_CACHE], (int64_t)token, slot);
    }
    return BP_OK;
}

const bp_cpu_op bp_cpu_op_kv_write = {
    .id = BP_OP_KV_WRITE,
    .name = "kv_write",
    .attribute_bytes = sizeof(bp_kv_write_attributes),
    .tensors = 6,
    .optional = 1u << COUNT,
    .plan = plan,
    .blocks = blocks,
    .run = run,
};
