/* The scheduler: which tokens of which requests go into the next step.
 *
 * One token budget, no phases. Requests that need one token (decoding) come
 * first; what is left is shared among the prompts being read, running and newly
 * admitted alike, so a short prompt does not wait for a long one to end. When no
 * block is free, a later request loses its blocks and is computed again; nobody
 * is admitted in such a step. The first request in order never loses its blocks
 * to another, so some request always moves on.
 */
#include <stddef.h>

#include "state.h"

enum {
    PROMPTS_AT_ONCE = 4,  /* prompts that share the budget left by decoding */
    MAX_PASSED_OVER = 16, /* times a waiting request may be overtaken by smaller ones */
    LOOK_PAST = 4         /* waiting requests that do not fit before a step stops looking */
};

typedef struct {
    bp_serving *s;
    bp_serving_plan_out *out;
    uint32_t budget;
    bool starved; /* a block was missing: admit nobody */
} planning;

static bool is_planned(const request *r) {
    return r->scheduled > 0;
}

static uint32_t wanted(const request *r) {
    return r->complete ? 0 : r->token_count - r->computed;
}

/* The victim: cheapest to compute again among running requests that come after r
 * and are not in this plan; those preempted often are spared while others exist. */
static request *choose_victim(bp_serving *s, const request *r) {
    request *best = NULL;
    bool best_spared = false;
    for (uint32_t slot = r->next; slot != NONE; slot = s->requests[slot].next) {
        request *v = &s->requests[slot];
        if (is_planned(v) || v->block_count == 0)
            continue;
        bool spared = v->preemptions >= s->config.max_preemptions;
        bool better = !best || (best_spared && !spared) ||
                      (best_spared == spared && v->computed <= best->computed);
        if (better) {
            best = v;
            best_spared = spared;
        }
    }
    return best;
}

static void preempt(planning *p, request *r) {
    bp_serving *s = p->s;
    request_release_blocks(s, r);
    request_remove(s, &s->running, r);
    r->state = REQUEST_WAITING;
    r->preemptions++;
    request_insert(s, &s->waiting, r);
    p->out->preempted[p->out->preempted_count++] = r->id;
    s->stats.preemptions++;
    p->starved = true;
}

/* Gives r blocks for `tokens` positions in all; false when it got fewer. */
static bool ensure_blocks(planning *p, request *r, uint32_t tokens) {
    bp_serving *s = p->s;
    uint32_t need = blocks_for(s, tokens);
    while (r->block_count < need) {
        uint32_t b = pool_take(s);
        if (b == NONE) {
            request *victim = choose_victim(s, r);
            p->starved = true;
            if (!victim)
                return false;
            preempt(p, victim);
            continue;
        }
        table_of(s, r)[r->block_count++] = b;
    }
    return true;
}

static void add_row(planning *p, request *r, uint32_t count) {
    bp_serving *s = p->s;
    bp_serving_plan_out *o = p->out;
    uint32_t row = o->row_count++, bt = s->config.block_tokens;
    const int32_t *tokens = tokens_of(s, r);
    const uint32_t *table = table_of(s, r);
    int32_t *out_table = o->block_table + (uint64_t)row * o->table_stride;
    planned_row *mine = &s->plan[s->plan_rows++];
    *mine = (planned_row){slot_of(s, r), r->computed, count, o->sample_count, 0, r->id};
    o->row_request[row] = r->id;
    o->row_first[row] = r->computed;
    o->row_tokens[row] = count;
    o->row_cached[row] = r->cached_tokens;
    o->query_start[row] = (int32_t)o->token_count;
    o->context_length[row] = (int32_t)(r->computed + count);
    for (uint32_t i = 0; i < o->table_stride; i++)
        out_table[i] = i < r->block_count ? (int32_t)table[i] : -1;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t position = r->computed + i, at = o->token_count++;
        o->tokens[at] = tokens[position];
        o->positions[at] = (int32_t)position;
        o->kv_slots[at] = (int32_t)(table[position / bt] * bt + position % bt);
        bool last = position + 1 == r->token_count;
        bool scored = (r->flags & BP_SERVING_SCORE) && position < r->prompt_tokens;
        if (last || scored) {
            o->sample_token[o->sample_count] = (int32_t)at;
            o->sample_row[o->sample_count++] = row;
            mine->sample_count++;
        }
    }
    o->query_start[row + 1] = (int32_t)o->token_count;
    r->scheduled = count;
    p->budget -= count;
}

/* How many of `count` tokens of r the logits rows left allow. */
static uint32_t fit_samples(const planning *p, const request *r, uint32_t count) {
    uint32_t left = p->s->config.max_sample_rows - p->out->sample_count;
    if (r->flags & BP_SERVING_SCORE)
        return count < left ? count : left;
    bool samples = r->computed + count == r->token_count;
    return samples && left == 0 ? count - 1 : count;
}

static void plan_decodes(planning *p) {
    bp_serving *s = p->s;
    for (uint32_t slot = s->running.head, next; slot != NONE && p->budget > 0; slot = next) {
        request *r = &s->requests[slot];
        next = r->next;
        if (wanted(r) != 1 || fit_samples(p, r, 1) == 0)
            continue;
        bool has_room = ensure_blocks(p, r, r->computed + 1);
        next = r->next; /* a victim may have been the next one */
        if (has_room) {
            add_row(p, r, 1);
        } else {
            preempt(p, r); /* nobody after it can give way: it does */
        }
    }
}

