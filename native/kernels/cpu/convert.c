/* convert: rows of f32 to bf16 or back. */
#include "launch.h"

typedef struct parameters {
    const void *x;
    const uint32_t *count;
    void *out;
    int64_t rows, width, x_stride, out_stride;
    uint32_t out_type, pad;
} parameters;

static void narrow(const float *x, uint16_t *out, int64_t width) {
    int64_t i = 0;
    for (; i + BP_LANES <= width; i += BP_LANES)
        bp_store_bf16(out + i, bp_load(x + i));
    if (i < width)
        bp_store_bf16_part(out + i, bp_load_part(x + i, width - i), width - i);
}

static void widen(const uint16_t *x, float *out, int64_t width) {
    int64_t i = 0;
    for (; i + BP_LANES <= width; i += BP_LANES)
        bp_store(out + i, bp_load_bf16(x + i));
    if (i < width)
        bp_store_part(out + i, bp_load_bf16_part(x + i, width - i), width - i);
}

BP_KERNEL(convert) {
    const parameters *p = BP_PARAMETERS(parameters, launch);
    bp_span span = bp_share(bp_rows(p->count, p->rows), launch->grid[0], first_block, block_count);
    for (int64_t row = span.from; row < span.to; row++) {
        if (p->out_type == BP_F32)
            widen((const uint16_t *)p->x + row * p->x_stride, (float *)p->out + row * p->out_stride,
                  p->width);
        else
            narrow((const float *)p->x + row * p->x_stride,
                   (uint16_t *)p->out + row * p->out_stride, p->width);
    }
    return BP_OK;
}
