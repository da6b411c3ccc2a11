/*
 * quantized_matmul with float activations: weights in blocks of 32 (layout in blocks.h) are
 * dequantised on the way, products and sums are f32. The exact class beside int8: a code times its
 * scale is exact in f32, Q4_1's minimum costs one rounding. One block of the grid is
 * BP_PANELS_PER_BLOCK panels.
 */
#include "blocks.h"
#include "product.h"

typedef struct parameters {
    const void *a;
    const uint8_t *weights;
    const float *bias;
    const float *residual;
    const uint32_t *count;
    float *out;
    int64_t rows, columns, depth, a_stride, residual_stride, out_stride;
    uint32_t a_type, format;
} parameters;

enum { ROWS = 4, VECTORS = BP_PER_PANEL };

/* 4-byte groups of codes of one panel's vector `v` of group `j`, as integers. */
BP_INLINE bp_vi load_group(const uint8_t *w, int j, int v) {
#if BP_AVX512
    (void)v;
    return _mm512_loadu_si512(w + 64 * j);
#else
    return _mm256_loadu_si256((const __m256i *)(const void *)(w + 64 * j + 32 * v));
#endif
}

BP_INLINE bp_vf group_code(bp_vi group, int shift, int mask) {
#if BP_AVX512
    return _mm512_cvtepi32_ps(
        _mm512_and_si512(_mm512_srli_epi32(group, (unsigned)shift), _mm512_set1_epi32(mask)));
#else
    return _mm256_cvtepi32_ps(
        _mm256_and_si256(_mm256_srli_epi32(group, shift), _mm256_set1_epi32(mask)));
#endif
}

BP_INLINE bp_vf halves(const uint8_t *from, int v) {
#if BP_AVX512
    (void)v;
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)from));
#else
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from + 16 * v)));
#endif
}

/* 32 rows of K by one vector of outputs, as f32. */
BP_INLINE void decode(const uint8_t *w, uint32_t format, int v, bp_vf *weights) {
    int64_t bytes = format == BP_Q8_0 ? 512 : 256;
    bp_vf scale = halves(w + bytes, v);
    bp_vf offset = scale * bp_set(format == BP_Q8_0 ? -128.0f : -8.0f);
    if (format == BP_Q4_1)
        offset = halves(w + bytes + 32, v);
    for (int j = 0; j < (format == BP_Q8_0 ? 8 : 4); j++) {
        bp_vi group = load_group(w, j, v);
        for (int i = 0; i < 4; i++) {
            if (format == BP_Q8_0) {
                weights[4 * j + i] = bp_fma(group_code(group, 8 * i, 255), scale, offset);
                continue;
            }
            weights[4 * j + i] = bp_fma(group_code(group, 8 * i, 15), scale, offset);
            weights[16 + 4 * j + i] = bp_fma(group_code(group, 8 * i + 4, 15), scale, offset);
        }
    }
}

BP_INLINE void tile(const parameters *p, const uint8_t *w, const float *a, int64_t stride, int rows,
                    uint32_t format, bp_vf sums[ROWS][VECTORS]) {
    for (int64_t b = 0; b < p->depth / 32; b++, w += bp_packed_block_bytes(format))
        for (int v = 0; v < VECTORS; v++) {
            bp_vf weights[32];
            decode(w, format, v, weights);
            for (int k = 0; k < 32; k++)
                for (int r = 0; r < rows; r++)
                    sums[r][v] = bp_fma(bp_set(a[r * stride + b * 32 + k]), weights[k], sums[r][v]);
        }
}

/* The rows of a tile as dense f32. */
static const float *read_rows(const parameters *p, int64_t row, int rows, float *to,
                              int64_t *stride) {
    *stride = p->a_stride;
    if (p->a_type == BP_F32)
        return (const float *)p->a + row * p->a_stride;
    *stride = p->depth;
    for (int r = 0; r < rows; r++)
        for (int64_t k = 0; k < p->depth; k += BP_LANES)
            bp_store(to + r * p->depth + k,
                     bp_load_bf16((const uint16_t *)p->a + (row + r) * p->a_stride + k));
    return to;
}

static void tile_rows(const parameters *p, const bp_output *out, const uint8_t *w, int64_t panel,
                      int64_t row, int rows, float *scratch) {
    int64_t stride;
    const float *a = read_rows(p, row, rows, scratch, &stride);
    bp_vf sums[ROWS][VECTORS];
    for (int r = 0; r < ROWS; r++)
        for (int v = 0; v < VECTORS; v++)
            sums[r][v] = bp_set(0.0f);
    if (p->format == BP_Q8_0)
        rows == ROWS ? tile(p, w, a, stride, ROWS, BP_Q8_0, sums)
                     : tile(p, w, a, stride, rows, BP_Q8_0, sums);
    else if (p->format == BP_Q4_0)
        rows == ROWS ? tile(p, w, a, stride, ROWS, BP_Q4_0, sums)
                     : tile(p, w, a, stride, rows, BP_Q4_0, sums);
    else
        rows == ROWS ? tile(p, w, a, stride, ROWS, BP_Q4_1, sums)
                     : tile(p, w, a, stride, rows, BP_Q4_1, sums);
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < VECTORS; v++)
            bp_output_store(out, row + r, panel * BP_PANEL + v * BP_LANES, sums[r][v]);
}

/* Shared memory holds ROWS rows of K f32 when a is bf16. */
BP_KERNEL(quantized_matmul_float) {
    const parameters *p = BP_PARAMETERS(parameters, launch);
    bp_output out = {p->bias,       p->residual, p->out, p->columns, p->residual_stride,
                     p->out_stride, BP_F32};
    int64_t rows = bp_rows(p->count, p->rows);
    bp_span span = bp_panels(p->columns, first_block, block_count);
    for (int64_t panel = span.from; panel < span.to; panel++) {
        const uint8_t *w = p->weights + panel * (p->depth / 32) * bp_packed_block_bytes(p->format);
        for (int64_t row = 0; row < rows; row += ROWS)
            tile_rows(p, &out, w, panel, row, (int)(rows - row < ROWS ? rows - row : ROWS),
                      (float *)launch->shared);
    }
    return BP_OK;
}
