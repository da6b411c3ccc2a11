/*
 * What the matrix products share: where an output tile goes. Output columns come in panels of 16
 * packed at load; a tile is some rows by one or two panels of f32 sums.
 *
 * The sum of one output runs along K in one fixed order, whatever the number of rows, so a row's
 * result does not depend on its neighbours.
 */
#ifndef BEDPLATE_KERNELS_CPU_PRODUCT_H
#define BEDPLATE_KERNELS_CPU_PRODUCT_H

#include "launch.h"

#define BP_PANEL 16
/* Panels of one block of a grid: two, so that every piece of a grid may use tiles of two. */
#define BP_PANELS_PER_BLOCK 2
/* Vectors of one panel. */
#define BP_PER_PANEL (BP_PANEL / BP_LANES)

/* Panels of blocks [first, first + blocks). */
BP_INLINE bp_span bp_panels(int64_t columns, uint64_t first, uint64_t blocks) {
    int64_t panels = (columns + BP_PANEL - 1) / BP_PANEL;
    int64_t end = (int64_t)(first + blocks) * BP_PANELS_PER_BLOCK;
    bp_span span = {(int64_t)first * BP_PANELS_PER_BLOCK, end < panels ? end : panels};
    return span;
}

/*
 * The next panels, asked for while these are worked on. The processor's own prefetch follows a
 * plain stream, but gives up when arithmetic spaces the loads out: without this a product of 32
 * rows waits for memory a third of its time. Requests are spread over all tiles of a panel, because
 * a burst of them stalls.
 */
typedef struct bp_ahead {
    const char *at;     /* where this tile starts asking */
    int64_t per_step;   /* bytes further per step of the tile's loop; 0 for nothing */
    int64_t next_panel; /* bytes from one panel to the next */
} bp_ahead;

/* For tile `index` of `tiles` over `panels` panels of `panel_bytes` at w, each read in `steps`. */
BP_INLINE bp_ahead bp_look_ahead(const void *w, int panels, int64_t panel_bytes, int64_t steps,
                                 int64_t index, int64_t tiles) {
    int64_t per_step = steps ? panel_bytes / steps / tiles : 0;
    bp_ahead ahead = {(const char *)w + panels * panel_bytes + index * per_step * steps, per_step,
                      panel_bytes};
    return ahead;
}

BP_INLINE void bp_fetch(const bp_ahead *ahead, int64_t step, int panels) {
    for (int v = 0; v < panels; v++)
        _mm_prefetch(ahead->at + v * ahead->next_panel + step * ahead->per_step, _MM_HINT_T0);
}

/* As bp_fetch, for steps of several lines. */
BP_INLINE void bp_fetch_block(const bp_ahead *ahead, int64_t step, int panels) {
    for (int v = 0; v < panels; v++) {
        const char *at = ahead->at + v * ahead->next_panel + step * ahead->per_step;
        for (int64_t byte = 0; byte < ahead->per_step; byte += 64)
            _mm_prefetch(at + byte, _MM_HINT_T0);
    }
}

typedef struct bp_output {
    const float *bias;     /* null for none */
    const float *residual; /* null for none; may be `out` itself */
    void *out;
    int64_t columns, residual_stride, out_stride;
    uint32_t out_type;
} bp_output;

/* Store one vector of sums at (row, column), with what is to be added. */
BP_INLINE void bp_output_store(const bp_output *o, int64_t row, int64_t column, bp_vf sum) {
    int64_t left = o->columns - column;
    if (left >= BP_LANES) {
        if (o->bias)
            sum += bp_load(o->bias + column);
        if (o->residual)
            sum += bp_load(o->residual + row * o->residual_stride + column);
        if (o->out_type == BP_F32)
            bp_store((float *)o->out + row * o->out_stride + column, sum);
        else
            bp_store_bf16((uint16_t *)o->out + row * o->out_stride + column, sum);
        return;
    }
    if (left <= 0)
        return;
    if (o->bias)
        sum += bp_load_part(o->bias + column, left);
    if (o->residual)
        sum += bp_load_part(o->residual + row * o->residual_stride + column, left);
    if (o->out_type == BP_F32)
        bp_store_part((float *)o->out + row * o->out_stride + column, sum, left);
    else
        bp_store_bf16_part((uint16_t *)o->out + row * o->out_stride + column, sum, left);
}

#endif
