/*
 * One vector width per build: 16 floats with AVX-512, 8 with AVX2 and FMA.
 *
 * Kernels are written once over these names and compiled per level; a kernel reaches for an
 * instruction of one level only behind BP_AVX512 or BP_BF16. A partial load gives zeros past
 * its end and touches no byte there.
 */
#ifndef BEDPLATE_KERNELS_CPU_VECTOR_H
#define BEDPLATE_KERNELS_CPU_VECTOR_H

#include <immintrin.h>
#include <stdint.h>

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define BP_AVX512 1
#else
#define BP_AVX512 0
#endif
#if BP_AVX512 && defined(__AVX512BF16__) && defined(__AVX512VNNI__)
#define BP_BF16 1
#else
#define BP_BF16 0
#endif

#if BP_BF16
#define BP_ISA "avx512_bf16"
#elif BP_AVX512
#define BP_ISA "avx512"
#else
#define BP_ISA "avx2"
#endif

/* Four bytes of anything, at any address. */
typedef int32_t bp_word __attribute__((may_alias, aligned(1)));

#define BP_INLINE static inline __attribute__((always_inline))

#if BP_AVX512

#define BP_LANES 16
typedef __m512 bp_vf;
typedef __m512i bp_vi;

BP_INLINE __mmask16 bp_mask(int64_t count) {
    return (__mmask16)((1u << count) - 1u);
}
BP_INLINE bp_vf bp_load(const float *from) {
    return _mm512_loadu_ps(from);
}
BP_INLINE bp_vf bp_load_part(const float *from, int64_t count) {
    return _mm512_maskz_loadu_ps(bp_mask(count), from);
}
BP_INLINE void bp_store(float *to, bp_vf value) {
    _mm512_storeu_ps(to, value);
}
BP_INLINE void bp_store_part(float *to, bp_vf value, int64_t count) {
    _mm512_mask_storeu_ps(to, bp_mask(count), value);
}
BP_INLINE bp_vf bp_set(float value) {
    return _mm512_set1_ps(value);
}
BP_INLINE bp_vf bp_fma(bp_vf a, bp_vf b, bp_vf c) {
    return _mm512_fmadd_ps(a, b, c);
}
BP_INLINE bp_vf bp_fnma(bp_vf a, bp_vf b, bp_vf c) {
    return _mm512_fnmadd_ps(a, b, c);
}
BP_INLINE bp_vf bp_max(bp_vf a, bp_vf b) {
    return _mm512_max_ps(a, b);
}
BP_INLINE bp_vf bp_min(bp_vf a, bp_vf b) {
    return _mm512_min_ps(a, b);
}
BP_INLINE bp_vf bp_round(bp_vf a) {
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
/* a * 2^n, exact down into the subnormals. */
BP_INLINE bp_vf bp_scale(bp_vf a, bp_vf n) {
    return _mm512_scalef_ps(a, n);
}
BP_INLINE float bp_sum(bp_vf a) {
    return _mm512_reduce_add_ps(a);
}
BP_INLINE float bp_highest(bp_vf a) {
    return _mm512_reduce_max_ps(a);
}
/* Bit i: a[i] >= b[i]. */
BP_INLINE uint32_t bp_at_least(bp_vf a, bp_vf b) {
    return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ);
}
/* 16 bf16 to f32, exact. */
BP_INLINE bp_vf bp_load_bf16(const uint16_t *from) {
    __m256i half = _mm256_loadu_si256((const __m256i *)(const void *)from);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}
BP_INLINE bp_vf bp_load_bf16_part(const uint16_t *from, int64_t count) {
    __m256i half = _mm256_maskz_loadu_epi16(bp_mask(count), from);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}
/* Round to nearest even; NaN stays NaN. Not VCVTNEPS2BF16, which flushes subnormals. */
BP_INLINE __m256i bp_round_bf16(bp_vf value) {
    __m512i bits = _mm512_castps_si512(value);
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    __mmask16 nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
    rounded = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16));
}
BP_INLINE void bp_store_bf16(uint16_t *to, bp_vf value) {
    _mm256_storeu_si256((__m256i *)(void *)to, bp_round_bf16(value));
}
BP_INLINE void bp_store_bf16_part(uint16_t *to, bp_vf value, int64_t count) {
    _mm256_mask_storeu_epi16(to, bp_mask(count), bp_round_bf16(value));
}

#else /* AVX2 */

#define BP_LANES 8
typedef __m256 bp_vf;
typedef __m256i bp_vi;

