/*
 * convert: x [T,H], count?, out [T,H] between f32 and bf16. Rows may be strided, elements are
 * dense. f32 to bf16 rounds to nearest even; the reverse is exact. One block is one row.
 */
#include "../ops.h"

#include <string.h>

enum { X, COUNT, OUT };

static int32_t plan(bp_cpu_plan *plan) {
    const bp_cpu_tensor *x = &plan->tensors[X], *out = &plan->tensors[OUT];
    if (x->rank != 2 || out->rank != 2)
        return bp_fail(BP_INVALID_ARGUMENT, "convert wants matrices, got rank %u and %u", x->rank,
                       out->rank);
    if (x->shape[0] != out->shape[0] || x->shape[1] != out->shape[1])
        return bp_fail(BP_INVALID_ARGUMENT, "convert has x [%lld,%lld] but out [%lld,%lld]",
                       (long long)x->shape[0], (long long)x->shape[1], (long long)out->shape[0],
                       (long long)out->shape[1]);
    int widens = x->dtype == BP_DTYPE_BF16 && out->dtype == BP_DTYPE_F32;
    int narrows = x->dtype == BP_DTYPE_F32 && out->dtype == BP_DTYPE_BF16;
    if (!widens && !narrows)
        return bp_fail(BP_UNSUPPORTED, "convert goes between f32 and bf16, got dtype 0x%x to 0x%x",
                       x->dtype, out->dtype);
    if (x->stride[1] != 1 || out->stride[1] != 1)
        return bp_fail(BP_UNSUPPORTED,
                       "convert wants dense rows, got element strides %lld and %lld",
                       (long long)x->stride[1], (long long)out->stride[1]);
    if (!bp_cpu_is_count(&plan->tensors[COUNT]))
        return bp_fail(BP_INVALID_ARGUMENT, "count of convert must be u32 [1]");
    plan->writes = 1u << OUT;
    return BP_OK;
}

static uint64_t blocks(const bp_cpu_run *run) {
    return (uint64_t)bp_cpu_rows(&run->tensors[COUNT], run->tensors[X].shape[0]);
}

static int32_t run(const bp_cpu_run *run, uint64_t first, uint64_t count) {
    const bp_cpu_tensor *x = &run->tensors[X], *out = &run->tensors[OUT];
    int64_t width = x->shape[1];
    for (uint64_t row = first; row < first + count; row++) {
        if (x->dtype == BP_DTYPE_F32) {
            const float *from = (const float *)(void *)x->data + row * (uint64_t)x->stride[0];
            uint16_t *to = (uint16_t *)(void *)out->data + row * (uint64_t)out->stride[0];
            for (int64_t i = 0; i < width; i++)
                to[i] = bp_cpu_to_bf16(from[i]);
        } else {
            const uint16_t *from = (const uint16_t *)(void *)x->data + row * (uint64_t)x->stride[0];
            float *to = (float *)(void *)out->data + row * (uint64_t)out->stride[0];
            for (int64_t i = 0; i < width; i++)
                to[i] = bp_cpu_from_bf16(from[i]);
        }
    }
    return BP_OK;
}

const bp_cpu_op bp_cpu_op_convert = {
    .id = BP_OP_CONVERT,
    .name = "convert",
    .attribute_bytes = sizeof(bp_convert_attributes),
    .tensors = 3,
    .optional = 1u << COUNT,
    .plan = plan,
    .blocks = blocks,
    .run = run,
};
