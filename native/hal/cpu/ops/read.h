/* Reading rows of any float or block type as f32. */
#ifndef BEDPLATE_HAL_CPU_OPS_READ_H
#define BEDPLATE_HAL_CPU_OPS_READ_H

#include "../ops.h"
#include "blocks.h"

static inline int bp_cpu_is_float(uint32_t dtype) {
    return dtype == BP_DTYPE_F32 || dtype == BP_DTYPE_BF16;
}

/* Bytes from one element to the next; blocks have none. */
static inline int64_t bp_cpu_element_bytes(uint32_t dtype) {
    return dtype == BP_DTYPE_BF16 ? 2 : 4;
}

/* Address of element `index` (a sum of index * stride). */
static inline unsigned char *bp_cpu_at(const bp_cpu_tensor *t, int64_t index) {
    if (bp_cpu_is_blocks(t->dtype))
        return t->data + index / BP_CPU_BLOCK_ELEMENTS * bp_cpu_block_bytes(t->dtype);
    return t->data + index * bp_cpu_element_bytes(t->dtype);
}

/* `count` dense elements from `from` as f32; of blocks a multiple of 32. */
static inline void bp_cpu_read(uint32_t dtype, const unsigned char *from, int64_t count,
                               float *restrict to) {
    if (dtype == BP_DTYPE_F32) {
        memcpy(to, from, (size_t)count * sizeof(float));
    } else if (dtype == BP_DTYPE_BF16) {
        const uint16_t *half = (const uint16_t *)(const void *)from;
        for (int64_t i = 0; i < count; i++)
            to[i] = bp_cpu_from_bf16(half[i]);
    } else {
        for (int64_t i = 0; i < count;
             i += BP_CPU_BLOCK_ELEMENTS, from += bp_cpu_block_bytes(dtype))
            bp_cpu_block_values(dtype, from, to + i);
    }
}

/* `count` f32 values to a dense row of f32 or bf16. */
static inline void bp_cpu_write(uint32_t dtype, unsigned char *to, int64_t count,
                                const float *restrict from) {
    if (dtype == BP_DTYPE_F32) {
        memcpy(to, from, (size_t)count * sizeof(float));
        return;
    }
    uint16_t *half = (uint16_t *)(void *)to;
    for (int64_t i = 0; i < count; i++)
        half[i] = bp_cpu_to_bf16(from[i]);
}

/* Dot product of `count` elements, a multiple of 16: 16 running sums, so that the compiler may use
 * vectors without reordering anything. */
static inline float bp_cpu_dot(const float *restrict a, const float *restrict b, int64_t count) {
    float sums[16] = {0};
    for (int64_t k = 0; k < count; k += 16)
        for (int i = 0; i < 16; i++)
            sums[i] += a[k + i] * b[k + i];
    for (int width = 8; width; width /= 2)
        for (int i = 0; i < width; i++)
            sums[i] += sums[i + width];
    return sums[0];
}

#endif
