/*
 * block_copy: pairs i32 [P,2] (source, destination), count?, k_cache and v_cache
 * [layers,blocks,Hkv,block_size,D] in place. Each worker checks all pairs before it writes, so a
 * foreign block, or a destination that another pair reads or writes, is refused with nothing
 * changed. One block of work is one pair in one layer.
 */
#include "read.h"
#include "shape.h"

enum { PAIRS, COUNT, K_CACHE, V_CACHE };

static int32_t plan(bp_cpu_plan *plan) {
    const bp_cpu_tensor *t = plan->tensors;
    BP_CPU_TRY(bp_cpu_check_rows("block_copy", "pairs", &t[PAIRS], 2));
    BP_CPU_TRY(bp_cpu_check_extent("block_copy", "pairs", &t[PAIRS], 1, 2));
    BP_CPU_TRY(bp_cpu_check_dtype("block_copy", "pairs", &t[PAIRS], BP_DTYPE_I32, BP_DTYPE_I32));
    for (int i = 0; i < 2; i++) {
        const bp_cpu_tensor *cache = &t[K_CACHE + i];
        const char *name = i ? "v_cache" : "k_cache";
        BP_CPU_TRY(bp_cpu_check_rows("block_copy", name, cache, 5));
        BP_CPU_TRY(bp_cpu_check_dtype("block_copy", name, cache, BP_DTYPE_F32, BP_DTYPE_BF16));
        BP_CPU_TRY(bp_cpu_check_extent("block_copy", name, cache, 0, t[K_CACHE].shape[0]));
        BP_CPU_TRY(bp_cpu_check_extent("block_copy", name, cache, 1, t[K_CACHE].shape[1]));
        int64_t dense = 1;
        for (uint32_t axis = 4; axis >= 2; axis--) {
            if (cache->shape[axis] > 1 && cache->stride[axis] != dense)
                return bp_fail(BP_UNSUPPORTED,
                               "block_copy wants dense blocks in %s, got stride %lld", name,
                               (long long)cache->stride[axis]);
            dense *= cache->shape[axis];
        }
    }
    BP_CPU_TRY(bp_cpu_check_count("block_copy", &t[COUNT]));
    plan->writes = 1u << K_CACHE | 1u << V_CACHE;
    return BP_OK;
}

static int64_t pair_count(const bp_cpu_tensor *t) {
    return bp_cpu_rows(&t[COUNT], t[PAIRS].shape[0]);
}

static uint64_t blocks(const bp_cpu_run *run) {
    return (uint64_t)(pair_count(run->tensors) * run->tensors[K_CACHE].shape[0]);
}

static const int32_t *pair_at(const bp_cpu_tensor *t, int64_t index) {
    return (const int32_t *)(void *)bp_cpu_at(&t[PAIRS], index * t[PAIRS].stride[0]);
}

static int32_t check(const bp_cpu_run *run) {
    const bp_cpu_tensor *t = run->tensors;
    int64_t pairs = pair_count(t), most = t[K_CACHE].shape[1];
    for (int64_t i = 0; i < pairs; i++) {
        const int32_t *one = pair_at(t, i);
        for (int side = 0; side < 2; side++)
            if (one[side] < 0 || one[side] >= most)
                return bp_native_fail(run->fault, BP_LAUNCH_FAULT, (uint64_t)i, one[side],
                                      "block_copy: block %d of pair %lld, the cache has %lld",
                                      one[side], (long long)i, (long long)most);
        for (int64_t j = 0; j < pairs; j++) {
            const int32_t *other = pair_at(t, j);
            if (one[1] == other[0] || (i != j && one[1] == other[1]))
                return bp_native_fail(
                    run->fault, BP_LAUNCH_FAULT, (uint64_t)i, one[1],
                    "block_copy: block %d is written by pair %lld while in use by "
                    "pair %lld",
                    one[1], (long long)i, (long long)j);
        }
    }
    return BP_OK;
}

static int32_t run(const bp_cpu_run *run, uint64_t first, uint64_t count) {
    const bp_cpu_tensor *t = run->tensors;
    BP_CPU_TRY(check(run));
    for (uint64_t block = first; block < first + count; block++) {
        int64_t layers = t[K_CACHE].shape[0], layer = (int64_t)block % layers;
        const int32_t *pair = pair_at(t, (int64_t)block / layers);
        for (int i = 0; i < 2; i++) {
            const bp_cpu_tensor *cache = &t[K_CACHE + i];
            int64_t elements = cache->shape[2] * cache->shape[3] * cache->shape[4];
            int64_t base = layer * cache->stride[0];
            memcpy(bp_cpu_at(cache, base + pair[1] * cache->stride[1]),
                   bp_cpu_at(cache, base + pair[0] * cache->stride[1]),
                   (size_t)(elements * bp_cpu_element_bytes(cache->dtype)));
        }
    }
    return BP_OK;
}

const bp_cpu_op bp_cpu_op_block_copy = {
    .id = BP_OP_BLOCK_COPY,
    .name = "block_copy",
    .attribute_bytes = sizeof(bp_block_copy_attributes),
    .tensors = 4,
    .optional = 1u << COUNT,
    .plan = plan,
    .blocks = blocks,
    .run = run,
};
