/*
 * Philox4x32-10: the draw of one generated token. Random access by (seed, token index) makes it
 * the same alone, in a batch and after preemption.
 * Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011, section 3.3.
 */
#ifndef BEDPLATE_HAL_CPU_OPS_PHILOX_H
#define BEDPLATE_HAL_CPU_OPS_PHILOX_H

#include <stdint.h>

/* A multiple of 2^-53 in [0, 1) from the first two words: 26 bits of one, 27 of the other. */
static inline double bp_cpu_uniform(uint64_t seed, uint64_t token_index) {
    uint32_t c[4] = {(uint32_t)token_index, (uint32_t)(token_index >> 32), 0, 0};
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t one = 0xd2511f53ull * c[0], two = 0xcd9e8d57ull * c[2];
        c[0] = (uint32_t)(two >> 32) ^ c[1] ^ k0;
        c[2] = (uint32_t)(one >> 32) ^ c[3] ^ k1;
        c[1] = (uint32_t)two;
        c[3] = (uint32_t)one;
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    return (double)((uint64_t)(c[0] >> 6) << 27 | c[1] >> 5) * 0x1p-53;
}

#endif
