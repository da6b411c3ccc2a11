/*
 * quantized_matmul: a [M,K] times weights in blocks of 32, activations as int8.
 *
 * The packed layout (blocks.h) makes a panel one sequential stream in which one broadcast of four
 * activation codes meets 16 outputs. Activations are quantised by `quantize_rows` first: the pool
 * hands a worker several pieces of one grid, and each would do it again. One block of the grid is
 * BP_PANELS_PER_BLOCK panels.
 */
#if defined(__AVX512VNNI__)
#include "tile_vnni.h"
#else
#include "tile_maddubs.h"
#endif

typedef struct quantize_parameters {
    const void *a;
    const uint32_t *count;
    int8_t *prepared;
    int64_t rows, depth, a_stride;
    uint32_t a_type, format;
} quantize_parameters;

BP_KERNEL(quantize_rows) {
    const quantize_parameters *p = BP_PARAMETERS(quantize_parameters, launch);
    bp_span span = bp_share(bp_rows(p->count, p->rows), launch->grid[0], first_block, block_count);
    int64_t row_bytes = bp_activation_row_bytes(p->depth), size = p->a_type == BP_F32 ? 4 : 2;
    for (int64_t row = span.from; row < span.to; row++)
        bp_activation_row((const char *)p->a + row * p->a_stride * size, p->a_type, p->depth,
                          p->format, p->prepared + row * row_bytes);
    return BP_OK;
}

/* Tiles of every height, so that each has its sums in registers. */
#define BP_TILE(height)                                                                            \
    case height:                                                                                   \
        tile(p, out, row, panel, tiles, height, panels, format);                                   \
        break;

BP_INLINE void column(const bp_int8_product *p, const bp_output *out, int64_t rows, int64_t panel,
                      int panels, uint32_t format) {
    int64_t tiles = (rows + ROWS - 1) / ROWS;
    for (int64_t row = 0; row < rows; row += ROWS)
        switch (rows - row < ROWS ? rows - row : ROWS) {
            BP_TILE(1)
            BP_TILE(2)
            BP_TILE(3)
            BP_TILE(4)
#if BP_AVX512 && !BP_BF16
            BP_TILE(5)
            BP_TILE(6)
            BP_TILE(7)
            BP_TILE(8)
#endif
        default:
            break;
        }
}

BP_INLINE void panels_of(const bp_int8_product *p, const bp_output *out, int64_t rows,
                         int64_t panel, int64_t end, uint32_t format) {
    for (; panel + PANELS <= end; panel += PANELS)
        column(p, out, rows, panel, PANELS, format);
    for (; panel < end; panel++)
        column(p, out, rows, panel, 1, format);
}

static void panels_q8_0(const bp_int8_product *p, const bp_output *out, int64_t rows, int64_t panel,
                        int64_t end) {
    panels_of(p, out, rows, panel, end, BP_Q8_0);
}

static void panels_q4_0(const bp_int8_product *p, const bp_output *out, int64_t rows, int64_t panel,
                        int64_t end) {
    panels_of(p, out, rows, panel, end, BP_Q4_0);
}

static void panels_q4_1(const bp_int8_product *p, const bp_output *out, int64_t rows, int64_t panel,
                        int64_t end) {
    panels_of(p, out, rows, panel, end, BP_Q4_1);
}

BP_KERNEL(quantized_matmul_int8) {
    const bp_int8_product *p = BP_PARAMETERS(bp_int8_product, launch);
    bp_output out = {p->bias,       p->residual, p->out, p->columns, p->residual_stride,
                     p->out_stride, BP_F32};
    int64_t rows = bp_rows(p->count, p->rows);
    bp_span span = bp_panels(p->columns, first_block, block_count);
    (p->format == BP_Q8_0   ? panels_q8_0
     : p->format == BP_Q4_0 ? panels_q4_0
                            : panels_q4_1)(p, &out, rows, span.from, span.to);
    return BP_OK;
}
