/* reduce: x f32 [T,H], count?, out f32 [T]: the sum of each row over 16 running sums. One block is
 * one row. */
#include "read.h"
#include "shape.h"

enum { X, COUNT, OUT };

static int32_t plan(bp_cpu_plan *plan) {
    const bp_cpu_tensor *t = plan->tensors;
    BP_CPU_TRY(bp_cpu_check_rows("reduce", "x", &t[X], 2));
    BP_CPU_TRY(bp_cpu_check_dtype("reduce", "x", &t[X], BP_DTYPE_F32, BP_DTYPE_F32));
    BP_CPU_TRY(bp_cpu_check_vector("reduce", "out", &t[OUT], BP_DTYPE_F32, t[X].shape[0]));
    BP_CPU_TRY(bp_cpu_check_count("reduce", &t[COUNT]));
    plan->writes = 1u << OUT;
    return BP_OK;
}

static uint64_t blocks(const bp_cpu_run *run) {
    return (uint64_t)bp_cpu_rows(&run->tensors[COUNT], run->tensors[X].shape[0]);
}

static float total(const float *x, int64_t width) {
    float sums[16] = {0};
    for (int64_t i = 0; i < width; i++)
        sums[i % 16] += x[i];
    for (int half = 8; half; half /= 2)
        for (int i = 0; i < half; i++)
            sums[i] += sums[i + half];
    return sums[0];
}

static int32_t run(const bp_cpu_run *run, uint64_t first, uint64_t count) {
    const bp_cpu_tensor *x = &run->tensors[X];
    float *out = (float *)(void *)run->tensors[OUT].data;
    for (uint64_t row = first; row < first + count; row++)
        out[row] =
            total((const float *)(void *)bp_cpu_at(x, (int64_t)row * x->stride[0]), x->shape[1]);
    return BP_OK;
}

const bp_cpu_op bp_cpu_op_reduce = {
    .id = BP_OP_REDUCE,
    .name = "reduce",
    .attribute_bytes = sizeof(bp_reduce_attributes),
    .tensors = 3,
    .optional = 1u << COUNT,
    .plan = plan,
    .blocks = blocks,
    .run = run,
};
