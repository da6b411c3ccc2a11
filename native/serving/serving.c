/* The C ABI of the serving core: create, apply, check, statistics. */
#include "bedplate/serving.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"

static _Thread_local char last_error[256];

const char *bp_serving_last_error(void) {
    return last_error;
}

int32_t bp_serving_fail(int32_t status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(last_error, sizeof last_error, format, arguments);
    va_end(arguments);
    return status;
}

static uint32_t power_of_two_above(uint64_t n) {
    uint64_t p = 4;
    while (p < n)
        p *= 2;
    return (uint32_t)p;
}

static int32_t check_config(const bp_serving_config *c) {
    if (!c || c->struct_size < sizeof *c)
        return bp_serving_fail(BP_SERVING_INVALID_ARGUMENT,
                               "the configuration's struct_size is short");
    if (c->block_tokens == 0 || c->block_tokens > 64)
        return bp_serving_fail(BP_SERVING_INVALID_ARGUMENT, "block_tokens is %u, not 1 to 64",
                               c->block_tokens);
    uint64_t slots = (uint64_t)c->block_count * c->block_tokens;
    if (c->block_count == 0 || slots > INT32_MAX)
        return bp_serving_fail(BP_SERVING_INVALID_ARGUMENT, "block_count %u gives %llu token slots",
                               c->block_count, (unsigned long long)slots);
    if (c->max_requests == 0 || c->max_requests > 1u << 20 || c->max_running == 0 ||
        c->max_running > c->max_requests || c->max_batched_tokens == 0 ||
        c->max_batched_tokens > 1u << 20 || c->max_sample_rows == 0 || c->max_model_tokens < 2)
        return bp_serving_fail(
            BP_SERVING_INVALID_ARGUMENT,
            "a limit is out of range: requests %u, running %u, batched tokens %u, "
            "sample rows %u, model tokens %u",
            c->max_requests, c->max_running, c->max_batched_tokens, c->max_sample_rows,
            c->max_model_tokens);
    return BP_SERVING_OK;
}

/* Carves `count` items of `bytes` from the arena; a null arena only measures. */
static void *carve(char *arena, uint64_t *used, uint64_t count, uint64_t bytes) {
    void *at = arena ? arena + *used : NULL;
    *used += (count * bytes + 63) / 64 * 64;
    return at;
}

static uint64_t lay_out(bp_serving *s, char *arena) {
    const bp_serving_config *c = &s->config;
    uint64_t used = 0, index = (uint64_t)s->index_mask + 1, slots = (uint64_t)s->slot_mask + 1;
    s->blocks = carve(arena, &used, c->block_count, sizeof *s->blocks);
    s->block_tokens = carve(arena, &used, (uint64_t)c->block_count * c->block_tokens, 4);
    s->index = carve(arena, &used, index, 4);
    s->requests = carve(arena, &used, c->max_requests, sizeof *s->requests);
    s->slot_index = carve(arena, &used, slots, 4);
    s->tables = carve(arena, &used, (uint64_t)c->max_requests * s->blocks_per_request, 4);
    s->scratch = carve(arena, &used, 2 * (uint64_t)s->blocks_per_request, 4);
    s->plan = carve(arena, &used, c->max_running, sizeof *s->plan);
    s->tokens = carve(arena, &used, (uint64_t)c->max_requests * c->max_model_tokens, 4);
    return used;
}

int32_t bp_serving_create(const bp_serving_config *config, bp_serving **out) {
    int32_t status = check_config(config);
    if (status)
        return status;
    bp_serving shape = {.config = *config};
    shape.blocks_per_request = blocks_for(&shape, config->max_model_tokens);
    shape.index_mask = power_of_two_above(2ull * config->block_count) - 1;
    shape.slot_mask = power_of_two_above(2ull * config->max_requests) - 1;
    uint64_t bytes = lay_out(&shape, NULL);
    bp_serving *s = calloc(1, sizeof *s + 64 + bytes); /* untouched pages cost nothing */
    if (!s)
        return bp_serving_fail(BP_SERVING_OUT_OF_MEMORY, "no memory for %llu bytes of state",
                               (unsigned long long)bytes);
    *s = shape;
    lay_out(s, (char *)(((uintptr_t)(s + 1) + 63) & ~(uintptr_t)63));
    memset(s->index, 0xff, ((uint64_t)s->index_mask + 1) * 4);
    memset(s->slot_index, 0xff, ((uint64_t)s->slot_mask + 1) * 4);
    s->waiting = s->running = (list){NONE, NONE, 0};
    for (uint32_t i = 0; i < config->max_requests; i++)
        s->requests[i].next = i + 1 < config->max_requests ? i + 1 : NONE;
    s->free_slot = 0;
    pool_init(s);
    *out = s;
    return BP_SERVING_OK;
}

