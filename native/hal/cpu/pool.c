/* The worker pool; see pool.h. */
#define _GNU_SOURCE
#include "pool.h"

#include "../chassis/futex.h"
#include "../chassis/thread.h"
#include "../error.h"

#include "bedplate/hal.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

/* Chosen, not measured: tens of microseconds, to bridge the serial part between two grids of a
 * step. On two loaded cores 0, 40 and 200 us could not be told apart; on a quiet machine measure
 * again by building with another value and running benchmarks/hal for both in turn. */
#define SPIN_NS           40000ull
#define CHUNKS_PER_THREAD 8u

/* The gate: OPEN while a grid may be joined, ACTIVE the workers inside, the rest counts grids so
 * that a sleeper sees every new one. */
#define GATE_OPEN   0x80000000u
#define GATE_ACTIVE 0x0000ffffu
#define GATE_STEP   0x00010000u

typedef struct worker {
    bp_pool *pool;
    pthread_t thread;
    uint32_t number;
    /* Count of the grid it joined last, as the gate shows it; a grid is joined once. */
    uint32_t joined;
} worker;

struct bp_pool {
    _Atomic uint32_t gate;
    _Atomic uint32_t sleepers;
    _Atomic uint32_t stop;
    /* Taken by the one grid that uses the pool. */
    _Atomic uint32_t busy;
    /* The grid; written while the gate is closed and nobody is inside. */
    bp_pool_work work;
    void *context;
    uint64_t blocks, chunk;
    _Atomic uint64_t next;
    _Atomic int32_t status;
    uint32_t threads;
    worker *workers;
};

/* Takes chunks until none is left or something failed. */
static void take_chunks(bp_pool *pool, uint32_t number) {
    for (;;) {
        uint64_t first = atomic_fetch_add_explicit(&pool->next, pool->chunk, memory_order_relaxed);
        if (first >= pool->blocks ||
            atomic_load_explicit(&pool->status, memory_order_relaxed) != BP_OK)
            return;
        uint64_t left = pool->blocks - first;
        int32_t status =
            pool->work(pool->context, number, first, left < pool->chunk ? left : pool->chunk);
        int32_t fine = BP_OK;
        if (status != BP_OK)
            atomic_compare_exchange_strong(&pool->status, &fine, status);
    }
}

static uint32_t count_of(uint32_t gate) {
    return gate & ~(GATE_OPEN | GATE_ACTIVE);
}

/* Whether a gate is open for a grid that this worker has not joined. */
static int inviting(const worker *self, uint32_t gate) {
    return (gate & GATE_OPEN) && count_of(gate) != self->joined;
}

/* Enters an inviting gate; 0 when it is closed meanwhile. */
static int join(worker *self) {
    bp_pool *pool = self->pool;
    uint32_t gate = atomic_load_explicit(&pool->gate, memory_order_relaxed);
    while (inviting(self, gate)) {
        if (atomic_compare_exchange_weak_explicit(&pool->gate, &gate, gate + 1,
                                                  memory_order_acquire, memory_order_relaxed)) {
            self->joined = count_of(gate);
            return 1;
        }
    }
    return 0;
}

/* Until there may be work: 1, or the pool stops: 0. */
static int rest(worker *self) {
    bp_pool *pool = self->pool;
    uint64_t until = bp_now_ns() + SPIN_NS;
    for (uint32_t turn = 1;; turn++) {
        if (atomic_load_explicit(&pool->stop, memory_order_relaxed))
            return 0;
        if (inviting(self, atomic_load_explicit(&pool->gate, memory_order_relaxed)))
            return 1;
        bp_pause();
        if (turn % 64 == 0 && bp_now_ns() >= until)
            break;
    }
    atomic_fetch_add_explicit(&pool->sleepers, 1, memory_order_seq_cst);
    uint32_t seen = atomic_load_explicit(&pool->gate, memory_order_seq_cst);
    if (!inviting(self, seen) && !atomic_load_explicit(&pool->stop, memory_order_seq_cst))
        bp_futex_wait(&pool->gate, seen, UINT64_MAX);
    atomic_fetch_sub_explicit(&pool->sleepers, 1, memory_order_seq_cst);
    return !atomic_load_explicit(&pool->stop, memory_order_relaxed);
}

