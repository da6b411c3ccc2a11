/*
 * quantized_matmul: a [M,K] f32 or bf16, w [N,K] in GGUF rows, bias?, residual?, count?, out f32
 * [M,N]. BP_ACTIVATION_FLOAT dequantises weights; BP_ACTIVATION_INT8 rounds each 32 activations to
 * int8 with an f32 scale (largest magnitude / 127) and sums integers. One block is 16 columns.
 */
#include "product.h"
#include "shape.h"

#include <math.h>

enum { A, W, BIAS, RESIDUAL, COUNT, OUT };

static int32_t plan(bp_cpu_plan *plan) {
    const bp_cpu_tensor *t = plan->tensors;
    if (!bp_cpu_is_blocks(t[W].dtype))
        return bp_fail(BP_UNSUPPORTED, "quantized_matmul does not take w of dtype 0x%x",
                       t[W].dtype);
    BP_CPU_TRY(bp_cpu_check_rows("quantized_matmul", "a", &t[A], 2));
    BP_CPU_TRY(bp_cpu_check_rows("quantized_matmul", "w", &t[W], 2));
    BP_CPU_TRY(bp_cpu_check_rows("quantized_matmul", "out", &t[OUT], 2));
    BP_CPU_TRY(bp_cpu_check_dtype("quantized_matmul", "a", &t[A], BP_DTYPE_F32, BP_DTYPE_BF16));
    BP_CPU_TRY(bp_cpu_check_dtype("quantized_matmul", "out", &t[OUT], BP_DTYPE_F32, BP_DTYPE_F32));
    BP_CPU_TRY(bp_cpu_check_extent("quantized_matmul", "w", &t[W], 1, t[A].shape[1]));
    BP_CPU_TRY(bp_cpu_check_extent("quantized_matmul", "out", &t[OUT], 0, t[A].shape[0]));
    BP_CPU_TRY(bp_cpu_check_extent("quantized_matmul", "out", &t[OUT], 1, t[W].shape[0]));
    if (t[BIAS].dtype)
        BP_CPU_TRY(bp_cpu_check_vector("quantized_matmul", "bias", &t[BIAS], BP_DTYPE_F32,
                                       t[OUT].shape[1]));
    if (t[RESIDUAL].dtype) {
        BP_CPU_TRY(bp_cpu_check_rows("quantized_matmul", "residual", &t[RESIDUAL], 2));
        BP_CPU_TRY(bp_cpu_check_dtype("quantized_matmul", "residual", &t[RESIDUAL], BP_DTYPE_F32,
                                      BP_DTYPE_F32));
        BP_CPU_TRY(
            bp_cpu_check_extent("quantized_matmul", "residual", &t[RESIDUAL], 0, t[OUT].shape[0]));
        BP_CPU_TRY(
            bp_cpu_check_extent("quantized_matmul", "residual", &t[RESIDUAL], 1, t[OUT].shape[1]));
        if (t[OUT].stride[0] == t[RESIDUAL].stride[0])
            plan->in_place = 1u << RESIDUAL;
    }
    BP_CPU_TRY(bp_cpu_check_count("quantized_matmul", &t[COUNT]));
    uint32_t activation = plan->attributes.quantized_matmul.activation;
    if (activation > BP_ACTIVATION_INT8)
        return bp_fail(BP_INVALID_ARGUMENT, "quantized_matmul wants activation 0 or 1, got %u",
                       activation);
    plan->writes = 1u << OUT;
    return BP_OK;
}

static uint64_t blocks(const bp_cpu_run *run) {
    int64_t rows = bp_cpu_rows(&run->tensors[COUNT], run->tensors[OUT].shape[0]);
    return bp_cpu_product_blocks(rows, run->tensors[OUT].shape[1]);
}

/* 32 values to int8 codes; returns the scale and the sum of the codes. A NaN or infinity makes the
 * scale NaN, so that it reaches the result. */
