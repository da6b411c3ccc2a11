/*
 * What matmul and quantized_matmul share: a tile of rows times a band of weight rows, then bias,
 * residual and the store. K is walked in slices that fit the first-level cache; the order of the
 * sum depends on K alone, so a row's result never depends on its neighbours.
 */
#ifndef BEDPLATE_HAL_CPU_OPS_PRODUCT_H
#define BEDPLATE_HAL_CPU_OPS_PRODUCT_H

#include "read.h"

/* Output columns of one block, rows of one tile, elements of one slice of K. */
#define BP_CPU_COLUMNS 16
#define BP_CPU_TILE    8
#define BP_CPU_SLICE   256

typedef struct bp_cpu_product {
    const bp_cpu_tensor *a;
    const bp_cpu_tensor *bias;
    const bp_cpu_tensor *residual;
    const bp_cpu_tensor *out;
    int64_t rows;
    int64_t columns;
    int64_t depth;
} bp_cpu_product;

typedef float bp_cpu_sums[BP_CPU_TILE][BP_CPU_COLUMNS];

static inline uint64_t bp_cpu_product_blocks(int64_t rows, int64_t columns) {
    return rows ? (uint64_t)((columns + BP_CPU_COLUMNS - 1) / BP_CPU_COLUMNS) : 0;
}

/* Elements [from, from + length) of row `row` of a, padded with zeros to a multiple of 16. */
static inline void bp_cpu_read_slice(const bp_cpu_tensor *a, int64_t row, int64_t from,
                                     int64_t length, float *to) {
    bp_cpu_read(a->dtype, bp_cpu_at(a, row * a->stride[0] + from), length, to);
    for (int64_t i = length; i & 15; i++)
        to[i] = 0.0f;
}

/* Bias, residual and store of `height` x `width` sums at (row, column). */
static inline void bp_cpu_product_store(const bp_cpu_product *p, bp_cpu_sums sums, int64_t row,
                                        int64_t height, int64_t column, int64_t width) {
    const float *bias = (const float *)(const void *)p->bias->data;
    for (int64_t r = 0; r < height; r++) {
        if (bias)
            for (int64_t c = 0; c < width; c++)
                sums[r][c] += bias[column + c];
        if (p->residual->data) {
            const float *residual = (const float *)(void *)bp_cpu_at(
                p->residual, (row + r) * p->residual->stride[0] + column);
            for (int64_t c = 0; c < width; c++)
                sums[r][c] += residual[c];
        }
        bp_cpu_write(p->out->dtype, bp_cpu_at(p->out, (row + r) * p->out->stride[0] + column),
                     width, sums[r]);
    }
}

#endif
