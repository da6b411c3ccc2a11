/*
 * rope: turn pairs of x in place by position * inverse_frequency. The angle is reduced to
 * [-pi/4, pi/4] in f64 (products of an f32 and a position below 2^29 are exact there), then sine
 * and cosine are f32 polynomials to 2 units in the last place. Each token's sines serve all heads.
 */
#include "launch.h"

typedef struct parameters {
    float *x;
    const int32_t *positions;
    const float *frequency;
    const uint32_t *count;
    int64_t rows, heads, head_dim, row_stride, head_stride;
    uint32_t pairing;
    float scale;
} parameters;

enum { MOST_PAIRS = 256 };

/* Plain loops over arrays: the compiler turns them into the vectors of this build. */
static void sines(double position, const float *frequency, int64_t pairs, float scale,
                  float *restrict cosine, float *restrict sine) {
    for (int64_t i = 0; i < pairs; i++) {
        double angle = position * (double)frequency[i];
        double turns = __builtin_rint(angle * 0.63661977236758134);
        /* pi/2 in two parts: turns * the first is exact up to 2^20 turns. */
        double rest = angle - turns * 1.5707963267341256;
        rest -= turns * 6.077100506506192e-11;
        float r = (float)rest, r2 = r * r;
        int32_t quarter =
            (int32_t)turns & 3; /* below 2^31: positions are i32, frequencies at most 1 */
        float s = r + r * r2 * (-1.66666552e-1f + r2 * (8.33216030e-3f + r2 * -1.95152155e-4f));
        float c = 1.0f - 0.5f * r2 +
                  r2 * r2 * (4.16666456e-2f + r2 * (-1.38873153e-3f + r2 * 2.44330786e-5f));
        float sine_part = quarter & 1 ? c : s, cosine_part = quarter & 1 ? s : c;
        sine[i] = (quarter & 2 ? -sine_part : sine_part) * scale;
        cosine[i] = ((quarter + 1) & 2 ? -cosine_part : cosine_part) * scale;
    }
}

static void turn_halves(float *restrict x, int64_t pairs, const float *restrict cosine,
                        const float *restrict sine) {
    float *restrict far = x + pairs;
    for (int64_t i = 0; i < pairs; i++) {
        float low = x[i], high = far[i];
        x[i] = low * cosine[i] - high * sine[i];
        far[i] = high * cosine[i] + low * sine[i];
    }
}

static void turn_adjacent(float *restrict x, int64_t pairs, const float *restrict cosine,
                          const float *restrict sine) {
    for (int64_t i = 0; i < pairs; i++) {
        float low = x[2 * i], high = x[2 * i + 1];
        x[2 * i] = low * cosine[i] - high * sine[i];
        x[2 * i + 1] = high * cosine[i] + low * sine[i];
    }
}

BP_KERNEL(rope) {
    const parameters *p = BP_PARAMETERS(parameters, launch);
    bp_span span = bp_share(bp_rows(p->count, p->rows), launch->grid[0], first_block, block_count);
    float cosine[MOST_PAIRS], sine[MOST_PAIRS];
    int64_t pairs = p->head_dim / 2;
    for (int64_t token = span.from; token < span.to; token++) {
        sines((double)p->positions[token], p->frequency, pairs, p->scale, cosine, sine);
        for (int64_t head = 0; head < p->heads; head++) {
            float *x = p->x + token * p->row_stride + head * p->head_stride;
            if (p->pairing == BP_ROPE_HALF_SPLIT)
                turn_halves(x, pairs, cosine, sine);
            else
                turn_adjacent(x, pairs, cosine, sine);
        }
    }
    return BP_OK;
}
