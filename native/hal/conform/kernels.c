/*
 * Native kernels of the conformance suite: each shows one promise of the launch ABI.
 * Parameters are what the suite packs; a kernel reads them at the documented offsets.
 */
#include "bedplate/hal_native.h"

#include <string.h>
#include <time.h>

static uint64_t word(const bp_native_launch *launch, uint64_t offset) {
    uint64_t value;
    memcpy(&value, (const unsigned char *)launch->parameters + offset, sizeof(value));
    return value;
}

static void *address(const bp_native_launch *launch, uint64_t offset) {
    return (void *)(uintptr_t)word(launch, offset);
}

/* out u32[blocks]: adds 1 to its own word, so each block must run exactly once. */
static int32_t count_blocks(const bp_native_launch *launch, uint64_t first, uint64_t count) {
    uint32_t *out = address(launch, 0);
    for (uint64_t block = first; block < first + count; block++)
        __atomic_fetch_add(&out[block], 1u, __ATOMIC_RELAXED);
    return BP_OK;
}

/* out f32[n], x f32[n], a f32, n u32; a block is 64 elements: out = a * x. */
static int32_t scale(const bp_native_launch *launch, uint64_t first, uint64_t count) {
    float *out = address(launch, 0), a;
    const float *x = address(launch, 8);
    uint32_t n;
    memcpy(&a, (const unsigned char *)launch->parameters + 16, sizeof(a));
    memcpy(&n, (const unsigned char *)launch->parameters + 20, sizeof(n));
    for (uint64_t i = first * 64; i < (first + count) * 64 && i < n; i++)
        out[i] = a * x[i];
    return BP_OK;
}

/* out u8[256], then anything: copies its own parameters behind their length. */
static int32_t echo(const bp_native_launch *launch, uint64_t first, uint64_t count) {
    (void)first;
    (void)count;
    unsigned char *out = address(launch, 0);
    uint64_t bytes = launch->parameters_bytes < 240 ? launch->parameters_bytes : 240;
    memcpy(out, &launch->parameters_bytes, 8);
    memcpy(out + 8, launch->parameters, bytes);
    return BP_OK;
}

/* out u32[12]: what the launch says of itself, from its last block. */
static int32_t describe(const bp_native_launch *launch, uint64_t first, uint64_t count) {
    uint32_t *out = address(launch, 0);
    uint64_t blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    if (first + count != blocks)
        return BP_OK;
    memcpy(out, launch->grid, sizeof(launch->grid));
    memcpy(out + 3, launch->block, sizeof(launch->block));
    out[6] = launch->dynamic_shared_bytes;
    out[7] = launch->head.struct_size;
    out[8] = launch->shared != NULL;
    out[9] = (uint32_t)((uintptr_t)launch->shared % 64);
    out[10] = launch->cancel != NULL;
    out[11] = launch->head.struct_version;
    return BP_OK;
}

/* out u32[blocks], bytes u32: fills its whole shared memory with the block's number and counts what
 * it reads back. */
static int32_t use_shared(const bp_native_launch *launch, uint64_t first, uint64_t count) {
    uint32_t *out = address(launch, 0), *shared = launch->shared;
    uint32_t words = launch->dynamic_shared_bytes / 4;
    for (uint64_t block = first; block < first + count; block++) {
        uint32_t same = 0;
        for (uint32_t i = 0; i < words; i++)
            shared[i] = (uint32_t)block;
        for (uint32_t i = 0; i < words; i++)
            same += shared[i] == (uint32_t)block;
        out[block] = same;
    }
    return BP_OK;
}

/* out u32[6]: grid and block, from the last block. */
static int32_t shape(const bp_native_launch *launch, uint64_t first, uint64_t count) {
    unsigned char *out = address(launch, 0);
    uint64_t blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    if (first + count == blocks) {
        memcpy(out, launch->grid, sizeof(launch->grid));
        memcpy(out + sizeof(launch->grid), launch->block, sizeof(launch->block));
    }
    return BP_OK;
}

/* out u32[threads]: each thread its own number, so each must run exactly once. */
static int32_t count_threads(const bp_native_launch *launch, uint64_t first, uint64_t count) {
    uint32_t *out = address(launch, 0), threads = launch->block[0];
    for (uint64_t i = first * threads; i < (first + count) * threads; i++)
        __atomic_fetch_add(&out[i], 1u, __ATOMIC_RELAXED);
    return BP_OK;
}

/* out u32, value u32: out = value; a null out writes nothing. */
static int32_t store(const bp_native_launch *launch, uint64_t first, uint64_t count) {
    (void)first;
    (void)count;
    void *out = address(launch, 0);
    if (out)
        memcpy(out, (const unsigned char *)launch->parameters + 8, 4);
    return BP_OK;
}

/* number u64: that block fails with a sentence. */
static int32_t fail_at(const bp_native_launch *launch, uint64_t first, uint64_t count) {
    uint64_t number = word(launch, 0);
    if (number >= first && number < first + count)
        return bp_native_fail(launch->fault, BP_LAUNCH_FAULT, number, (int64_t)number,
                              "block %llu was told to fail", (unsigned long long)number);
    return BP_OK;
}

/* status i32: returned as it is. */
static int32_t give_status(const bp_native_launch *launch, uint64_t first, uint64_t count) {
    (void)first;
    (void)count;
    int32_t status;
    memcpy(&status, launch->parameters, sizeof(status));
    return status;
}

/* flag u32[2]: says in flag[1] that it began, then stays until flag[0] is not 0 or the work is
 * cancelled. */
static int32_t hold(const bp_native_launch *launch, uint64_t first, uint64_t count) {
    (void)first;
    (void)count;
    uint32_t *flag = address(launch, 0);
    struct timespec nap = {0, 200000};
    __atomic_store_n(&flag[1], 1u, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&flag[0], __ATOMIC_ACQUIRE)) {
        if (bp_native_cancelled(launch))
            return BP_CANCELLED;
        nanosleep(&nap, NULL);
    }
    return BP_OK;
}

/* Nothing: what a launch costs. */
static int32_t nothing(const bp_native_launch *launch, uint64_t first, uint64_t count) {
    (void)launch;
    (void)first;
    (void)count;
    return BP_OK;
}

static const bp_native_kernel KERNELS[] = {
    BP_NATIVE_KERNEL(count_blocks), BP_NATIVE_KERNEL(scale),       BP_NATIVE_KERNEL(echo),
    BP_NATIVE_KERNEL(describe),     BP_NATIVE_KERNEL(use_shared),  BP_NATIVE_KERNEL(fail_at),
    BP_NATIVE_KERNEL(nothing),      BP_NATIVE_KERNEL(give_status), BP_NATIVE_KERNEL(hold),
    BP_NATIVE_KERNEL(shape),        BP_NATIVE_KERNEL(store),       BP_NATIVE_KERNEL(count_threads),
};

BP_NATIVE_MODULE(KERNELS, "generic");
