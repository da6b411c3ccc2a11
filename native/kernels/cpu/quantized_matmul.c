/*
 * quantized_matmul: a [M,K] times weights in blocks of 32, activations as int8.
 *
 * The packed layout (blocks.h) makes a panel one sequential stream in which one broadcast of four
 * activation codes meets 16 outputs: VPDPBUSD with VNNI, VPMADDUBSW without.
 *
 * Activations are quantised by `quantize_rows` first: the pool hands a worker several pieces of one
 * grid, and each would do it again. One block of the grid is one panel.
 */
#include "activation.h"
#include "blocks.h"
#include "product.h"

typedef struct parameters {
    const int8_t *prepared;
    const uint8_t *weights;
    const float *bias;
    const float *residual;
    const uint32_t *count;
    float *out;
    int64_t rows, columns, depth, residual_stride, out_stride;
    uint32_t format, pad;
} parameters;

typedef struct quantize_parameters {
    const void *a;
    const uint32_t *count;
    int8_t *prepared;
    int64_t rows, depth, a_stride;
    uint32_t a_type, format;
} quantize_parameters;

/* Rows of a tile. */
enum { ROWS = BP_AVX512 ? 8 : 4 };

#if BP_BF16

BP_INLINE bp_vf half_scales(const uint8_t *from) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)from));
}

BP_INLINE void load_codes(const uint8_t *w, uint32_t format, __m512i *codes) {
    if (format == BP_Q8_0) {
        for (int j = 0; j < 8; j++)
            codes[j] = _mm512_loadu_si512(w + 64 * j);
        return;
    }
    __m512i low = _mm512_set1_epi8(15);
    for (int j = 0; j < 4; j++) {
        __m512i both = _mm512_loadu_si512(w + 64 * j);
        codes[j] = _mm512_and_si512(both, low);
        codes[j + 4] = _mm512_and_si512(_mm512_srli_epi16(both, 4), low);
    }
}

BP_INLINE void tile_int8(const int8_t *a, int64_t row_bytes, const uint8_t *w, int64_t depth,
                         uint32_t format, int rows, const bp_output *out, int64_t row,
                         int64_t column) {
    __m512 sums[ROWS];
    for (int r = 0; r < rows; r++)
        sums[r] = _mm512_setzero_ps();
    const int8_t *base[(ROWS + 2) / 3];
    for (int i = 0; i < (ROWS + 2) / 3; i++)
        base[i] = a + row_bytes * 3 * i;
    int64_t scales = depth, corrections = depth + depth / 32 * 4;
    for (int64_t b = 0; b < depth / 32; b++, w += bp_packed_block_bytes(format)) {
        __m512i codes[8];
        load_codes(w, format, codes);
        const uint8_t *tail = w + (format == BP_Q8_0 ? 512 : 256);
        __m512 scale = half_scales(tail);
        __m512 minimum = format == BP_Q4_1 ? half_scales(tail + 32) : _mm512_setzero_ps();
        for (int r = 0; r < rows; r++) {
            const int8_t *x = base[r / 3] + row_bytes * (r % 3);
            const int *four = (const int *)(const void *)(x + b * 32);
            __m512i dot = _mm512_setzero_si512();
            if (format != BP_Q4_1)
                dot = _mm512_set1_epi32(((const int *)(const void *)(x + corrections))[b]);
            for (int j = 0; j < 8; j++)
                dot = _mm512_dpbusd_epi32(dot, codes[j], _mm512_set1_epi32(four[j]));
            __m512 factor = _mm512_set1_ps(((const float *)(const void *)(x + scales))[b]);
            sums[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot), scale * factor, sums[r]);
            if (format == BP_Q4_1)
                sums[r] = _mm512_fmadd_ps(
                    minimum, _mm512_set1_ps(((const float *)(const void *)(x + corrections))[b]),
                    sums[r]);
        }
    }
    for (int r = 0; r < rows; r++)
        bp_output_store(out, row + r, column, sums[r]);
}

#else

BP_INLINE __m256 half_scales(const uint8_t *from) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)from));
}

/* The eight dot products of 32 codes with one row's codes; `w` is this half's first vector. */
BP_INLINE __m256i dot_4bit(const __m256i *codes, const int *four) {
    __m256i sum = _mm256_setzero_si256();
    /* 8 * 2 * 15 * 127 fits 16 bits. */
    for (int j = 0; j < 8; j++)
        sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(codes[j], _mm256_set1_epi32(four[j])));
    return _mm256_madd_epi16(sum, _mm256_set1_epi16(1));
}

