/*
 * softmax: x f32 [T,H], count?, out f32 [T,H], which may be x itself. out = exp(scale * x - m) over
 * its sum, m the row's largest. A row with a NaN is all NaN. One block is one row.
 */
#include "read.h"
#include "shape.h"

#include <math.h>

enum { X, COUNT, OUT };

static int32_t plan(bp_cpu_plan *plan) {
    const bp_cpu_tensor *t = plan->tensors;
    BP_CPU_TRY(bp_cpu_check_rows("softmax", "x", &t[X], 2));
    BP_CPU_TRY(bp_cpu_check_rows("softmax", "out", &t[OUT], 2));
    BP_CPU_TRY(bp_cpu_check_dtype("softmax", "x", &t[X], BP_DTYPE_F32, BP_DTYPE_F32));
    BP_CPU_TRY(bp_cpu_check_dtype("softmax", "out", &t[OUT], BP_DTYPE_F32, BP_DTYPE_F32));
    BP_CPU_TRY(bp_cpu_check_extent("softmax", "out", &t[OUT], 0, t[X].shape[0]));
    BP_CPU_TRY(bp_cpu_check_extent("softmax", "out", &t[OUT], 1, t[X].shape[1]));
    BP_CPU_TRY(bp_cpu_check_count("softmax", &t[COUNT]));
    float scale = plan->attributes.softmax.scale;
    if (!(scale > 0.0f && scale <= 1e6f))
        return bp_fail(BP_INVALID_ARGUMENT, "softmax wants a positive scale, got %g",
                       (double)scale);
    plan->writes = 1u << OUT;
    if (t[OUT].stride[0] == t[X].stride[0])
        plan->in_place = 1u << X;
    return BP_OK;
}

static uint64_t blocks(const bp_cpu_run *run) {
    return (uint64_t)bp_cpu_rows(&run->tensors[COUNT], run->tensors[X].shape[0]);
}

static void soften(const float *x, float *out, int64_t width, float scale) {
    float largest = -INFINITY;
    double total = 0.0;
    for (int64_t i = 0; i < width; i++)
        largest = x[i] > largest || x[i] != x[i] ? x[i] : largest;
    for (int64_t i = 0; i < width; i++) {
        out[i] = expf(scale * (x[i] - largest));
        total += (double)out[i];
    }
    for (int64_t i = 0; i < width; i++)
        out[i] = (float)((double)out[i] / total);
}

static int32_t run(const bp_cpu_run *run, uint64_t first, uint64_t count) {
    const bp_cpu_tensor *x = &run->tensors[X], *out = &run->tensors[OUT];
    for (uint64_t row = first; row < first + count; row++)
        soften((const float *)(void *)bp_cpu_at(x, (int64_t)row * x->stride[0]),
               (float *)(void *)bp_cpu_at(out, (int64_t)row * out->stride[0]), x->shape[1],
               run->plan->attributes.softmax.scale);
    return BP_OK;
}

const bp_cpu_op bp_cpu_op_softmax = {
    .id = BP_OP_SOFTMAX,
    .name = "softmax",
    .attribute_bytes = sizeof(bp_softmax_attributes),
    .tensors = 3,
    .optional = 1u << COUNT,
    .plan = plan,
    .blocks = blocks,
    .run = run,
};
