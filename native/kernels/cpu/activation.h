/*
 * Rows of activations as int8 blocks of 32: code = round(x / scale), scale = largest magnitude /
 * 127 in f32. One row is [K codes][K/32 scales f32][K/32 corrections], 64-byte aligned; the
 * correction is what the unsigned weight codes of one format make of a row's sum:
 *   Q8_0, Q4_0: i32, -zero * sum of codes, where the integer sum starts
 *   Q4_1:       f32, scale * sum of codes, which multiplies the minimum
 * A block with a NaN or infinity gets a NaN scale, so that it reaches every result.
 */
#ifndef BEDPLATE_KERNELS_CPU_ACTIVATION_H
#define BEDPLATE_KERNELS_CPU_ACTIVATION_H

#include "launch.h"

/* Zero points of packed codes: Q8_0 is stored plus 128 where VPDPBUSD reads it, and read back as
 * signed elsewhere. */
#define BP_ZERO_Q8_0 (BP_BF16 ? 128 : 0)
#define BP_ZERO_Q4_0 8

BP_INLINE int64_t bp_activation_row_bytes(int64_t depth) {
    return (depth + depth / 32 * 8 + 63) & ~(int64_t)63;
}

BP_INLINE const float *bp_activation_scales(const int8_t *row, int64_t depth) {
    return (const float *)(const void *)(row + depth);
}

BP_INLINE const int32_t *bp_activation_corrections(const int8_t *row, int64_t depth) {
    return (const int32_t *)(const void *)(row + depth + depth / 32 * 4);
}

BP_INLINE void bp_activation_block(const bp_vf *x, int8_t *codes, float *scale, int32_t *correction,
                                   uint32_t format) {
    enum { PARTS = 32 / BP_LANES };
    bp_vf largest = bp_set(0.0f);
    bp_vf poison = bp_set(0.0f);
    for (int i = 0; i < PARTS; i++) {
        bp_vf magnitude = bp_max(x[i], bp_set(0.0f) - x[i]);
        largest = bp_max(largest, magnitude);
        poison = bp_fma(x[i], bp_set(0.0f), poison); /* NaN from a NaN or infinity */
    }
    float most = bp_highest(largest), bad = bp_sum(poison);
    float inverse = most > 0.0f && bad == 0.0f ? 127.0f / most : 0.0f;
    if (inverse > 3.4e38f)
        inverse = 0.0f; /* a block of subnormals */
    int32_t sum = 0;
    for (int i = 0; i < PARTS; i++) {
        bp_vf scaled = bp_set(0.0f);
        if (bad == 0.0f)
            scaled = x[i] * bp_set(inverse);
#if BP_AVX512
        __m512i whole = _mm512_cvtps_epi32(scaled);
        sum += _mm512_reduce_add_epi32(whole);
        _mm_storeu_si128((__m128i *)(void *)(codes + i * 16), _mm512_cvtepi32_epi8(whole));
#else
        int32_t whole[8] __attribute__((aligned(32)));
        _mm256_store_si256((__m256i *)(void *)whole, _mm256_cvtps_epi32(scaled));
        for (int j = 0; j < 8; j++) {
            codes[i * 8 + j] = (int8_t)whole[j];
            sum += whole[j];
        }
#endif
    }
    *scale = most / 127.0f + bad;
    if (format == BP_Q4_1) {
        float product = *scale * (float)sum;
        __builtin_memcpy(correction, &product, sizeof(product));
    } else {
        *correction = -sum * (format == BP_Q4_0 ? BP_ZERO_Q4_0 : BP_ZERO_Q8_0);
    }
}

static inline void bp_activation_row(const void *x, uint32_t type, int64_t depth, uint32_t format,
                                     int8_t *row) {
    float *scales = (float *)(void *)(row + depth);
    int32_t *corrections = (int32_t *)(void *)(row + depth + depth / 32 * 4);
    for (int64_t at = 0; at < depth; at += 32) {
        bp_vf values[32 / BP_LANES];
        for (int i = 0; i < 32 / BP_LANES; i++) {
            if (type == BP_F32)
                values[i] = bp_load((const float *)x + at + i * BP_LANES);
            else
                values[i] = bp_load_bf16((const uint16_t *)x + at + i * BP_LANES);
        }
        bp_activation_block(values, row + at, scales + at / 32, corrections + at / 32, format);
    }
}

#endif
