/*
 * A tile of the int8 product with VPDPBUSD: up to ROWS rows by one or two panels. Two panels share
 * each broadcast of activations, which else would bind the loads before the arithmetic.
 */
#ifndef BEDPLATE_KERNELS_CPU_TILE_VNNI_H
#define BEDPLATE_KERNELS_CPU_TILE_VNNI_H

#include "product_int8.h"

enum { ROWS = 4, PANELS = 2 };

BP_INLINE __m512 half_scales(const uint8_t *from) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)from));
}

BP_INLINE void load_codes(const uint8_t *w, uint32_t format, __m512i *codes) {
    if (format == BP_Q8_0) {
#pragma GCC unroll 8
        for (int j = 0; j < 8; j++)
            codes[j] = _mm512_loadu_si512(w + 64 * j);
        return;
    }
    __m512i low = _mm512_set1_epi8(15);
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        __m512i both = _mm512_loadu_si512(w + 64 * j);
        codes[j] = _mm512_and_si512(both, low);
        codes[j + 4] = _mm512_and_si512(_mm512_srli_epi16(both, 4), low);
    }
}

/* One block of 32 along K: codes by codes, times both scales. */
BP_INLINE void add_block(const uint8_t *w, int64_t panel_bytes, uint32_t format, int rows,
                         int panels, const int8_t *const *x, int64_t b, int64_t depth,
                         __m512 sums[ROWS][PANELS]) {
    __m512i codes[PANELS][8];
    __m512 scale[PANELS];
    for (int v = 0; v < panels; v++) {
        load_codes(w + v * panel_bytes, format, codes[v]);
        scale[v] = half_scales(w + v * panel_bytes + (format == BP_Q8_0 ? 512 : 256));
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) {
        const bp_word *four = (const bp_word *)(const void *)(x[r] + b * 32);
        __m512i dot[PANELS];
        dot[0] = _mm512_setzero_si512();
        if (format != BP_Q4_1)
            dot[0] = _mm512_set1_epi32(bp_activation_corrections(x[r], depth)[b]);
        dot[PANELS - 1] = dot[0];
#pragma GCC unroll 8
        for (int j = 0; j < 8; j++) {
            __m512i value = _mm512_set1_epi32(four[j]);
            /* Kept in a register: as a memory operand of both products it would be loaded twice. */
            __asm__("" : "+v"(value));
            for (int v = 0; v < panels; v++)
                dot[v] = _mm512_dpbusd_epi32(dot[v], codes[v][j], value);
        }
        __m512 factor = _mm512_set1_ps(bp_activation_scales(x[r], depth)[b]);
        for (int v = 0; v < panels; v++)
            sums[r][v] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot[v]), scale[v] * factor, sums[r][v]);
    }
}

/* The minima of Q4_1 times the scaled sums of the activations' codes. */
BP_INLINE void add_minima(const uint8_t *w, int64_t panel_bytes, int rows, int panels,
                          const int8_t *const *x, int64_t depth, __m512 sums[ROWS][PANELS]) {
    for (int64_t b = 0; b < depth / 32; b++, w += bp_packed_block_bytes(BP_Q4_1))
        for (int v = 0; v < panels; v++) {
            __m512 minimum = half_scales(w + v * panel_bytes + 256 + 32);
#pragma GCC unroll 4
            for (int r = 0; r < rows; r++) {
                const float *shift =
                    (const float *)(const void *)bp_activation_corrections(x[r], depth);
                sums[r][v] = _mm512_fmadd_ps(minimum, _mm512_set1_ps(shift[b]), sums[r][v]);
            }
        }
}

BP_INLINE void tile(const bp_int8_product *p, const bp_output *out, int64_t row, int64_t panel,
                    int64_t tiles, int rows, int panels, uint32_t format) {
    int64_t block_bytes = bp_packed_block_bytes(format), blocks = p->depth / 32;
    int64_t panel_bytes = blocks * block_bytes, row_bytes = bp_activation_row_bytes(p->depth);
    const uint8_t *w = p->weights + panel * panel_bytes;
    const int8_t *x[ROWS];
    __m512 sums[ROWS][PANELS];
    for (int r = 0; r < rows; r++) {
        x[r] = p->prepared + (row + r) * row_bytes;
        for (int v = 0; v < panels; v++)
            sums[r][v] = _mm512_setzero_ps();
    }
    bp_ahead ahead = bp_look_ahead(w, panels, panel_bytes, blocks, row / ROWS, tiles);
    for (int64_t b = 0; b < blocks; b++) {
        bp_fetch_block(&ahead, b, panels);
        add_block(w + b * block_bytes, panel_bytes, format, rows, panels, x, b, p->depth, sums);
    }
    if (format == BP_Q4_1)
        add_minima(w, panel_bytes, rows, panels, x, p->depth, sums);
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < panels; v++)
            bp_output_store(out, row + r, (panel + v) * BP_PANEL, sums[r][v]);
}

#endif
