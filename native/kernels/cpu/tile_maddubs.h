/*
 * A tile of the int8 product with VPMADDUBSW, eight outputs at a time: up to ROWS rows by one
 * panel.
 */
#ifndef BEDPLATE_KERNELS_CPU_TILE_MADDUBS_H
#define BEDPLATE_KERNELS_CPU_TILE_MADDUBS_H

#include "product_int8.h"

enum { ROWS = BP_AVX512 ? 8 : 4, PANELS = 1 };

BP_INLINE __m256 half_scales(const uint8_t *from) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)from));
}

/* The eight dot products of 32 codes with one row's codes; `w` is this half's first vector. */
BP_INLINE __m256i dot_4bit(const __m256i *codes, const bp_word *four) {
    __m256i sum = _mm256_setzero_si256();
    /* 8 * 2 * 15 * 127 fits 16 bits. */
    for (int j = 0; j < 8; j++)
        sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(codes[j], _mm256_set1_epi32(four[j])));
    return _mm256_madd_epi16(sum, _mm256_set1_epi16(1));
}

BP_INLINE __m256i dot_8bit(const __m256i *codes, const bp_word *four) {
    __m256i sum = _mm256_setzero_si256();
    for (int j = 0; j < 8; j++) {
        /* |w| * (x with the sign of w): 2 * 128 * 127 fits 16 bits. */
        __m256i x = _mm256_sign_epi8(_mm256_set1_epi32(four[j]), codes[j]);
        __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(codes[j]), x);
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
    }
    return sum;
}

BP_INLINE void load_codes(const uint8_t *w, uint32_t format, __m256i *codes) {
    if (format == BP_Q8_0) {
        for (int j = 0; j < 8; j++)
            codes[j] =
                _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(const void *)(w + 64 * j)),
                                 _mm256_set1_epi8((char)0x80));
        return;
    }
    __m256i low = _mm256_set1_epi8(15);
    for (int j = 0; j < 4; j++) {
        __m256i both = _mm256_loadu_si256((const __m256i *)(const void *)(w + 64 * j));
        codes[j] = _mm256_and_si256(both, low);
        codes[j + 4] = _mm256_and_si256(_mm256_srli_epi16(both, 4), low);
    }
}

/* Two halves of eight outputs each, one after the other, so that the codes fit the registers. */
BP_INLINE void tile(const bp_int8_product *p, const bp_output *out, int64_t row, int64_t panel,
                    int64_t tiles, int rows, int panels, uint32_t format) {
    int64_t depth = p->depth, row_bytes = bp_activation_row_bytes(depth);
    const int8_t *a = p->prepared + row * row_bytes;
    const uint8_t *weights = p->weights + panel * (depth / 32) * bp_packed_block_bytes(format);
    float flat[ROWS][BP_PANEL];
    bp_ahead ahead = bp_look_ahead(weights, panels, depth / 32 * bp_packed_block_bytes(format),
                                   depth / 32, row / ROWS, 2 * tiles);
    for (int half = 0; half < 2; half++) {
        __m256 sums[ROWS];
        for (int r = 0; r < rows; r++)
            sums[r] = _mm256_setzero_ps();
        const uint8_t *w = weights;
        for (int64_t b = 0; b < depth / 32; b++, w += bp_packed_block_bytes(format)) {
            bp_fetch_block(&ahead, b + half * (depth / 32), panels);
            __m256i codes[8];
            load_codes(w + 32 * half, format, codes);
            const uint8_t *tail = w + (format == BP_Q8_0 ? 512 : 256) + 16 * half;
            __m256 scale = half_scales(tail);
            __m256 minimum = format == BP_Q4_1 ? half_scales(tail + 32) : _mm256_setzero_ps();
            for (int r = 0; r < rows; r++) {
                const int8_t *x = a + row_bytes * r;
                const bp_word *four = (const bp_word *)(const void *)(x + b * 32);
                const int32_t *correction = bp_activation_corrections(x, depth) + b;
                __m256i dot = format == BP_Q8_0 ? dot_8bit(codes, four) : dot_4bit(codes, four);
                if (format == BP_Q4_0)
                    dot = _mm256_add_epi32(dot, _mm256_set1_epi32(*correction));
                __m256 factor = _mm256_set1_ps(bp_activation_scales(x, depth)[b]);
                sums[r] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot), scale * factor, sums[r]);
                if (format == BP_Q4_1)
                    sums[r] = _mm256_fmadd_ps(
                        minimum, _mm256_set1_ps(*(const float *)(const void *)correction), sums[r]);
            }
        }
        for (int r = 0; r < rows; r++)
            _mm256_storeu_ps(flat[r] + 8 * half, sums[r]);
    }
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < BP_PER_PANEL; v++)
            bp_output_store(out, row + r, panel * BP_PANEL + v * BP_LANES,
                            bp_load(flat[r] + v * BP_LANES));
}

#endif