static void *serve(void *argument) {
    worker *self = argument;
    while (rest(self)) {
        if (!join(self))
            continue;
        take_chunks(self->pool, self->number);
        atomic_fetch_sub_explicit(&self->pool->gate, 1, memory_order_release);
    }
    return NULL;
}

/* Waits for the workers inside a closed gate; each is in its last chunk. */
static void drain(bp_pool *pool) {
    for (uint32_t turn = 1; atomic_load_explicit(&pool->gate, memory_order_acquire) & GATE_ACTIVE;
         turn++) {
        bp_pause();
        /* The worker may have lost its core to us. */
        if (turn % 4096 == 0)
            sched_yield();
    }
}

static int32_t run_shared(bp_pool *pool, bp_pool_work work, void *context, uint64_t blocks) {
    pool->work = work;
    pool->context = context;
    pool->blocks = blocks;
    pool->chunk = blocks / ((uint64_t)pool->threads * CHUNKS_PER_THREAD);
    if (pool->chunk == 0)
        pool->chunk = 1;
    atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
    atomic_store_explicit(&pool->status, BP_OK, memory_order_relaxed);
    uint32_t gate = atomic_load_explicit(&pool->gate, memory_order_relaxed);
    /* Nobody is inside and it is closed: only the count of grids and OPEN change. */
    uint32_t opened = ((gate + GATE_STEP) & ~(GATE_OPEN | GATE_ACTIVE)) | GATE_OPEN;
    atomic_store_explicit(&pool->gate, opened, memory_order_seq_cst);
    if (atomic_load_explicit(&pool->sleepers, memory_order_seq_cst)) {
        /* One chunk is the caller's own. */
        uint64_t helpers = (blocks - 1) / pool->chunk;
        bp_futex_wake(&pool->gate, helpers < pool->threads ? (int)helpers : INT_MAX);
    }
    take_chunks(pool, 0);
    atomic_fetch_and_explicit(&pool->gate, ~GATE_OPEN, memory_order_acq_rel);
    drain(pool);
    return atomic_load_explicit(&pool->status, memory_order_relaxed);
}

int32_t bp_pool_run(bp_pool *pool, bp_pool_work work, void *context, uint64_t blocks) {
    uint32_t free_pool = 0;
    if (blocks == 0)
        return BP_OK;
    if (blocks == 1 || pool->threads == 1 ||
        !atomic_compare_exchange_strong_explicit(&pool->busy, &free_pool, 1, memory_order_acquire,
                                                 memory_order_relaxed))
        return work(context, 0, 0, blocks);
    int32_t status = run_shared(pool, work, context, blocks);
    atomic_store_explicit(&pool->busy, 0, memory_order_release);
    return status;
}

bp_pool *bp_pool_create(uint32_t threads) {
    bp_pool *pool = calloc(1, sizeof(*pool));
    if (pool) {
        pool->threads = 1;
        pool->workers = calloc(threads, sizeof(*pool->workers));
    }
    for (uint32_t number = 1; pool && pool->workers && number < threads; number++) {
        worker *one = &pool->workers[number];
        one->pool = pool;
        one->number = number;
        one->joined = UINT32_MAX;
        if (bp_thread_start(&one->thread, "bp-cpu-worker", serve, one))
            break;
        /* The workers' own count is read only by grids, and none runs yet. */
        pool->threads = number + 1;
    }
    if (pool && pool->workers && pool->threads == threads)
        return pool;
    if (pool)
        bp_pool_destroy(pool);
    bp_fail(BP_OUT_OF_MEMORY, "the system has no %u threads for the worker pool", threads);
    return NULL;
}

void bp_pool_destroy(bp_pool *pool) {
    atomic_store_explicit(&pool->stop, 1, memory_order_seq_cst);
    /* A new count of grids ends every sleep that began before. */
    atomic_fetch_add_explicit(&pool->gate, GATE_STEP, memory_order_seq_cst);
    bp_futex_wake(&pool->gate, INT_MAX);
    for (uint32_t number = 1; number < pool->threads; number++)
        pthread_join(pool->workers[number].thread, NULL);
    free(pool->workers);
    free(pool);
}
