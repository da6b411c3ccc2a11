/*
 * block_copy: whole cache blocks, (source, destination) pairs over all layers of K and V. Each call
 * checks all pairs before it writes, so a foreign block, or a destination that another pair reads
 * or writes, is refused with nothing changed. Units of work are (pair, layer).
 */
#include "launch.h"

#include <string.h>

typedef struct parameters {
    const int32_t *pairs;
    const uint32_t *count;
    char *k_cache;
    char *v_cache;
    int64_t rows, layers, blocks, block_bytes;
    int64_t k_layer_bytes, v_layer_bytes;
} parameters;

static int32_t check(const parameters *p, int64_t rows, const bp_native_launch *launch) {
    for (int64_t i = 0; i < rows; i++) {
        const int32_t *one = p->pairs + 2 * i;
        for (int side = 0; side < 2; side++)
            if (one[side] < 0 || one[side] >= p->blocks)
                return bp_native_fail(launch->fault, BP_LAUNCH_FAULT, (uint64_t)i, one[side],
                                      "block_copy: block %d of pair %lld, the cache has %lld",
                                      one[side], (long long)i, (long long)p->blocks);
        for (int64_t j = 0; j < rows; j++)
            if (one[1] == p->pairs[2 * j] || (i != j && one[1] == p->pairs[2 * j + 1]))
                return bp_native_fail(
                    launch->fault, BP_LAUNCH_FAULT, (uint64_t)i, one[1],
                    "block_copy: block %d is written by pair %lld while in use by pair %lld",
                    one[1], (long long)i, (long long)j);
    }
    return BP_OK;
}

BP_KERNEL(block_copy) {
    const parameters *p = BP_PARAMETERS(parameters, launch);
    int64_t rows = bp_rows(p->count, p->rows);
    int32_t status = check(p, rows, launch);
    if (status)
        return status;
    bp_span span = bp_share(rows * p->layers, launch->grid[0], first_block, block_count);
    for (int64_t unit = span.from; unit < span.to; unit++) {
        const int32_t *pair = p->pairs + unit / p->layers * 2;
        int64_t layer = unit % p->layers;
        char *k = p->k_cache + layer * p->k_layer_bytes, *v = p->v_cache + layer * p->v_layer_bytes;
        memcpy(k + pair[1] * p->block_bytes, k + pair[0] * p->block_bytes, (size_t)p->block_bytes);
        memcpy(v + pair[1] * p->block_bytes, v + pair[0] * p->block_bytes, (size_t)p->block_bytes);
    }
    return BP_OK;
}
