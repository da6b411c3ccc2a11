/*
 * matmul: a [M,K], b [K,N] (a transposed view of row-major weights, or any strides), bias? f32 [N],
 * residual? f32 [M,N], count?, out [M,N], which may be the residual itself; a, b and out are f32 or
 * bf16, sums are f32. One block is 16 output columns of all rows, so weights are read once a tile.
 */
#include "product.h"
#include "shape.h"

enum { A, B, BIAS, RESIDUAL, COUNT, OUT };

static int32_t plan(bp_cpu_plan *plan) {
    const bp_cpu_tensor *t = plan->tensors;
    BP_CPU_TRY(bp_cpu_check_rows("matmul", "a", &t[A], 2));
    BP_CPU_TRY(bp_cpu_check_rows("matmul", "out", &t[OUT], 2));
    BP_CPU_TRY(bp_cpu_check_dtype("matmul", "a", &t[A], BP_DTYPE_F32, BP_DTYPE_BF16));
    BP_CPU_TRY(bp_cpu_check_dtype("matmul", "b", &t[B], BP_DTYPE_F32, BP_DTYPE_BF16));
    BP_CPU_TRY(bp_cpu_check_dtype("matmul", "out", &t[OUT], BP_DTYPE_F32, BP_DTYPE_BF16));
    if (t[B].rank != 2)
        return bp_fail(BP_INVALID_ARGUMENT, "matmul wants b of rank 2, got %u", t[B].rank);
    BP_CPU_TRY(bp_cpu_check_extent("matmul", "b", &t[B], 0, t[A].shape[1]));
    BP_CPU_TRY(bp_cpu_check_extent("matmul", "out", &t[OUT], 0, t[A].shape[0]));
    BP_CPU_TRY(bp_cpu_check_extent("matmul", "out", &t[OUT], 1, t[B].shape[1]));
    if (t[BIAS].dtype)
        BP_CPU_TRY(bp_cpu_check_vector("matmul", "bias", &t[BIAS], BP_DTYPE_F32, t[OUT].shape[1]));
    if (t[RESIDUAL].dtype) {
        BP_CPU_TRY(bp_cpu_check_rows("matmul", "residual", &t[RESIDUAL], 2));
        BP_CPU_TRY(
            bp_cpu_check_dtype("matmul", "residual", &t[RESIDUAL], BP_DTYPE_F32, BP_DTYPE_F32));
        BP_CPU_TRY(bp_cpu_check_extent("matmul", "residual", &t[RESIDUAL], 0, t[OUT].shape[0]));
        BP_CPU_TRY(bp_cpu_check_extent("matmul", "residual", &t[RESIDUAL], 1, t[OUT].shape[1]));
        if (t[OUT].dtype == BP_DTYPE_F32 && t[OUT].stride[0] == t[RESIDUAL].stride[0])
            plan->in_place = 1u << RESIDUAL;
    }
    BP_CPU_TRY(bp_cpu_check_count("matmul", &t[COUNT]));
    plan->writes = 1u << OUT;
    return BP_OK;
}

static uint64_t blocks(const bp_cpu_run *run) {
    int64_t rows = bp_cpu_rows(&run->tensors[COUNT], run->tensors[OUT].shape[0]);
    return bp_cpu_product_blocks(rows, run->tensors[OUT].shape[1]);
}

/* Column `column` of b, elements [from, from + length), padded like a slice of a. */
static void read_column(const bp_cpu_tensor *b, int64_t column, int64_t from, int64_t length,
                        float *to) {
    int64_t start = from * b->stride[0] + column * b->stride[1];
    if (b->stride[0] == 1)
        bp_cpu_read(b->dtype, bp_cpu_at(b, start), length, to);
    else
        for (int64_t k = 0; k < length; k++)
            bp_cpu_read(b->dtype, bp_cpu_at(b, start + k * b->stride[0]), 1, to + k);
    for (int64_t i = length; i & 15; i++)
        to[i] = 0.0f;
}

static void tile(const bp_cpu_product *p, const bp_cpu_tensor *b, int64_t row, int64_t height,
                 int64_t column, int64_t width) {
    _Alignas(64) float weights[BP_CPU_COLUMNS][BP_CPU_SLICE];
    _Alignas(64) float values[BP_CPU_SLICE];
    bp_cpu_sums sums = {{0}};
    for (int64_t from = 0; from < p->depth; from += BP_CPU_SLICE) {
        int64_t length = p->depth - from < BP_CPU_SLICE ? p->depth - from : BP_CPU_SLICE;
        for (int64_t c = 0; c < width; c++)
            read_column(b, column + c, from, length, weights[c]);
        for (int64_t r = 0; r < height; r++) {
            bp_cpu_read_slice(p->a, row + r, from, length, values);
            for (int64_t c = 0; c < width; c++)
                sums[r][c] += bp_cpu_dot(values, weights[c], (length + 15) & ~(int64_t)15);
        }
    }
    bp_cpu_product_store(p, sums, row, height, column, width);
}

static int32_t run(const bp_cpu_run *run, uint64_t first, uint64_t count) {
    const bp_cpu_tensor *t = run->tensors;
    bp_cpu_product p = {&t[A],
                        &t[BIAS],
                        &t[RESIDUAL],
                        &t[OUT],
                        bp_cpu_rows(&t[COUNT], t[OUT].shape[0]),
                        t[OUT].shape[1],
                        t[A].shape[1]};
    for (uint64_t block = first; block < first + count; block++) {
        int64_t column = (int64_t)block * BP_CPU_COLUMNS, left = p.columns - column;
        for (int64_t row = 0; row < p.rows; row += BP_CPU_TILE)
            tile(&p, &t[B], row, p.rows - row < BP_CPU_TILE ? p.rows - row : BP_CPU_TILE, column,
                 left < BP_CPU_COLUMNS ? left : BP_CPU_COLUMNS);
    }
    return BP_OK;
}

const bp_cpu_op bp_cpu_op_matmul = {
    .id = BP_OP_MATMUL,
    .name = "matmul",
    .attribute_bytes = sizeof(bp_matmul_attributes),
    .tensors = 6,
    .optional = 1u << BIAS | 1u << RESIDUAL | 1u << COUNT,
    .plan = plan,
    .blocks = blocks,
    .run = run,
};
