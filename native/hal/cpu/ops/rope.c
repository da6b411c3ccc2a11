/*
 * rope: x f32 [T,Heads,D] in place (strided rows and heads), positions i32 [T], inverse_frequency
 * f32 [D/2], count?. Angles are position * frequency in f64: in f32 they would be wrong by 2^-11 at
 * position 8,192. One block is one token; its sines serve all heads.
 */
#include "read.h"
#include "shape.h"

#include <math.h>

enum { X, POSITIONS, FREQUENCY, COUNT };
enum { MOST_PAIRS = 256 };

static int32_t plan(bp_cpu_plan *plan) {
    const bp_cpu_tensor *t = plan->tensors;
    const bp_rope_attributes *attributes = &plan->attributes.rope;
    BP_CPU_TRY(bp_cpu_check_rows("rope", "x", &t[X], 3));
    BP_CPU_TRY(bp_cpu_check_dtype("rope", "x", &t[X], BP_DTYPE_F32, BP_DTYPE_F32));
    if (t[X].shape[2] % 2 || t[X].shape[2] > 2 * MOST_PAIRS)
        return bp_fail(BP_INVALID_ARGUMENT, "rope wants an even head of at most %d, got %lld",
                       2 * MOST_PAIRS, (long long)t[X].shape[2]);
    BP_CPU_TRY(
        bp_cpu_check_vector("rope", "positions", &t[POSITIONS], BP_DTYPE_I32, t[X].shape[0]));
    BP_CPU_TRY(bp_cpu_check_vector("rope", "inverse_frequency", &t[FREQUENCY], BP_DTYPE_F32,
                                   t[X].shape[2] / 2));
    BP_CPU_TRY(bp_cpu_check_count("rope", &t[COUNT]));
    if (attributes->pairing > BP_ROPE_ADJACENT)
        return bp_fail(BP_INVALID_ARGUMENT, "rope wants pairing 0 or 1, got %u",
                       attributes->pairing);
    if (!(attributes->scale > 0.0f && attributes->scale <= 1e6f))
        return bp_fail(BP_INVALID_ARGUMENT, "rope wants a positive scale, got %g",
                       (double)attributes->scale);
    plan->writes = 1u << X;
    return BP_OK;
}

static uint64_t blocks(const bp_cpu_run *run) {
    return (uint64_t)bp_cpu_rows(&run->tensors[COUNT], run->tensors[X].shape[0]);
}

/* Turn one head. Pairs are (i, i + far) for half-split, (2i, 2i + 1) for adjacent. */
static void turn(float *x, int64_t pairs, int64_t step, int64_t far, const float *cosine,
                 const float *sine) {
    for (int64_t i = 0; i < pairs; i++) {
        float low = x[i * step], high = x[i * step + far];
        x[i * step] = low * cosine[i] - high * sine[i];
        x[i * step + far] = high * cosine[i] + low * sine[i];
    }
}

static int32_t run(const bp_cpu_run *run, uint64_t first, uint64_t count) {
    const bp_cpu_tensor *x = &run->tensors[X];
    const bp_rope_attributes *attributes = &run->plan->attributes.rope;
    const int32_t *positions = (const int32_t *)(const void *)run->tensors[POSITIONS].data;
    const float *frequency = (const float *)(const void *)run->tensors[FREQUENCY].data;
    int64_t pairs = x->shape[2] / 2;
    float cosine[MOST_PAIRS], sine[MOST_PAIRS];
    for (uint64_t token = first; token < first + count; token++) {
        for (int64_t i = 0; i < pairs; i++) {
            double angle = (double)positions[token] * (double)frequency[i];
            cosine[i] = (float)cos(angle) * attributes->scale;
            sine[i] = (float)sin(angle) * attributes->scale;
        }
        for (int64_t head = 0; head < x->shape[1]; head++) {
            float *values =
                (float *)(void *)bp_cpu_at(x, (int64_t)token * x->stride[0] + head * x->stride[1]);
            if (attributes->pairing == BP_ROPE_HALF_SPLIT)
                turn(values, pairs, 1, pairs, cosine, sine);
            else
                turn(values, pairs, 2, 1, cosine, sine);
        }
    }
    return BP_OK;
}

const bp_cpu_op bp_cpu_op_rope = {
    .id = BP_OP_ROPE,
    .name = "rope",
    .attribute_bytes = sizeof(bp_rope_attributes),
    .tensors = 4,
    .optional = 1u << COUNT,
    .plan = plan,
    .blocks = blocks,
    .run = run,
};
