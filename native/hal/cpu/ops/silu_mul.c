/*
 * silu_mul: gate_up f32 [T,2F] with the gate first, count?, out f32 or bf16 [T,F].
 * out = gate / (1 + exp(-gate)) * up. One block is one row.
 */
#include "read.h"
#include "shape.h"

#include <math.h>

enum { GATE_UP, COUNT, OUT };

static int32_t plan(bp_cpu_plan *plan) {
    const bp_cpu_tensor *t = plan->tensors;
    BP_CPU_TRY(bp_cpu_check_rows("silu_mul", "gate_up", &t[GATE_UP], 2));
    BP_CPU_TRY(bp_cpu_check_rows("silu_mul", "out", &t[OUT], 2));
    BP_CPU_TRY(bp_cpu_check_dtype("silu_mul", "gate_up", &t[GATE_UP], BP_DTYPE_F32, BP_DTYPE_F32));
    BP_CPU_TRY(bp_cpu_check_dtype("silu_mul", "out", &t[OUT], BP_DTYPE_F32, BP_DTYPE_BF16));
    BP_CPU_TRY(bp_cpu_check_extent("silu_mul", "gate_up", &t[GATE_UP], 0, t[OUT].shape[0]));
    BP_CPU_TRY(bp_cpu_check_extent("silu_mul", "gate_up", &t[GATE_UP], 1, 2 * t[OUT].shape[1]));
    BP_CPU_TRY(bp_cpu_check_count("silu_mul", &t[COUNT]));
    plan->writes = 1u << OUT;
    return BP_OK;
}

static uint64_t blocks(const bp_cpu_run *run) {
    return (uint64_t)bp_cpu_rows(&run->tensors[COUNT], run->tensors[OUT].shape[0]);
}

static float silu_times(float gate, float up) {
    return gate / (1.0f + expf(-gate)) * up;
}

static int32_t run(const bp_cpu_run *run, uint64_t first, uint64_t count) {
    const bp_cpu_tensor *gate_up = &run->tensors[GATE_UP], *out = &run->tensors[OUT];
    int64_t width = out->shape[1];
    for (uint64_t row = first; row < first + count; row++) {
        const float *gate =
            (const float *)(void *)bp_cpu_at(gate_up, (int64_t)row * gate_up->stride[0]);
        unsigned char *to = bp_cpu_at(out, (int64_t)row * out->stride[0]);
        for (int64_t i = 0; i < width; i++) {
            float value = silu_times(gate[i], gate[width + i]);
            if (out->dtype == BP_DTYPE_F32)
                ((float *)(void *)to)[i] = value;
            else
                ((uint16_t *)(void *)to)[i] = bp_cpu_to_bf16(value);
        }
    }
    return BP_OK;
}

const bp_cpu_op bp_cpu_op_silu_mul = {
    .id = BP_OP_SILU_MUL,
    .name = "silu_mul",
    .attribute_bytes = sizeof(bp_silu_mul_attributes),
    .tensors = 3,
    .optional = 1u << COUNT,
    .plan = plan,
    .blocks = blocks,
    .run = run,
};
