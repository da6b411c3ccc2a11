/* Square transposes of 32-bit elements held in vectors: 16 x 16 or 8 x 8. */
#ifndef BEDPLATE_KERNELS_CPU_TRANSPOSE_H
#define BEDPLATE_KERNELS_CPU_TRANSPOSE_H

#include "vector.h"

#if BP_AVX512

BP_INLINE void bp_transpose(bp_vi m[16]) {
    bp_vi t[16];
    /* Pairs of rows, then of pairs: each 128-bit lane holds a 4 x 4 transpose. */
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(m[i], m[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(m[i], m[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) {
        m[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        m[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        m[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        m[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    /* m[4g + c], lane l: column 4l + c of rows 4g..4g+3. Now transpose the lanes. */
    for (int c = 0; c < 4; c++) {
        bp_vi low = _mm512_shuffle_i32x4(m[c], m[4 + c], 0x44);
        bp_vi high = _mm512_shuffle_i32x4(m[c], m[4 + c], 0xee);
        bp_vi low2 = _mm512_shuffle_i32x4(m[8 + c], m[12 + c], 0x44);
        bp_vi high2 = _mm512_shuffle_i32x4(m[8 + c], m[12 + c], 0xee);
        t[c] = _mm512_shuffle_i32x4(low, low2, 0x88);
        t[4 + c] = _mm512_shuffle_i32x4(low, low2, 0xdd);
        t[8 + c] = _mm512_shuffle_i32x4(high, high2, 0x88);
        t[12 + c] = _mm512_shuffle_i32x4(high, high2, 0xdd);
    }
    for (int i = 0; i < 16; i++)
        m[i] = t[i];
}

BP_INLINE bp_vi bp_load_words(const void *from) {
    return _mm512_loadu_si512(from);
}
BP_INLINE bp_vf bp_first_bf16(bp_vi pairs) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16));
}
BP_INLINE bp_vf bp_second_bf16(bp_vi pairs) {
    return _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32((int)0xffff0000)));
}
BP_INLINE bp_vf bp_as_floats(bp_vi words) {
    return _mm512_castsi512_ps(words);
}
BP_INLINE bp_vi bp_no_words(void) {
    return _mm512_setzero_si512();
}

#else

BP_INLINE void bp_transpose(bp_vi m[8]) {
    bp_vi t[8];
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_epi32(m[i], m[i + 1]);
        t[i + 1] = _mm256_unpackhi_epi32(m[i], m[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        m[i] = _mm256_unpacklo_epi64(t[i], t[i + 2]);
        m[i + 1] = _mm256_unpackhi_epi64(t[i], t[i + 2]);
        m[i + 2] = _mm256_unpacklo_epi64(t[i + 1], t[i + 3]);
        m[i + 3] = _mm256_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    for (int c = 0; c < 4; c++) {
        t[c] = _mm256_permute2x128_si256(m[c], m[4 + c], 0x20);
        t[4 + c] = _mm256_permute2x128_si256(m[c], m[4 + c], 0x31);
    }
    for (int i = 0; i < 8; i++)
        m[i] = t[i];
}

BP_INLINE bp_vi bp_load_words(const void *from) {
    return _mm256_loadu_si256((const __m256i *)from);
}
BP_INLINE bp_vf bp_first_bf16(bp_vi pairs) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16));
}
BP_INLINE bp_vf bp_second_bf16(bp_vi pairs) {
    return _mm256_castsi256_ps(_mm256_and_si256(pairs, _mm256_set1_epi32((int)0xffff0000)));
}
BP_INLINE bp_vf bp_as_floats(bp_vi words) {
    return _mm256_castsi256_ps(words);
}
BP_INLINE bp_vi bp_no_words(void) {
    return _mm256_setzero_si256();
}

#endif

#endif
