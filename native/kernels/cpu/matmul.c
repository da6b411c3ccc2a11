/*
 * matmul: a [M,K] f32 or bf16 times packed weights, f32 sums, out f32 or bf16.
 *
 * Packed weights are panels of 16 output columns: f32 as [panel][K][16], bf16 as
 * [panel][ceil(K/2)][16][2], zero past N and K. A tile is ROWS rows by one or two panels held in
 * registers over all of K; two panels of a model's K stay in the first or second cache while the
 * rows stream. bf16 by bf16 uses VDPBF16PS where this build has it; f32 activations never lose
 * bits. One block of the grid
 * is BP_PANELS_PER_BLOCK panels.
 */
#include "product.h"

typedef struct parameters {
    const void *a;
    const void *weights;
    const float *bias;
    const float *residual;
    const uint32_t *count;
    void *out;
    int64_t rows, columns, depth, a_stride, residual_stride, out_stride;
    uint32_t a_type, weight_type, out_type, pad;
} parameters;

#if BP_AVX512
enum { ROWS = 12, PANELS = 2 };
#else
enum { ROWS = 4, PANELS = 1 };
#endif
enum { VECTORS = PANELS * BP_PER_PANEL };

typedef bp_vf sums[ROWS][VECTORS];

/* Row r of a tile: one base for three rows, so that addresses fit the registers. */
#define BP_ROW(base, stride, r) ((base)[(r) / 3] + (stride) * ((r) % 3))

BP_INLINE void bases(const char *a, int64_t stride, const char **base) {
    for (int i = 0; i < (ROWS + 2) / 3; i++)
        base[i] = a + stride * 3 * i;
}

BP_INLINE float widen(uint32_t bits) {
    return _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128((int)bits)));
}

/* f32 weights. */
BP_INLINE void tile_f32(const parameters *p, const char *a, int64_t stride, const float *w,
                        int64_t panel_elements, int rows, int panels, int a_is_bf16,
                        const bp_ahead *ahead, sums acc) {
    const char *base[(ROWS + 2) / 3];
    bases(a, stride, base);
    for (int64_t k = 0; k < p->depth; k++) {
        bp_fetch(ahead, k, panels);
        bp_vf weight[VECTORS];
        for (int v = 0; v < panels * BP_PER_PANEL; v++)
            weight[v] = bp_load(w + v / BP_PER_PANEL * panel_elements + k * BP_PANEL +
                                v % BP_PER_PANEL * BP_LANES);
        for (int r = 0; r < rows; r++) {
            const char *row = BP_ROW(base, stride, r);
            bp_vf value =
                bp_set(a_is_bf16 ? widen((uint32_t)((const uint16_t *)(const void *)row)[k] << 16)
                                 : ((const float *)(const void *)row)[k]);
            for (int v = 0; v < panels * BP_PER_PANEL; v++)
                acc[r][v] = bp_fma(value, weight[v], acc[r][v]);
        }
    }
}

/* Split a vector of bf16 pairs into its first and second elements, as f32. */
BP_INLINE void split(const uint16_t *from, bp_vf *first, bp_vf *second) {
#if BP_AVX512
    __m512i pairs = _mm512_loadu_si512(from);
    *first = _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16));
    *second = _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32((int)0xffff0000)));
#else
    __m256i pairs = _mm256_loadu_si256((const __m256i *)(const void *)from);
    *first = _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16));
    *second = _mm256_castsi256_ps(_mm256_and_si256(pairs, _mm256_set1_epi32((int)0xffff0000)));
#endif
}

/* bf16 weights widened on the way: f32 activations, and bf16 ones without VDPBF16PS. */
BP_INLINE void tile_wide(const parameters *p, const char *a, int64_t stride, const uint16_t *w,
                         int64_t panel_elements, int rows, int panels, int a_is_bf16,
                         const bp_ahead *ahead, sums acc) {
    const char *base[(ROWS + 2) / 3];
    bases(a, stride, base);
    for (int64_t k = 0; k < p->depth; k += 2) {
        bp_fetch(ahead, k, panels);
        bp_vf first[VECTORS], second[VECTORS];
        for (int v = 0; v < panels * BP_PER_PANEL; v++)
            split(w + v / BP_PER_PANEL * panel_elements + k * BP_PANEL +
                      v % BP_PER_PANEL * BP_LANES * 2,
                  &first[v], &second[v]);
        int both = k + 1 < p->depth;
        for (int r = 0; r < rows; r++) {
            const char *row = BP_ROW(base, stride, r);
            const float *whole = (const float *)(const void *)row + k;
            const uint16_t *half = (const uint16_t *)(const void *)row + k;
            bp_vf one = bp_set(a_is_bf16 ? widen((uint32_t)half[0] << 16) : whole[0]);
            for (int v = 0; v < panels * BP_PER_PANEL; v++)
                acc[r][v] = bp_fma(one, first[v], acc[r][v]);
            if (!both)
                continue;
            bp_vf two = bp_set(a_is_bf16 ? widen((uint32_t)half[1] << 16) : whole[1]);
            for (int v = 0; v < panels * BP_PER_PANEL; v++)
                acc[r][v] = bp_fma(two, second[v], acc[r][v]);
        }
    }
}

