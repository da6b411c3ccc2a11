/*
 * Rows of GGUF blocks of 32 as f32: Q8_0 (scale, 32 x i8), Q4_0 (scale, 16 bytes), Q4_1 (scale,
 * minimum, 16 bytes); element i < 16 is the low half of byte i, element i + 16 its high half.
 * Source: GGUF specification.
 */
#ifndef BEDPLATE_KERNELS_CPU_GGUF_H
#define BEDPLATE_KERNELS_CPU_GGUF_H

#include "launch.h"

BP_INLINE float bp_from_f16(const uint8_t *from) {
    return _cvtsh_ss((unsigned short)(from[0] | from[1] << 8));
}

static inline void bp_gguf_row(uint32_t type, const uint8_t *block, int64_t width, float *out) {
    for (int64_t at = 0; at < width; at += 32, out += 32) {
        float scale = bp_from_f16(block);
        if (type == BP_Q8_0) {
            for (int i = 0; i < 32; i++)
                out[i] = (float)(int8_t)block[2 + i] * scale;
            block += 34;
            continue;
        }
        /* 8 * scale is exact, so Q4_0 keeps its single exact product. */
        float offset = type == BP_Q4_1 ? bp_from_f16(block + 2) : -8.0f * scale;
        const uint8_t *packed = block + (type == BP_Q4_1 ? 4 : 2);
        for (int i = 0; i < 16; i++) {
            out[i] = (float)(packed[i] & 15) * scale + offset;
            out[i + 16] = (float)(packed[i] >> 4) * scale + offset;
        }
        block += type == BP_Q4_1 ? 20 : 18;
    }
}

#endif
