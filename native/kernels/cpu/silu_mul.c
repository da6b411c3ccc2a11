/* silu_mul: gate / (1 + exp(-gate)) * up over rows [gate | up] of f32, to f32 or bf16. */
#include "launch.h"

typedef struct parameters {
    const float *gate_up;
    const uint32_t *count;
    void *out;
    int64_t rows, width, in_stride, out_stride;
    uint32_t out_type, pad;
} parameters;

BP_INLINE bp_vf silu_times(bp_vf gate, bp_vf up) {
    bp_vf one = bp_set(1.0f);
    return gate / (one + bp_exp(bp_set(0.0f) - gate)) * up;
}

static void part(const parameters *p, const float *gate, void *row, int64_t from, int64_t to) {
    float *out = (float *)row;
    uint16_t *half = (uint16_t *)row;
    int64_t i = from;
    for (; i + BP_LANES <= to; i += BP_LANES) {
        bp_vf v = silu_times(bp_load(gate + i), bp_load(gate + p->width + i));
        if (p->out_type == BP_F32)
            bp_store(out + i, v);
        else
            bp_store_bf16(half + i, v);
    }
    if (i < to) {
        bp_vf v =
            silu_times(bp_load_part(gate + i, to - i), bp_load_part(gate + p->width + i, to - i));
        if (p->out_type == BP_F32)
            bp_store_part(out + i, v, to - i);
        else
            bp_store_bf16_part(half + i, v, to - i);
    }
}

BP_KERNEL(silu_mul) {
    const parameters *p = BP_PARAMETERS(parameters, launch);
    bp_span span = bp_share(bp_rows(p->count, p->rows), launch->grid[0], first_block, block_count);
    int64_t size = p->out_type == BP_F32 ? 4 : 2;
    for (int64_t row = span.from; row < span.to; row++)
        part(p, p->gate_up + row * p->in_stride, (char *)p->out + row * p->out_stride * size, 0,
             p->width);
    return BP_OK;
}
