/*
 * sample: logits f32 [R,V], rows u8 [R,64] (bp_sample_row), count?, tokens i32 [R], logprob? f32
 * [R]. Temperature, then top-k, top-p and min-p, then the inverse CDF over what is left in
 * descending probability (ties: lower id first). Temperature 0 takes the highest logit, lowest id.
 * A row with a NaN, without a finite maximum, or with a negative temperature gives -1 and a NaN;
 * others go on. The log-probability is of the untempered, unfiltered distribution. One block is one
 * row; the workspace holds V ids a row.
 */
#include "philox.h"
#include "ranking.h"
#include "read.h"
#include "shape.h"

enum { LOGITS, ROWS, COUNT, TOKENS, LOGPROB };

static int32_t plan(bp_cpu_plan *plan) {
    const bp_cpu_tensor *t = plan->tensors;
    BP_CPU_TRY(bp_cpu_check_rows("sample", "logits", &t[LOGITS], 2));
    BP_CPU_TRY(bp_cpu_check_dtype("sample", "logits", &t[LOGITS], BP_DTYPE_F32, BP_DTYPE_F32));
    int64_t rows = t[LOGITS].shape[0], width = t[LOGITS].shape[1];
    if (width < 1 || width > INT32_MAX)
        return bp_fail(BP_INVALID_ARGUMENT, "sample wants 1 to 2^31-1 logits a row, got %lld",
                       (long long)width);
    BP_CPU_TRY(bp_cpu_check_rows("sample", "rows", &t[ROWS], 2));
    BP_CPU_TRY(bp_cpu_check_dtype("sample", "rows", &t[ROWS], BP_DTYPE_U8, BP_DTYPE_U8));
    BP_CPU_TRY(bp_cpu_check_extent("sample", "rows", &t[ROWS], 0, rows));
    BP_CPU_TRY(bp_cpu_check_extent("sample", "rows", &t[ROWS], 1, sizeof(bp_sample_row)));
    BP_CPU_TRY(bp_cpu_check_vector("sample", "tokens", &t[TOKENS], BP_DTYPE_I32, rows));
    if (t[LOGPROB].dtype)
        BP_CPU_TRY(bp_cpu_check_vector("sample", "logprob", &t[LOGPROB], BP_DTYPE_F32, rows));
    BP_CPU_TRY(bp_cpu_check_count("sample", &t[COUNT]));
    plan->writes = 1u << TOKENS | 1u << LOGPROB;
    plan->workspace_bytes = (uint64_t)rows * (uint64_t)width * sizeof(uint32_t);
    return BP_OK;
}

static uint64_t blocks(const bp_cpu_run *run) {
    return (uint64_t)bp_cpu_rows(&run->tensors[COUNT], run->tensors[LOGITS].shape[0]);
}

/* Highest (its lowest id) and lowest finite logit; 0 when the row must be given up. */
static int scan(const float *logits, int64_t width, int32_t *best, float *lowest) {
    *best = 0;
    *lowest = logits[0];
    for (int64_t i = 0; i < width; i++) {
        if (logits[i] != logits[i])
            return 0;
        if (logits[i] > logits[*best])
            *best = (int32_t)i;
        if (logits[i] < *lowest && logits[i] >= -3.4028235e38f)
            *lowest = logits[i];
    }
    if (*lowest < -3.4028235e38f)
        *lowest = logits[*best];
    return logits[*best] <= 3.4028235e38f && logits[*best] >= -3.4028235e38f;
}

static int32_t draw(const float *logits, int64_t width, int32_t best, float lowest,
                    const bp_sample_row *row, uint32_t *ids) {
    bp_cpu_ranking ranking = {
        .logits = logits, .ids = ids, .tokens = width, .highest = logits[best]};
    bp_cpu_rank(&ranking, lowest, row->temperature);
    bp_cpu_prefix kept = {.tokens = width, .mass = 0.0};
    for (int b = 0; b < BP_CPU_BINS; b++)
        kept.mass += ranking.mass[b];
    if (row->top_k > 0 && row->top_k < width)
        kept = bp_cpu_walk(&ranking, (bp_cpu_stop){row->top_k, INFINITY, 0.0, 0});
    if (row->top_p < 1.0f)
        kept = bp_cpu_walk(&ranking,
                           (bp_cpu_stop){kept.tokens, (double)row->top_p * kept.mass, 0.0, 0});
    if (row->min_p > 0.0f) {
        double least = row->min_p < 1.0f ? (double)row->min_p : 1.0;
        kept = bp_cpu_walk(&ranking, (bp_cpu_stop){kept.tokens, INFINITY, least, 0});
    }
    double target = bp_cpu_uniform(row->seed, row->token_index) * kept.mass;
    return (int32_t)bp_cpu_walk(&ranking, (bp_cpu_stop){kept.tokens, target, 0.0, 1}).last;
}

static float log_probability(const float *logits, int64_t width, float highest, int32_t token) {
    double total = 0.0;
    for (int64_t i = 0; i < width; i++)
        total += (double)expf(logits[i] - highest);
    return (float)((double)logits[token] - (double)highest - log(total));
}

static int32_t run(const bp_cpu_run *run, uint64_t first, uint64_t count) {
    const bp_cpu_tensor *t = run->tensors;
    int64_t width = t[LOGITS].shape[1];
    int32_t *tokens = (int32_t *)(void *)t[TOKENS].data;
    float *logprob = (float *)(void *)t[LOGPROB].data;
    for (uint64_t r = first; r < first + count; r++) {
        const float *logits =
            (const float *)(void *)bp_cpu_at(&t[LOGITS], (int64_t)r * t[LOGITS].stride[0]);
        bp_sample_row row;
        memcpy(&row, t[ROWS].data + (int64_t)r * t[ROWS].stride[0], sizeof(row));
        int32_t best, token = -1;
        float lowest;
        if (scan(logits, width, &best, &lowest) && row.temperature >= 0.0f) {
            uint32_t *ids = (uint32_t *)(void *)run->workspace + r * (uint64_t)width;
            token = row.temperature == 0.0f ? best : draw(logits, width, best, lowest, &row, ids);
        }
        tokens[r] = token;
        if (logprob)
            logprob[r] = token < 0 ? NAN : log_probability(logits, width, logits[best], token);
    }
    return BP_OK;
}

const bp_cpu_op bp_cpu_op_sample = {
    .id = BP_OP_SAMPLE,
    .name = "sample",
    .attribute_bytes = sizeof(bp_sample_attributes),
    .tensors = 5,
    .optional = 1u << COUNT | 1u << LOGPROB,
    .plan = plan,
    .blocks = blocks,
    .run = run,
};
