/*
 * What every kernel of these modules shares: parameters are one packed C struct (addresses first,
 * then 8-byte and 4-byte scalars, as src/bedplate/kernels/cpu_module.py packs them), and the number
 * of rows is read from device memory when the kernel runs.
 */
#ifndef BEDPLATE_KERNELS_CPU_LAUNCH_H
#define BEDPLATE_KERNELS_CPU_LAUNCH_H

#include "bedplate/hal_native.h"
#include "vector.h"

/* Element types as kernels are told them. */
enum { BP_F32 = 0, BP_BF16_TYPE = 1, BP_Q8_0 = 2, BP_Q4_0 = 3, BP_Q4_1 = 4 };

#define BP_PARAMETERS(type, launch) ((const type *)(launch)->parameters)

/* Rows in use: the value of `count`, at most `most`; `most` when it is null. */
BP_INLINE int64_t bp_rows(const uint32_t *count, int64_t most) {
    return count && (int64_t)*count < most ? (int64_t)*count : most;
}

/* Rows that blocks [first, first + blocks) of a grid cover when each of `grid` blocks takes an
 * equal share of `rows`: a recorded grid serves any number of rows. */
typedef struct bp_span {
    int64_t from, to;
} bp_span;

BP_INLINE bp_span bp_share(int64_t rows, uint32_t grid, uint64_t first, uint64_t blocks) {
    bp_span span = {(int64_t)((uint64_t)rows * first / grid),
                    (int64_t)((uint64_t)rows * (first + blocks) / grid)};
    return span;
}

#define BP_KERNEL(name)                                                                            \
    int32_t bp_kernel_##name(const bp_native_launch *launch, uint64_t first_block,                 \
                             uint64_t block_count)

#endif