BP_INLINE __m256i dot_8bit(const __m256i *codes, const int *four) {
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
BP_INLINE void tile_int8(const int8_t *a, int64_t row_bytes, const uint8_t *weights, int64_t depth,
                         uint32_t format, int rows, const bp_output *out, int64_t row,
                         int64_t column) {
    float flat[ROWS][BP_PANEL];
    for (int half = 0; half < 2; half++) {
        __m256 sums[ROWS];
        for (int r = 0; r < rows; r++)
            sums[r] = _mm256_setzero_ps();
        const uint8_t *w = weights;
        for (int64_t b = 0; b < depth / 32; b++, w += bp_packed_block_bytes(format)) {
            __m256i codes[8];
            load_codes(w + 32 * half, format, codes);
            const uint8_t *tail = w + (format == BP_Q8_0 ? 512 : 256) + 16 * half;
            __m256 scale = half_scales(tail);
            __m256 minimum = format == BP_Q4_1 ? half_scales(tail + 32) : _mm256_setzero_ps();
            for (int r = 0; r < rows; r++) {
                const int8_t *x = a + row_bytes * r;
                const int *four = (const int *)(const void *)(x + b * 32);
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
            bp_output_store(out, row + r, column + v * BP_LANES, bp_load(flat[r] + v * BP_LANES));
}

#endif

#define BP_TILE(height)                                                                            \
    case height:                                                                                   \
        tile_int8(x, row_bytes, w, p->depth, format, height, out, row, column);                    \
        break;

BP_INLINE void panel_int8(const parameters *p, const bp_output *out, int64_t rows, int64_t panel,
                          uint32_t format) {
    int64_t row_bytes = bp_activation_row_bytes(p->depth), column = panel * BP_PANEL, row = 0;
    const uint8_t *w = p->weights + panel * (p->depth / 32) * bp_packed_block_bytes(format);
    for (; row < rows; row += ROWS) {
        const int8_t *x = p->prepared + row * row_bytes;
        switch (rows - row < ROWS ? rows - row : ROWS) {
            BP_TILE(1)
            BP_TILE(2)
            BP_TILE(3)
            BP_TILE(4)
#if BP_AVX512
            BP_TILE(5)
            BP_TILE(6)
            BP_TILE(7)
            BP_TILE(8)
#endif
        default:
            break;
        }
    }
}

static void panel_q8_0(const parameters *p, const bp_output *out, int64_t rows, int64_t panel) {
    panel_int8(p, out, rows, panel, BP_Q8_0);
}

static void panel_q4_0(const parameters *p, const bp_output *out, int64_t rows, int64_t panel) {
    panel_int8(p, out, rows, panel, BP_Q4_0);
}

static void panel_q4_1(const parameters *p, const bp_output *out, int64_t rows, int64_t panel) {
    panel_int8(p, out, rows, panel, BP_Q4_1);
}

BP_KERNEL(quantize_rows) {
    const quantize_parameters *p = BP_PARAMETERS(quantize_parameters, launch);
    bp_span span = bp_share(bp_rows(p->count, p->rows), launch->grid[0], first_block, block_count);
    int64_t row_bytes = bp_activation_row_bytes(p->depth), size = p->a_type == BP_F32 ? 4 : 2;
    for (int64_t row = span.from; row < span.to; row++)
        bp_activation_row((const char *)p->a + row * p->a_stride * size, p->a_type, p->depth,
                          p->format, p->prepared + row * row_bytes);
    return BP_OK;
}

BP_KERNEL(quantized_matmul_int8) {
    const parameters *p = BP_PARAMETERS(parameters, launch);
    bp_output out = {p->bias,       p->residual, p->out, p->columns, p->residual_stride,
                     p->out_stride, BP_F32};
    int64_t rows = bp_rows(p->count, p->rows);
    for (uint64_t i = first_block; i < first_block + block_count; i++) {
        int64_t panel = (int64_t)i;
        if (p->format == BP_Q8_0)
            panel_q8_0(p, &out, rows, panel);
        else if (p->format == BP_Q4_0)
            panel_q4_0(p, &out, rows, panel);
        else
            panel_q4_1(p, &out, rows, panel);
    }
    return BP_OK;
}
