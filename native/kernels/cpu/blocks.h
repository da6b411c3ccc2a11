/*
 * The packed layout of weights in blocks of 32: panels of 16 rows of w (output columns). For each
 * block along K, the codes of all 16, then 16 f16 scales, then in Q4_1 16 f16 minima.
 *
 * Codes: vector j of 64 bytes holds, for each of the 16, four codes along K. Q8_0 has eight
 * vectors, codes 4j..4j+3 plus 128. The 4-bit formats have four: low halves are codes 4j..4j+3 of
 * the block, high halves 16+4j..16+4j+3. Rows past N are zero, scales too.
 */
#ifndef BEDPLATE_KERNELS_CPU_BLOCKS_H
#define BEDPLATE_KERNELS_CPU_BLOCKS_H

#include "launch.h"

BP_INLINE int64_t bp_packed_block_bytes(uint32_t format) {
    return format == BP_Q8_0 ? 512 + 32 : format == BP_Q4_0 ? 256 + 32 : 256 + 64;
}

#endif