BP_INLINE __m256i bp_mask(int64_t count) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
BP_INLINE bp_vf bp_load(const float *from) {
    return _mm256_loadu_ps(from);
}
BP_INLINE bp_vf bp_load_part(const float *from, int64_t count) {
    return _mm256_maskload_ps(from, bp_mask(count));
}
BP_INLINE void bp_store(float *to, bp_vf value) {
    _mm256_storeu_ps(to, value);
}
BP_INLINE void bp_store_part(float *to, bp_vf value, int64_t count) {
    _mm256_maskstore_ps(to, bp_mask(count), value);
}
BP_INLINE bp_vf bp_set(float value) {
    return _mm256_set1_ps(value);
}
BP_INLINE bp_vf bp_fma(bp_vf a, bp_vf b, bp_vf c) {
    return _mm256_fmadd_ps(a, b, c);
}
BP_INLINE bp_vf bp_fnma(bp_vf a, bp_vf b, bp_vf c) {
    return _mm256_fnmadd_ps(a, b, c);
}
BP_INLINE bp_vf bp_max(bp_vf a, bp_vf b) {
    return _mm256_max_ps(a, b);
}
BP_INLINE bp_vf bp_min(bp_vf a, bp_vf b) {
    return _mm256_min_ps(a, b);
}
BP_INLINE bp_vf bp_round(bp_vf a) {
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
/* a * 2^n in two steps, so that n from -150 to 128 needs no subnormal factor. */
BP_INLINE bp_vf bp_scale(bp_vf a, bp_vf n) {
    __m256i whole = _mm256_cvtps_epi32(n);
    __m256i half = _mm256_srai_epi32(whole, 1), rest = _mm256_sub_epi32(whole, half);
    __m256i bias = _mm256_set1_epi32(127);
    __m256 one = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23));
    __m256 two = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23));
    return _mm256_mul_ps(_mm256_mul_ps(a, one), two);
}
BP_INLINE float bp_sum(bp_vf a) {
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
BP_INLINE float bp_highest(bp_vf a) {
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}
BP_INLINE uint32_t bp_at_least(bp_vf a, bp_vf b) {
    return (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GE_OQ));
}
BP_INLINE bp_vf bp_widen_bf16(__m128i half) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}
BP_INLINE bp_vf bp_load_bf16(const uint16_t *from) {
    return bp_widen_bf16(_mm_loadu_si128((const __m128i *)(const void *)from));
}
BP_INLINE bp_vf bp_load_bf16_part(const uint16_t *from, int64_t count) {
    uint16_t whole[8] __attribute__((aligned(16))) = {0};
    for (int64_t i = 0; i < count; i++)
        whole[i] = from[i];
    return bp_load_bf16(whole);
}
BP_INLINE __m128i bp_round_bf16(bp_vf value) {
    __m256i bits = _mm256_castps_si256(value);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    rounded = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256(rounded, 1));
}
BP_INLINE void bp_store_bf16(uint16_t *to, bp_vf value) {
    _mm_storeu_si128((__m128i *)(void *)to, bp_round_bf16(value));
}
BP_INLINE void bp_store_bf16_part(uint16_t *to, bp_vf value, int64_t count) {
    uint16_t whole[8] __attribute__((aligned(16)));
    bp_store_bf16(whole, value);
    for (int64_t i = 0; i < count; i++)
        to[i] = whole[i];
}

#endif

/* exp to 2 units in the last place from -103 to 88.7; 0 below, infinity above, NaN stays.
 * 2^n times a polynomial on |x| <= ln(2)/2 that is off by 2^-28 at most (coefficients fitted for
 * the smallest largest error); ln(2) is split so that n times its high part is exact. */
BP_INLINE bp_vf bp_exp(bp_vf x) {
    /* The order of the operands keeps a NaN of x. */
    x = bp_max(bp_set(-104.0f), bp_min(bp_set(89.0f), x));
    bp_vf n = bp_round(x * bp_set(1.44269504f));
    bp_vf r = bp_fnma(n, bp_set(0.693359375f), x);
    r = bp_fnma(n, bp_set(-2.12194440e-4f), r);
    bp_vf p = bp_set(1.38145965e-3f);
    p = bp_fma(p, r, bp_set(8.36871751e-3f));
    p = bp_fma(p, r, bp_set(4.16683890e-2f));
    p = bp_fma(p, r, bp_set(1.66665211e-1f));
    p = bp_fma(p, r, bp_set(4.99999940e-1f));
    p = bp_fma(p, r, bp_set(1.0f));
    p = bp_fma(p, r, bp_set(1.0f));
    return bp_scale(p, n);
}

#endif
