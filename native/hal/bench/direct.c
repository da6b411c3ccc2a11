/*
 * The same launches without the HAL: entries of a native module, called one after the other on the
 * cpu backend's own worker pool. The peer of benchmarks/hal/step.py, which packs the parameters.
 *
 * No handles, fences, checks or threads but the pool's: what is left is what the kernels cost.
 */
#include "../cpu/pool.h"
#include "../error.h"

#include <stdlib.h>
#include <string.h>

/* As much as the cpu backend gives a worker. */
#define SHARED_BYTES (1u << 20)

typedef struct bp_direct_launch {
    bp_native_entry entry;
    uint64_t blocks;
    bp_native_launch launch;
} bp_direct_launch;

typedef struct bp_direct {
    bp_pool *pool;
    unsigned char *shared;
    const bp_direct_launch *now;
} bp_direct;

static int32_t run_blocks(void *context, uint32_t worker, uint64_t first, uint64_t count) {
    const bp_direct *direct = context;
    bp_native_launch launch = direct->now->launch;
    launch.worker = worker;
    if (launch.dynamic_shared_bytes)
        launch.shared = direct->shared + (uint64_t)worker * SHARED_BYTES;
    return direct->now->entry(&launch, first, count);
}

BP_EXPORT void bp_direct_close(bp_direct *direct) {
    if (direct->pool)
        bp_pool_destroy(direct->pool);
    free(direct->shared);
    free(direct);
}

/* Null when the system has no memory or no threads. */
BP_EXPORT bp_direct *bp_direct_open(uint32_t threads) {
    bp_direct *direct = calloc(1, sizeof(*direct));
    if (!direct)
        return NULL;
    direct->shared = aligned_alloc(64, (uint64_t)threads * SHARED_BYTES);
    direct->pool = bp_pool_create(threads);
    if (direct->shared && direct->pool)
        return direct;
    bp_direct_close(direct);
    return NULL;
}

/* All launches in order; 0, or what the first that failed returned. */
BP_EXPORT int32_t bp_direct_run(bp_direct *direct, const bp_direct_launch *launches,
                                uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        direct->now = &launches[i];
        int32_t status = bp_pool_run(direct->pool, run_blocks, direct, launches[i].blocks);
        if (status)
            return status;
    }
    return BP_OK;
}