static void plan_prompt(planning *p, request *r, uint32_t share) {
    bp_serving *s = p->s;
    uint32_t want = wanted(r);
    uint32_t count = want < share ? want : share;
    if (count > p->budget)
        count = p->budget;
    count = fit_samples(p, r, count);
    if (count == 0)
        return;
    if (!ensure_blocks(p, r, r->computed + count)) {
        uint32_t room = r->block_count * s->config.block_tokens;
        count = room > r->computed ? room - r->computed : 0;
        if (count == 0)
            return;
        count = fit_samples(p, r, count);
    }
    if (count > 0)
        add_row(p, r, count);
}

/* Admission: the blocks its whole prompt needs beyond the shared prefix are free
 * now, so that it is not preempted by its own prompt. */
static bool admit(planning *p, request *r) {
    bp_serving *s = p->s;
    uint32_t *table = table_of(s, r), blocks = blocks_for(s, r->token_count);
    /* Before a key is hashed: at best all that others hold is its prefix, but never the block
     * of its last token. */
    uint32_t free_count = pool_free_count(s), cached_free = 0;
    if (blocks - (s->referenced < blocks ? s->referenced : blocks - 1) > free_count)
        return false;
    uint32_t found = prefix_match(s, r), need = blocks - found;
    if (need > free_count)
        return false;
    for (uint32_t i = 0; i < found; i++)
        cached_free += s->blocks[table[i]].state == BLOCK_CACHED;
    if (need + cached_free > free_count)
        return false;
    for (uint32_t i = 0; i < found; i++)
        pool_share(s, table[i]);
    r->block_count = r->keyed_blocks = found;
    r->computed = found * s->config.block_tokens;
    if (r->preemptions == 0)
        r->cached_tokens = r->computed;
    s->stats.prefix_queried += r->token_count;
    s->stats.prefix_hit += r->computed;
    request_remove(s, &s->waiting, r);
    r->state = REQUEST_RUNNING;
    r->passed_over = 0;
    request_insert(s, &s->running, r);
    return true;
}

static uint32_t prompts_running(const bp_serving *s) {
    uint32_t count = 0;
    for (uint32_t slot = s->running.head; slot != NONE; slot = s->requests[slot].next)
        count += wanted(&s->requests[slot]) > 1;
    return count;
}

static uint32_t share_of(const planning *p) {
    uint32_t sharers = prompts_running(p->s) + p->s->waiting.count;
    if (sharers > PROMPTS_AT_ONCE)
        sharers = PROMPTS_AT_ONCE;
    if (sharers < 2)
        return p->budget;
    uint32_t share = p->budget / sharers;
    return share < p->s->config.block_tokens ? p->s->config.block_tokens : share;
}

static void plan_running_prompts(planning *p, uint32_t share) {
    bp_serving *s = p->s;
    for (uint32_t slot = s->running.head; slot != NONE && p->budget > 0;) {
        request *r = &s->requests[slot];
        if (!is_planned(r) && wanted(r) > 1)
            plan_prompt(p, r, share);
        slot = r->next;
    }
}

static void plan_admissions(planning *p, uint32_t share) {
    bp_serving *s = p->s;
    request *overtaken = NULL;
    uint32_t misfits = 0;
    for (uint32_t slot = s->waiting.head, next;
         slot != NONE && p->budget > 0 && !p->starved && s->running.count < s->config.max_running;
         slot = next) {
        request *r = &s->requests[slot];
        next = r->next;
        uint32_t want = r->token_count < share ? r->token_count : share;
        if (fit_samples(p, r, want) == 0)
            break;
        if (!admit(p, r)) {
            if (r->passed_over >= MAX_PASSED_OVER || ++misfits == LOOK_PAST)
                break;
            if (!overtaken)
                overtaken = r;
            continue;
        }
        if (overtaken)
            overtaken->passed_over++;
        plan_prompt(p, r, share);
    }
}

/* Budget that no share took goes to the last prompt when it was cut short: its
 * row is planned again with all that is left. */
static void widen_last(planning *p) {
    bp_serving *s = p->s;
    bp_serving_plan_out *o = p->out;
    if (p->budget == 0 || s->plan_rows == 0)
        return;
    planned_row *mine = &s->plan[s->plan_rows - 1];
    request *r = &s->requests[mine->slot];
    uint32_t want = wanted(r);
    if (want <= mine->tokens || (r->flags & BP_SERVING_SCORE))
        return;
    uint32_t had = mine->tokens;
    o->row_count--;
    s->plan_rows--;
    o->token_count -= had;
    o->sample_count -= mine->sample_count;
    p->budget += had;
    r->scheduled = 0;
    plan_prompt(p, r, p->budget);
}

static bool takes(const bp_serving *s, const bp_serving_plan_out *o) {
    return o && o->struct_size >= sizeof *o && o->table_stride >= s->blocks_per_request;
}

int32_t bp_serving_plan(bp_serving *s, bp_serving_plan_out *o) {
    if (!s || !takes(s, o))
        return bp_serving_fail(BP_SERVING_INVALID_ARGUMENT,
                               "the plan's struct_size or table_stride is too small");
    if (s->in_flight)
        return bp_serving_fail(BP_SERVING_BUSY, "step %llu is still in flight",
                               (unsigned long long)s->step);
    o->row_count = o->token_count = o->sample_count = o->preempted_count = 0;
    o->query_start[0] = 0;
    s->plan_rows = 0;
    planning p = {s, o, s->config.max_batched_tokens, false};
    plan_decodes(&p);
    uint32_t share = share_of(&p);
    plan_running_prompts(&p, share);
    if (!p.starved)
        plan_admissions(&p, share);
    widen_last(&p);
    o->step = s->step;
    if (o->token_count == 0)
        return BP_SERVING_OK;
    o->step = ++s->step;
    s->in_flight = true;
    s->stats.steps++;
    return BP_SERVING_OK;
}
