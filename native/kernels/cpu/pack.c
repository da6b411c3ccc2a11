/*
 * pack_floats, pack_blocks: weights from their file's rows into the panels that the products read
 * (see matmul.c and blocks.h), at load time. One block of a grid is one panel of 16 rows of w; rows
 * past N become zero. src/bedplate/kernels/pack.py says the same in numpy and is their oracle.
 */
#include "blocks.h"
#include "gguf.h"
#include "product.h"

#include <string.h>

typedef struct parameters {
    const uint8_t *rows;
    uint8_t *panels;
    int64_t count, depth, row_bytes, panel_bytes;
    uint32_t source_type, panel_type;
} parameters;

enum { CHUNK = 256 }; /* elements widened at a time: a multiple of every block */

static int64_t source_bytes(uint32_t type, int64_t elements) {
    switch (type) {
    case BP_F32:
        return elements * 4;
    case BP_BF16_TYPE:
        return elements * 2;
    default:
        return elements / 32 * (type == BP_Q8_0 ? 34 : type == BP_Q4_0 ? 18 : 20);
    }
}

static void widen(uint32_t type, const uint8_t *from, int64_t elements, float *out) {
    if (type == BP_F32) {
        memcpy(out, from, (size_t)elements * sizeof(float));
    } else if (type == BP_BF16_TYPE) {
        for (int64_t i = 0; i < elements; i++) {
            uint32_t bits = (uint32_t)(from[2 * i] | from[2 * i + 1] << 8) << 16;
            memcpy(&out[i], &bits, sizeof bits);
        }
    } else {
        bp_gguf_row(type, from, elements, out);
    }
}

/* Nearest bfloat16, ties to even; NaN stays a quiet NaN. */
BP_INLINE uint16_t narrow(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static void place(const parameters *p, uint8_t *panel, int row, int64_t at, const float *values,
                  int64_t elements) {
    if (p->panel_type == BP_F32) {
        float *out = (float *)(void *)panel;
        for (int64_t i = 0; i < elements; i++)
            out[(at + i) * BP_PANEL + row] = values[i];
    } else {
        uint16_t *out = (uint16_t *)(void *)panel;
        for (int64_t i = 0; i < elements; i++)
            out[((at + i) / 2 * BP_PANEL + row) * 2 + (at + i) % 2] = narrow(values[i]);
    }
}

BP_KERNEL(pack_floats) {
    const parameters *p = BP_PARAMETERS(parameters, launch);
    float values[CHUNK];
    for (uint64_t block = first_block; block < first_block + block_count; block++) {
        uint8_t *panel = p->panels + (int64_t)block * p->panel_bytes;
        memset(panel, 0, (size_t)p->panel_bytes);
        for (int row = 0; row < BP_PANEL; row++) {
            int64_t n = (int64_t)block * BP_PANEL + row;
            if (n >= p->count)
                break;
            const uint8_t *from = p->rows + n * p->row_bytes;
            for (int64_t at = 0; at < p->depth; at += CHUNK) {
                int64_t elements = p->depth - at < CHUNK ? p->depth - at : CHUNK;
                widen(p->source_type, from + source_bytes(p->source_type, at), elements, values);
                place(p, panel, row, at, values, elements);
            }
        }
    }
    return BP_OK;
}

BP_KERNEL(pack_blocks) {
    const parameters *p = BP_PARAMETERS(parameters, launch);
    uint32_t type = p->source_type;
    int heads = type == BP_Q4_1 ? 2 : 1, groups = type == BP_Q8_0 ? 8 : 4;
    uint8_t flip = type == BP_Q8_0 ? 0x80 : 0;
    int64_t in_bytes = source_bytes(type, 32), out_bytes = bp_packed_block_bytes(type);
    for (uint64_t block = first_block; block < first_block + block_count; block++) {
        uint8_t *panel = p->panels + (int64_t)block * p->panel_bytes;
        memset(panel, 0, (size_t)p->panel_bytes);
        if (flip) /* the code of zero, in rows past N too */
            for (int64_t k = 0; k < p->depth / 32; k++)
                memset(panel + k * out_bytes, flip, (size_t)groups * 64);
        for (int row = 0; row < BP_PANEL; row++) {
            int64_t n = (int64_t)block * BP_PANEL + row;
            if (n >= p->count)
                break;
            for (int64_t k = 0; k < p->depth / 32; k++) {
                const uint8_t *from = p->rows + n * p->row_bytes + k * in_bytes;
                uint8_t *to = panel + k * out_bytes, *scales = to + groups * 64;
                for (int head = 0; head < heads; head++)
                    memcpy(scales + head * 2 * BP_PANEL + row * 2, from + head * 2, 2);
                for (int i = 0; i < groups * 4; i++)
                    to[i / 4 * 64 + row * 4 + i % 4] = from[2 * heads + i] ^ flip;
            }
        }
    }
    return BP_OK;
}
