/*
 * rmsnorm: x f32 [T,H], weight f32 [H], count?, out f32 or bf16 [T,H], which may be x itself.
 * out = x * weight / sqrt(mean(x^2) + eps), summed in f32 over 16 running sums. One block is a row.
 */
#include "read.h"
#include "shape.h"

#include <math.h>

enum { X, WEIGHT, COUNT, OUT };

static int32_t plan(bp_cpu_plan *plan) {
    const bp_cpu_tensor *t = plan->tensors;
    BP_CPU_TRY(bp_cpu_check_rows("rmsnorm", "x", &t[X], 2));
    BP_CPU_TRY(bp_cpu_check_rows("rmsnorm", "out", &t[OUT], 2));
    BP_CPU_TRY(bp_cpu_check_dtype("rmsnorm", "x", &t[X], BP_DTYPE_F32, BP_DTYPE_F32));
    BP_CPU_TRY(bp_cpu_check_dtype("rmsnorm", "out", &t[OUT], BP_DTYPE_F32, BP_DTYPE_BF16));
    BP_CPU_TRY(bp_cpu_check_vector("rmsnorm", "weight", &t[WEIGHT], BP_DTYPE_F32, t[X].shape[1]));
    BP_CPU_TRY(bp_cpu_check_extent("rmsnorm", "out", &t[OUT], 0, t[X].shape[0]));
    BP_CPU_TRY(bp_cpu_check_extent("rmsnorm", "out", &t[OUT], 1, t[X].shape[1]));
    BP_CPU_TRY(bp_cpu_check_count("rmsnorm", &t[COUNT]));
    float eps = plan->attributes.rmsnorm.eps;
    if (!(eps >= 0.0f && eps <= 1.0f))
        return bp_fail(BP_INVALID_ARGUMENT, "rmsnorm wants eps from 0 to 1, got %g", (double)eps);
    plan->writes = 1u << OUT;
    if (t[OUT].dtype == BP_DTYPE_F32 && t[OUT].stride[0] == t[X].stride[0])
        plan->in_place = 1u << X;
    return BP_OK;
}

static uint64_t blocks(const bp_cpu_run *run) {
    return (uint64_t)bp_cpu_rows(&run->tensors[COUNT], run->tensors[X].shape[0]);
}

static float sum_of_squares(const float *x, int64_t width) {
    int64_t whole = width & ~(int64_t)15;
    float sum = bp_cpu_dot(x, x, whole);
    for (int64_t i = whole; i < width; i++)
        sum += x[i] * x[i];
    return sum;
}

static int32_t run(const bp_cpu_run *run, uint64_t first, uint64_t count) {
    const bp_cpu_tensor *x = &run->tensors[X], *out = &run->tensors[OUT];
    const float *weight = (const float *)(const void *)run->tensors[WEIGHT].data;
    int64_t width = x->shape[1];
    float eps = run->plan->attributes.rmsnorm.eps;
    for (uint64_t row = first; row < first + count; row++) {
        const float *from = (const float *)(void *)bp_cpu_at(x, (int64_t)row * x->stride[0]);
        unsigned char *to = bp_cpu_at(out, (int64_t)row * out->stride[0]);
        float factor = 1.0f / sqrtf(sum_of_squares(from, width) / (float)width + eps);
        if (out->dtype == BP_DTYPE_F32) {
            float *values = (float *)(void *)to;
            for (int64_t i = 0; i < width; i++)
                values[i] = from[i] * factor * weight[i];
        } else {
            uint16_t *values = (uint16_t *)(void *)to;
            for (int64_t i = 0; i < width; i++)
                values[i] = bp_cpu_to_bf16(from[i] * factor * weight[i]);
        }
    }
    return BP_OK;
}

const bp_cpu_op bp_cpu_op_rmsnorm = {
    .id = BP_OP_RMSNORM,
    .name = "rmsnorm",
    .attribute_bytes = sizeof(bp_rmsnorm_attributes),
    .tensors = 4,
    .optional = 1u << COUNT,
    .plan = plan,
    .blocks = blocks,
    .run = run,
};