#if BP_BF16
BP_INLINE void tile_pairs(const parameters *p, const char *a, int64_t stride, const uint16_t *w,
                          int64_t panel_elements, int rows, int panels, const bp_ahead *ahead,
                          sums acc) {
    const char *base[(ROWS + 2) / 3];
    bases(a, stride, base);
    int64_t k = 0;
    for (; k + 2 <= p->depth; k += 2) {
        bp_fetch(ahead, k, panels);
        __m512bh weight[PANELS];
        for (int v = 0; v < panels; v++)
            weight[v] = (__m512bh)_mm512_loadu_si512(w + v * panel_elements + k * BP_PANEL);
        for (int r = 0; r < rows; r++) {
            const bp_word *pair = (const bp_word *)(const void *)(BP_ROW(base, stride, r) + k * 2);
            __m512bh value = (__m512bh)_mm512_set1_epi32(*pair);
            for (int v = 0; v < panels; v++)
                acc[r][v] = _mm512_dpbf16_ps(acc[r][v], value, weight[v]);
        }
    }
    if (k < p->depth)
        for (int r = 0; r < rows; r++) {
            uint16_t last = *(const uint16_t *)(const void *)(BP_ROW(base, stride, r) + k * 2);
            for (int v = 0; v < panels; v++)
                acc[r][v] = _mm512_dpbf16_ps(
                    acc[r][v], (__m512bh)_mm512_set1_epi32(last),
                    (__m512bh)_mm512_loadu_si512(w + v * panel_elements + k * BP_PANEL));
        }
}
#endif

BP_INLINE void tile(const parameters *p, const bp_output *out, int64_t row, int64_t panel,
                    int64_t tiles, int rows, int panels) {
    sums acc;
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < panels * BP_PER_PANEL; v++)
            acc[r][v] = bp_set(0.0f);
    int a_is_bf16 = p->a_type != BP_F32;
    int64_t stride = p->a_stride * (a_is_bf16 ? 2 : 4);
    const char *a = (const char *)p->a + row * stride;
    if (p->weight_type == BP_F32) {
        int64_t elements = p->depth * BP_PANEL;
        const float *w = (const float *)p->weights + panel * elements;
        bp_ahead ahead = bp_look_ahead(w, panels, elements * 4, p->depth, row / ROWS, tiles);
        if (a_is_bf16)
            tile_f32(p, a, stride, w, elements, rows, panels, 1, &ahead, acc);
        else
            tile_f32(p, a, stride, w, elements, rows, panels, 0, &ahead, acc);
    } else {
        int64_t elements = (p->depth + 1) / 2 * 2 * BP_PANEL;
        const uint16_t *w = (const uint16_t *)p->weights + panel * elements;
        bp_ahead ahead = bp_look_ahead(w, panels, elements * 2, p->depth, row / ROWS, tiles);
        if (!a_is_bf16)
            tile_wide(p, a, stride, w, elements, rows, panels, 0, &ahead, acc);
        else
#if BP_BF16
            tile_pairs(p, a, stride, w, elements, rows, panels, &ahead, acc);
#else
            tile_wide(p, a, stride, w, elements, rows, panels, 1, &ahead, acc);
#endif
    }
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < panels * BP_PER_PANEL; v++)
            bp_output_store(out, row + r, panel * BP_PANEL + v * BP_LANES, acc[r][v]);
}

/* Tiles of every height, so that each has its sums in registers. */
#define BP_TILE(rows)                                                                              \
    case rows:                                                                                     \
        tile(p, out, row, panel, tiles, rows, panels);                                             \
        break;

BP_INLINE void column(const parameters *p, const bp_output *out, int64_t rows, int64_t panel,
                      int panels) {
    int64_t row = 0, tiles = (rows + ROWS - 1) / ROWS;
    for (; row + ROWS <= rows; row += ROWS)
        tile(p, out, row, panel, tiles, ROWS, panels);
    switch (rows - row) {
        BP_TILE(1)
        BP_TILE(2)
        BP_TILE(3)
#if BP_AVX512
        BP_TILE(4)
        BP_TILE(5)
        BP_TILE(6)
        BP_TILE(7)
        BP_TILE(8)
        BP_TILE(9)
        BP_TILE(10)
        BP_TILE(11)
#endif
    default:
        break;
    }
}

static void one_panel(const parameters *p, const bp_output *out, int64_t rows, int64_t panel) {
    column(p, out, rows, panel, 1);
}

#if BP_AVX512
static void two_panels(const parameters *p, const bp_output *out, int64_t rows, int64_t panel) {
    column(p, out, rows, panel, 2);
}
#endif

BP_KERNEL(matmul) {
    const parameters *p = BP_PARAMETERS(parameters, launch);
    bp_output out = {p->bias,       p->residual, p->out, p->columns, p->residual_stride,
                     p->out_stride, p->out_type};
    int64_t rows = bp_rows(p->count, p->rows);
    bp_span span = bp_panels(p->columns, first_block, block_count);
    int64_t panel = span.from;
#if BP_AVX512
    for (; panel + 2 <= span.to; panel += 2)
        two_panels(p, &out, rows, panel);
#endif
    for (; panel < span.to; panel++)
        one_panel(p, &out, rows, panel);
    return BP_OK;
}
