/*
 * The worker pool of a device: threads - 1 workers that help whoever runs a grid.
 *
 * The caller (a queue's executor) always works itself, and only waits for workers that joined: one
 * that the system has not scheduled costs nothing. Blocks are handed out in chunks from a shared
 * counter, so a slow core takes fewer. One grid at a time uses the pool; a second queue that comes
 * meanwhile runs its grid alone. A grid of one chunk wakes nobody.
 *
 * Workers spin for SPIN_NS after work, then sleep on a futex: within a batch the next grid finds
 * them awake.
 */
#ifndef BEDPLATE_HAL_CPU_POOL_H
#define BEDPLATE_HAL_CPU_POOL_H

#include <stdint.h>

typedef struct bp_pool bp_pool;

/* What to run: blocks [first, first + count), as worker number `worker`. 0 or a status. */
typedef int32_t (*bp_pool_work)(void *context, uint32_t worker, uint64_t first, uint64_t count);

/* A pool of threads - 1 workers; null with a sentence when the system has no threads to
 * give. */
bp_pool *bp_pool_create(uint32_t threads);
void bp_pool_destroy(bp_pool *pool);

/* Runs all blocks, on the caller (worker 0) and whoever is free; the first failure stops the rest
 * and is returned. */
int32_t bp_pool_run(bp_pool *pool, bp_pool_work work, void *context, uint64_t blocks);

#endif