void bp_serving_destroy(bp_serving *s) {
    free(s);
}

/* The rows of the step in flight whose request still lives, in plan order. */
static request *row_request(bp_serving *s, const planned_row *row) {
    request *r = &s->requests[row->slot];
    return r->state == REQUEST_RUNNING && r->id == row->id && r->scheduled > 0 ? r : NULL;
}

static int32_t end_step(bp_serving *s, const bp_serving_event *e) {
    bool done = e->kind == BP_SERVING_STEP_DONE;
    if (!s->in_flight || e->step != s->step)
        return bp_serving_fail(BP_SERVING_UNKNOWN_STEP, "step %llu is not in flight",
                               (unsigned long long)e->step);
    uint32_t samples = 0;
    for (uint32_t i = 0; i < s->plan_rows; i++)
        samples += s->plan[i].sample_count;
    if (done && (e->token_count != samples || (samples && !e->tokens)))
        return bp_serving_fail(BP_SERVING_INVALID_ARGUMENT, "step %llu sampled %u rows, not %u",
                               (unsigned long long)e->step, samples, e->token_count);
    s->in_flight = false;
    for (uint32_t i = 0; i < s->plan_rows; i++) {
        const planned_row *row = &s->plan[i];
        request *r = row_request(s, row);
        if (!r)
            continue;
        r->scheduled = 0;
        if (!done)
            continue;
        r->computed += row->tokens;
        prefix_extend(s, r);
        if (row->sample_count == 0 || r->computed != r->token_count)
            continue;
        int32_t token = e->tokens[row->sample_first + row->sample_count - 1];
        if (token >= 0)
            tokens_of(s, r)[r->token_count++] = token;
        r->complete = token < 0 || r->token_count == r->max_tokens;
    }
    pool_pass_fence(s, s->step);
    s->plan_rows = 0;
    return BP_SERVING_OK;
}

static int32_t apply_one(bp_serving *s, const bp_serving_event *e) {
    switch (e->kind) {
    case BP_SERVING_ADD:
        return request_add(s, e);
    case BP_SERVING_END:
        return request_end(s, e->request);
    case BP_SERVING_STEP_DONE:
    case BP_SERVING_STEP_LOST:
        return end_step(s, e);
    default:
        return bp_serving_fail(BP_SERVING_INVALID_ARGUMENT, "event kind %u is unknown", e->kind);
    }
}

int32_t bp_serving_apply(bp_serving *s, const bp_serving_event *events, uint32_t count,
                         uint64_t now_ns, uint32_t *applied) {
    if (!s || (count && !events))
        return bp_serving_fail(BP_SERVING_INVALID_ARGUMENT, "apply needs a state and its events");
    if (now_ns > s->now_ns)
        s->now_ns = now_ns;
    int32_t status = BP_SERVING_OK;
    uint32_t i = 0;
    for (; i < count && status == BP_SERVING_OK; i++)
        status = apply_one(s, &events[i]);
    if (applied)
        *applied = status ? i - 1 : i;
    return status;
}

int32_t bp_serving_get_stats(const bp_serving *s, bp_serving_stats *out) {
    if (!s || !out || out->struct_size < sizeof *out)
        return bp_serving_fail(BP_SERVING_INVALID_ARGUMENT, "the statistics' struct_size is short");
    *out = s->stats;
    out->struct_size = sizeof *out;
    out->waiting = s->waiting.count;
    out->running = s->running.count;
    out->blocks_clean = s->clean.count;
    out->blocks_cached = s->cached.count;
    out->blocks_fenced = s->fenced.count;
    out->blocks_referenced = s->referenced;
    return BP_SERVING_OK;
}

int32_t bp_serving_check(const bp_serving *s) {
    if (!s)
        return bp_serving_fail(BP_SERVING_INVALID_ARGUMENT, "check needs a state");
    int32_t status = request_check(s);
    if (status == 0)
        status = pool_check(s);
    if (status == 0)
        status = prefix_check(s);
    return status;
}
