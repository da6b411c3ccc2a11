/*
 * Shape checks that more than one op makes. Each returns BP_OK or bp_fail's status with one
 * sentence that names the op, the tensor and the value.
 */
#ifndef BEDPLATE_HAL_CPU_OPS_SHAPE_H
#define BEDPLATE_HAL_CPU_OPS_SHAPE_H

#include "../ops.h"
#include "blocks.h"

/* Rank, and elements dense in the innermost dimension. GGUF rows start at whole blocks. */
static inline int32_t bp_cpu_check_rows(const char *op, const char *name, const bp_cpu_tensor *t,
                                        uint32_t rank) {
    if (t->rank != rank)
        return bp_fail(BP_INVALID_ARGUMENT, "%s wants %s of rank %u, got %u", op, name, rank,
                       t->rank);
    if (t->shape[rank - 1] > 1 && t->stride[rank - 1] != 1)
        return bp_fail(BP_UNSUPPORTED, "%s wants %s dense in its last dimension, got stride %lld",
                       op, name, (long long)t->stride[rank - 1]);
    if (!bp_cpu_is_blocks(t->dtype))
        return BP_OK;
    for (uint32_t axis = 0; axis + 1 < rank; axis++)
        if (t->stride[axis] % BP_CPU_BLOCK_ELEMENTS)
            return bp_fail(BP_INVALID_ARGUMENT,
                           "%s wants rows of %s to start at whole blocks of 32, got stride %lld",
                           op, name, (long long)t->stride[axis]);
    if (t->shape[rank - 1] % BP_CPU_BLOCK_ELEMENTS)
        return bp_fail(BP_INVALID_ARGUMENT,
                       "%s wants rows of %s in blocks of 32, got %lld elements", op, name,
                       (long long)t->shape[rank - 1]);
    return BP_OK;
}

/* One extent. */
static inline int32_t bp_cpu_check_extent(const char *op, const char *name, const bp_cpu_tensor *t,
                                          uint32_t axis, int64_t expected) {
    if (t->shape[axis] != expected)
        return bp_fail(BP_INVALID_ARGUMENT,
                       "%s has %s with %lld elements in dimension %u, not %lld", op, name,
                       (long long)t->shape[axis], axis, (long long)expected);
    return BP_OK;
}

/* Element type: one of two (give the same twice for one). */
static inline int32_t bp_cpu_check_dtype(const char *op, const char *name, const bp_cpu_tensor *t,
                                         uint32_t one, uint32_t other) {
    if (t->dtype != one && t->dtype != other)
        return bp_fail(BP_UNSUPPORTED, "%s does not take %s of dtype 0x%x", op, name, t->dtype);
    return BP_OK;
}

/* A vector of `length` elements of one type, dense. */
static inline int32_t bp_cpu_check_vector(const char *op, const char *name, const bp_cpu_tensor *t,
                                          uint32_t dtype, int64_t length) {
    int32_t status = bp_cpu_check_rows(op, name, t, 1);
    if (!status)
        status = bp_cpu_check_extent(op, name, t, 0, length);
    return status ? status : bp_cpu_check_dtype(op, name, t, dtype, dtype);
}

/* The optional `count`. */
static inline int32_t bp_cpu_check_count(const char *op, const bp_cpu_tensor *t) {
    if (!bp_cpu_is_count(t))
        return bp_fail(BP_INVALID_ARGUMENT, "count of %s must be u32 [1]", op);
    return BP_OK;
}

/* Leave the function with a failed check's status. */
#define BP_CPU_TRY(check)                                                                          \
    do {                                                                                           \
        int32_t bp_cpu_status = (check);                                                           \
        if (bp_cpu_status)                                                                         \
            return bp_cpu_status;                                                                  \
    } while (0)

#endif