static float quantise(const float *values, int8_t *codes, int32_t *sum) {
    float largest = 0.0f;
    int finite = 1;
    for (int i = 0; i < 32; i++) {
        float magnitude = fabsf(values[i]);
        largest = magnitude > largest ? magnitude : largest;
        finite &= magnitude <= 3.4e38f;
    }
    float inverse = finite && largest > 0.0f ? 127.0f / largest : 0.0f;
    if (inverse > 3.4e38f)
        inverse = 0.0f; /* a block of subnormals */
    *sum = 0;
    for (int i = 0; i < 32; i++) {
        codes[i] = (int8_t)lrintf(values[i] * (finite ? inverse : 0.0f));
        *sum += codes[i];
    }
    return finite ? largest / 127.0f : NAN;
}

static void tile_int8(const bp_cpu_product *p, const bp_cpu_tensor *w, int64_t row, int64_t height,
                      int64_t column, int64_t width) {
    bp_cpu_sums sums = {{0}};
    int8_t codes[BP_CPU_TILE][32], weights[32];
    int32_t code_sums[BP_CPU_TILE];
    float scales[BP_CPU_TILE], values[32];
    for (int64_t from = 0; from < p->depth; from += 32) {
        for (int64_t r = 0; r < height; r++) {
            bp_cpu_read(p->a->dtype, bp_cpu_at(p->a, (row + r) * p->a->stride[0] + from), 32,
                        values);
            scales[r] = quantise(values, codes[r], &code_sums[r]);
        }
        for (int64_t c = 0; c < width; c++) {
            float scale, offset;
            bp_cpu_block_codes(w->dtype, bp_cpu_at(w, (column + c) * w->stride[0] + from), weights,
                               &scale, &offset);
            for (int64_t r = 0; r < height; r++) {
                int32_t dot = 0;
                for (int i = 0; i < 32; i++)
                    dot += (int16_t)codes[r][i] * (int16_t)weights[i];
                sums[r][c] += scales[r] * (scale * (float)dot + offset * (float)code_sums[r]);
            }
        }
    }
    bp_cpu_product_store(p, sums, row, height, column, width);
}

static void tile_float(const bp_cpu_product *p, const bp_cpu_tensor *w, int64_t row, int64_t height,
                       int64_t column, int64_t width) {
    _Alignas(64) float weights[BP_CPU_COLUMNS][BP_CPU_SLICE];
    _Alignas(64) float values[BP_CPU_SLICE];
    bp_cpu_sums sums = {{0}};
    for (int64_t from = 0; from < p->depth; from += BP_CPU_SLICE) {
        int64_t length = p->depth - from < BP_CPU_SLICE ? p->depth - from : BP_CPU_SLICE;
        for (int64_t c = 0; c < width; c++)
            bp_cpu_read(w->dtype, bp_cpu_at(w, (column + c) * w->stride[0] + from), length,
                        weights[c]);
        for (int64_t r = 0; r < height; r++) {
            bp_cpu_read_slice(p->a, row + r, from, length, values);
            for (int64_t c = 0; c < width; c++)
                sums[r][c] += bp_cpu_dot(values, weights[c], length);
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
    int int8 = run->plan->attributes.quantized_matmul.activation == BP_ACTIVATION_INT8;
    for (uint64_t block = first; block < first + count; block++) {
        int64_t column = (int64_t)block * BP_CPU_COLUMNS, left = p.columns - column;
        int64_t width = left < BP_CPU_COLUMNS ? left : BP_CPU_COLUMNS;
        for (int64_t row = 0; row < p.rows; row += BP_CPU_TILE) {
            int64_t height = p.rows - row < BP_CPU_TILE ? p.rows - row : BP_CPU_TILE;
            (int8 ? tile_int8 : tile_float)(&p, &t[W], row, height, column, width);
        }
    }
    return BP_OK;
}

const bp_cpu_op bp_cpu_op_quantized_matmul = {
    .id = BP_OP_QUANTIZED_MATMUL,
    .name = "quantized_matmul",
    .attribute_bytes = sizeof(bp_quantized_matmul_attributes),
    .tensors = 6,
    .optional = 1u << BIAS | 1u << RESIDUAL | 1u << COUNT,
    .plan = plan,
    .blocks = blocks,
    .run = run,
};
