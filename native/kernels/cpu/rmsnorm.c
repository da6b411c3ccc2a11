/*
 * rmsnorm: rows of f32 normalised by their root mean square and multiplied by a weight, to f32 or
 * bf16. Sums run in four vectors of f32 whatever the row count, so a row never depends on others.
 */
#include "launch.h"

#include <math.h>

typedef struct parameters {
    const float *x;
    const float *weight;
    const uint32_t *count;
    void *out;
    int64_t rows, width, x_stride, out_stride;
    float eps;
    uint32_t out_type;
} parameters;

static float sum_of_squares(const float *x, int64_t width) {
    bp_vf sums[4] = {bp_set(0), bp_set(0), bp_set(0), bp_set(0)};
    int64_t i = 0;
    for (; i + 4 * BP_LANES <= width; i += 4 * BP_LANES)
        for (int j = 0; j < 4; j++) {
            bp_vf v = bp_load(x + i + j * BP_LANES);
            sums[j] = bp_fma(v, v, sums[j]);
        }
    for (; i < width; i += BP_LANES) {
        bp_vf v = bp_load_part(x + i, width - i < BP_LANES ? width - i : BP_LANES);
        sums[0] = bp_fma(v, v, sums[0]);
    }
    return bp_sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

BP_KERNEL(rmsnorm) {
    const parameters *p = BP_PARAMETERS(parameters, launch);
    bp_span span = bp_share(bp_rows(p->count, p->rows), launch->grid[0], first_block, block_count);
    for (int64_t row = span.from; row < span.to; row++) {
        const float *x = p->x + row * p->x_stride;
        float *out = (float *)p->out + row * p->out_stride;
        uint16_t *half = (uint16_t *)p->out + row * p->out_stride;
        bp_vf factor = bp_set(1.0f / sqrtf(sum_of_squares(x, p->width) / (float)p->width + p->eps));
        int64_t i = 0;
        for (; i + BP_LANES <= p->width; i += BP_LANES) {
            bp_vf v = bp_load(x + i) * factor * bp_load(p->weight + i);
            if (p->out_type == BP_F32)
                bp_store(out + i, v);
            else
                bp_store_bf16(half + i, v);
        }
        if (i < p->width) {
            int64_t left = p->width - i;
            bp_vf v = bp_load_part(x + i, left) * factor * bp_load_part(p->weight + i, left);
            if (p->out_type == BP_F32)
                bp_store_part(out + i, v, left);
            else
                bp_store_bf16_part(half + i, v, left);
        }
    }
    return BP_OK;
}
