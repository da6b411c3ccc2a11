/*
 * What a decoder layer needs beside arithmetic.c, one row at a time; layers.cl and layers.ptx hold
 * the same with the same arguments. Each is launched as one block of 64 threads, which native code
 * ignores.
 */
#include "bedplate/hal_native.h"

#include <math.h>

typedef struct embed_arguments {
    float *out;
    const float *table;
    uint32_t id, width;
} embed_arguments;

typedef struct rmsnorm_arguments {
    float *out;
    const float *x, *weight;
    uint32_t width;
} rmsnorm_arguments;

typedef struct scores_arguments {
    float *out;
    const float *q, *k;
    uint32_t count, width;
} scores_arguments;

typedef struct attend_arguments {
    float *out;
    const float *scores, *v;
    uint32_t count, width;
} attend_arguments;

typedef struct silu_arguments {
    float *out;
    const float *gate, *up;
    uint32_t n;
} silu_arguments;

/* out = row `id` of table [ids, width] */
static int32_t embed(const bp_native_launch *launch, uint64_t first, uint64_t count) {
    const embed_arguments *given = launch->parameters;
    for (uint32_t i = 0; first == 0 && count && i < given->width; i++)
        given->out[i] = given->table[(uint64_t)given->id * given->width + i];
    return BP_OK;
}

/* out = x * weight / sqrt(mean(x^2) + 1e-5) */
static int32_t rmsnorm(const bp_native_launch *launch, uint64_t first, uint64_t count) {
    const rmsnorm_arguments *given = launch->parameters;
    float sum = 0;
    for (uint32_t i = 0; i < given->width; i++)
        sum += given->x[i] * given->x[i];
    float scale = 1.0f / sqrtf(sum / (float)given->width + 1e-5f);
    for (uint32_t i = 0; first == 0 && count && i < given->width; i++)
        given->out[i] = given->x[i] * scale * given->weight[i];
    return BP_OK;
}

/* out [count] = k [count, width] q / sqrt(width) */
static int32_t scores(const bp_native_launch *launch, uint64_t first, uint64_t count) {
    const scores_arguments *given = launch->parameters;
    for (uint32_t s = 0; first == 0 && count && s < given->count; s++) {
        float sum = 0;
        for (uint32_t i = 0; i < given->width; i++)
            sum += given->q[i] * given->k[s * given->width + i];
        given->out[s] = sum / sqrtf((float)given->width);
    }
    return BP_OK;
}

/* out [width] = softmax(scores [count]) v [count, width] */
static int32_t attend(const bp_native_launch *launch, uint64_t first, uint64_t count) {
    const attend_arguments *given = launch->parameters;
    float most = given->scores[0], total = 0;
    for (uint32_t s = 1; s < given->count; s++)
        most = fmaxf(most, given->scores[s]);
    for (uint32_t s = 0; s < given->count; s++)
        total += expf(given->scores[s] - most);
    for (uint32_t i = 0; first == 0 && count && i < given->width; i++) {
        float sum = 0;
        for (uint32_t s = 0; s < given->count; s++)
            sum += expf(given->scores[s] - most) * given->v[s * given->width + i];
        given->out[i] = sum / total;
    }
    return BP_OK;
}

/* out = gate / (1 + exp(-gate)) * up */
static int32_t silu_mul(const bp_native_launch *launch, uint64_t first, uint64_t count) {
    const silu_arguments *given = launch->parameters;
    for (uint32_t i = 0; first == 0 && count && i < given->n; i++)
        given->out[i] = given->gate[i] / (1.0f + expf(-given->gate[i])) * given->up[i];
    return BP_OK;
}

static const bp_native_kernel KERNELS[] = {BP_NATIVE_KERNEL(embed), BP_NATIVE_KERNEL(rmsnorm),
                                           BP_NATIVE_KERNEL(scores), BP_NATIVE_KERNEL(attend),
                                           BP_NATIVE_KERNEL(silu_mul)};

BP_NATIVE_MODULE(KERNELS, "generic");
