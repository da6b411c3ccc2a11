/*
 * GGUF blocks of 32 elements: Q8_0 (scale, 32 x i8), Q4_0 (scale, 16 bytes) and Q4_1 (scale,
 * minimum, 16 bytes); scales are binary16. In the 4-bit formats element i < 16 is the low half of
 * byte i and element i + 16 its high half. Source: GGUF specification.
 */
#ifndef BEDPLATE_HAL_CPU_OPS_BLOCKS_H
#define BEDPLATE_HAL_CPU_OPS_BLOCKS_H

#include "bedplate/hal.h"

#include <string.h>

#define BP_CPU_BLOCK_ELEMENTS 32

static inline int bp_cpu_is_blocks(uint32_t dtype) {
    return dtype == BP_DTYPE_Q8_0 || dtype == BP_DTYPE_Q4_0 || dtype == BP_DTYPE_Q4_1;
}

static inline int64_t bp_cpu_block_bytes(uint32_t dtype) {
    return dtype == BP_DTYPE_Q8_0 ? 34 : dtype == BP_DTYPE_Q4_0 ? 18 : 20;
}

/* Exact. Subnormals are scaled up through a normal number and back. */
static inline float bp_cpu_from_f16(const unsigned char *bytes) {
    uint32_t half = (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8;
    uint32_t sign = (half & 0x8000u) << 16, rest = half & 0x7fffu;
    union {
        uint32_t bits;
        float value;
    } both = {(rest << 13) + (112u << 23)};
    if (rest >= 0x7c00u)
        both.bits = (rest << 13) | 0x7f800000u;
    else if (rest < 0x400u) {
        both.bits = (rest << 13) + (113u << 23);
        both.value -= 6.103515625e-05f; /* 2^-14 */
    }
    both.bits |= sign;
    return both.value;
}

/* Codes of one block as small integers (4-bit ones before any offset), and its two factors:
 * value = scale * code + offset. */
static inline void bp_cpu_block_codes(uint32_t dtype, const unsigned char *block, int8_t *codes,
                                      float *scale, float *offset) {
    *scale = bp_cpu_from_f16(block);
    *offset = 0.0f;
    if (dtype == BP_DTYPE_Q8_0) {
        memcpy(codes, block + 2, 32);
        return;
    }
    *offset = dtype == BP_DTYPE_Q4_1 ? bp_cpu_from_f16(block + 2) : -8.0f * *scale;
    const unsigned char *packed = block + bp_cpu_block_bytes(dtype) - 16;
    for (int i = 0; i < 16; i++) {
        codes[i] = (int8_t)(packed[i] & 15);
        codes[i + 16] = (int8_t)(packed[i] >> 4);
    }
}

/* 32 values. Exact for Q8_0 and Q4_0 (the product with the code fits fp32), one rounding in Q4_1.
 */
static inline void bp_cpu_block_values(uint32_t dtype, const unsigned char *block, float *values) {
    int8_t codes[32];
    float scale, offset;
    bp_cpu_block_codes(dtype, block, codes, &scale, &offset);
    if (dtype == BP_DTYPE_Q4_0) {
        for (int i = 0; i < 32; i++)
            values[i] = (float)(codes[i] - 8) * scale;
        return;
    }
    for (int i = 0; i < 32; i++)
        values[i] = (float)codes[i] * scale + offset;
}

#endif
