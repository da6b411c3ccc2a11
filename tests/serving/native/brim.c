/* A scheduler filled to the brim, for the address sanitizer: as many requests as it knows,
 * each as long as it may be, with odd limits, so that the last byte of every array is used. */

#include <stdio.h>
#include <string.h>

#include "bedplate/serving.h"

enum { REQUESTS = 5, RUNNING = 3, LENGTH = 11, BUDGET = 9, ROWS = 3, STRIDE = 4, PROMPT = 7 };

static int fail(const char *what) {
    printf("%s: %s\n", what, bp_serving_last_error());
    return 1;
}

int main(void) {
    bp_serving_config config = {sizeof config, 9,    3, REQUESTS, RUNNING, BUDGET,
                                LENGTH,        ROWS, 1, 2,        {1, 2}};
    bp_serving *s = NULL;
    if (bp_serving_create(&config, &s))
        return fail("create");
    int32_t prompt[PROMPT], sampled[ROWS] = {5, 6, 7};
    uint32_t made[REQUESTS] = {0}, left = REQUESTS;
    for (int i = 0; i < REQUESTS; i++) {
        for (int j = 0; j < PROMPT; j++)
            prompt[j] = i * 100 + j;
        bp_serving_event add = {.kind = BP_SERVING_ADD, .request = (uint64_t)i, .tokens = prompt};
        add.token_count = PROMPT;
        add.max_new_tokens = LENGTH - PROMPT;
        if (bp_serving_apply(s, &add, 1, 0, NULL))
            return fail("add");
    }
    uint64_t row_request[RUNNING], preempted[REQUESTS];
    uint32_t row_first[RUNNING], row_tokens[RUNNING], row_cached[RUNNING], sample_row[ROWS];
    int32_t query_start[RUNNING + 1], context[RUNNING], table[RUNNING * STRIDE], tokens[BUDGET];
    int32_t positions[BUDGET], slots[BUDGET], sample_token[ROWS];
    for (int step = 0; left && step < 1000; step++) {
        bp_serving_plan_out plan = {sizeof plan, STRIDE,      row_request,  row_first,  row_tokens,
                                    row_cached,  query_start, context,      table,      tokens,
                                    positions,   slots,       sample_token, sample_row, preempted};
        if (bp_serving_plan(s, &plan) || bp_serving_check(s))
            return fail("plan");
        bp_serving_event done = {.kind = BP_SERVING_STEP_DONE, .step = plan.step};
        done.tokens = sampled;
        done.token_count = plan.sample_count;
        if (bp_serving_apply(s, &done, 1, 0, NULL))
            return fail("done");
        for (uint32_t i = 0; i < plan.sample_count; i++) {
            uint64_t request = row_request[sample_row[i]];
            if (++made[request] < LENGTH - PROMPT)
                continue;
            bp_serving_event end = {.kind = BP_SERVING_END, .request = request};
            if (bp_serving_apply(s, &end, 1, 0, NULL))
                return fail("end");
            left--;
        }
    }
    bp_serving_destroy(s);
    printf("%u left\n", left);
    return left != 0;
}
