/* Requests: arrival, the two ordered lists, and giving blocks back.
 *
 * Slots are found by id through an open-addressed table, so END and ADD cost the
 * same with one request as with thousands. Lists are kept in (priority, arrival)
 * order; a request that lost its blocks goes back to its old place, not the end.
 */
#include <string.h>

#include "state.h"

static uint64_t scramble(uint64_t x) { /* the finaliser of SplitMix64 (Steele et al., 2014) */
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static uint32_t home_of(const bp_serving *s, uint64_t id) {
    return (uint32_t)scramble(id) & s->slot_mask;
}

request *request_find(bp_serving *s, uint64_t id) {
    for (uint32_t i = home_of(s, id); s->slot_index[i] != NONE; i = (i + 1) & s->slot_mask)
        if (s->requests[s->slot_index[i]].id == id)
            return &s->requests[s->slot_index[i]];
    return NULL;
}

static void index_slot(bp_serving *s, uint32_t slot) {
    uint32_t i = home_of(s, s->requests[slot].id);
    while (s->slot_index[i] != NONE)
        i = (i + 1) & s->slot_mask;
    s->slot_index[i] = slot;
}

static void unindex_slot(bp_serving *s, uint32_t slot) {
    uint32_t hole = home_of(s, s->requests[slot].id);
    while (s->slot_index[hole] != slot)
        hole = (hole + 1) & s->slot_mask;
    for (uint32_t i = (hole + 1) & s->slot_mask; s->slot_index[i] != NONE;
         i = (i + 1) & s->slot_mask) {
        uint32_t home = home_of(s, s->requests[s->slot_index[i]].id);
        if (((i - home) & s->slot_mask) >= ((i - hole) & s->slot_mask)) {
            s->slot_index[hole] = s->slot_index[i];
            hole = i;
        }
    }
    s->slot_index[hole] = NONE;
}

static bool goes_before(const request *a, const request *b) {
    if (a->priority != b->priority)
        return a->priority < b->priority;
    return a->arrival < b->arrival;
}

void request_insert(bp_serving *s, list *l, request *r) {
    uint32_t slot = slot_of(s, r), after = l->tail;
    while (after != NONE && goes_before(r, &s->requests[after]))
        after = s->requests[after].prev;
    r->prev = after;
    r->next = after == NONE ? l->head : s->requests[after].next;
    if (r->prev == NONE) {
        l->head = slot;
    } else {
        s->requests[r->prev].next = slot;
    }
    if (r->next == NONE) {
        l->tail = slot;
    } else {
        s->requests[r->next].prev = slot;
    }
    l->count++;
}

void request_remove(bp_serving *s, list *l, request *r) {
    if (r->prev == NONE) {
        l->head = r->next;
    } else {
        s->requests[r->prev].next = r->next;
    }
    if (r->next == NONE) {
        l->tail = r->prev;
    } else {
        s->requests[r->next].prev = r->prev;
    }
    r->next = r->prev = NONE;
    l->count--;
}

int32_t request_add(bp_serving *s, const bp_serving_event *e) {
    unsigned long long id = e->request;
    if (e->token_count == 0 || e->tokens == NULL || e->max_new_tokens == 0)
        return bp_serving_fail(BP_SERVING_INVALID_ARGUMENT,
                               "request %llu has no prompt token or asks for no token", id);
    uint64_t longest = (uint64_t)e->token_count + e->max_new_tokens;
    uint64_t pool = (uint64_t)s->config.block_count * s->config.block_tokens;
    if (longest > s->config.max_model_tokens || longest > pool)
        return bp_serving_fail(BP_SERVING_TOO_LONG,
                               "request %llu needs %llu tokens; the model takes %u, the pool %llu",
                               id, (unsigned long long)longest, s->config.max_model_tokens,
                               (unsigned long long)pool);
    if (request_find(s, e->request))
        return bp_serving_fail(BP_SERVING_DUPLICATE_REQUEST, "request %llu is already known", id);
    if (s->free_slot == NONE)
        return bp_serving_fail(BP_SERVING_QUEUE_FULL, "%u requests are already known",
                               s->config.max_requests);
    uint32_t slot = s->free_slot;
    request *r = &s->requests[slot];
    s->free_slot = r->next;
    *r = (request){.id = e->request,
                   .arrival = ++s->arrivals,
                   .domain = {e->domain[0], e->domain[1]},
                   .priority = e->priority,
                   .state = REQUEST_WAITING,
                   .flags = e->flags,
                   .prompt_tokens = e->token_count,
                   .token_count = e->token_count,
                   .max_tokens = (uint32_t)longest,
                   .next = NONE,
                   .prev = NONE};
    memcpy(tokens_of(s, r), e->tokens, e->token_count * sizeof *e->tokens);
    index_slot(s, slot);
    request_insert(s, &s->waiting, r);
    s->stats.added++;
    return BP_SERVING_OK;
}

void request_release_blocks(bp_serving *s, request *r) {
    while (r->block_count > 0)
        pool_release(s, table_of(s, r)[--r->block_count]);
    r->computed = r->keyed_blocks = r->matched = 0;
    r->seen_inserts = r->seen_removes = 0;
    r->tail_key[0] = r->tail_key[1] = 0;
    r->unindexable = false;
}

int32_t request_end(bp_serving *s, uint64_t id) {
    request *r = request_find(s, id);
    if (!r)
        return bp_serving_fail(BP_SERVING_UNKNOWN_REQUEST, "request %llu is not known",
                               (unsigned long long)id);
    request_release_blocks(s, r);
    request_remove(s, r->state == REQUEST_RUNNING ? &s->running : &s->waiting, r);
    unindex_slot(s, slot_of(s, r));
    r->state = REQUEST_FREE;
    r->next = s->free_slot;
    s->free_slot = slot_of(s, r);
    s->stats.ended++;
    return BP_SERVING_OK;
}

static int32_t check_order(bp_serving *s, const list *l, uint32_t state, uint32_t *seen) {
    const request *before = NULL;
    uint32_t count = 0;
    for (uint32_t slot = l->head; slot != NONE; slot = s->requests[slot].next, count++) {
        const request *r = &s->requests[slot];
        if (count >= s->config.max_requests)
            return bp_serving_fail(BP_SERVING_INVARIANT, "I1: a request list loops");
        if (r->state != state || request_find(s, r->id) != r || (before && !goes_before(before, r)))
            return bp_serving_fail(BP_SERVING_INVARIANT, "I1: request %llu is misplaced",
                                   (unsigned long long)r->id);
        if (r->computed > r->token_count || r->block_count < blocks_for(s, r->computed))
            return bp_serving_fail(
                BP_SERVING_INVARIANT, "I3: request %llu computed %u of %u in %u blocks",
                (unsigned long long)r->id, r->computed, r->token_count, r->block_count);
        before = r;
    }
    if (count != l->count)
        return bp_serving_fail(BP_SERVING_INVARIANT, "I1: a list of %u requests counts %u", count,
                               l->count);
    *seen += count;
    return BP_SERVING_OK;
}

int32_t request_check(const bp_serving *state) {
    bp_serving *s =
        (bp_serving *)state; /* request_find takes a mutable state; nothing is written */
    uint32_t seen = 0, unused = 0;
    int32_t status = check_order(s, &s->waiting, REQUEST_WAITING, &seen);
    if (status == 0)
        status = check_order(s, &s->running, REQUEST_RUNNING, &seen);
    if (status)
        return status;
    for (uint32_t slot = s->free_slot; slot != NONE && unused <= s->config.max_requests;
         slot = s->requests[slot].next)
        unused++;
    if (seen + unused != s->config.max_requests)
        return bp_serving_fail(BP_SERVING_INVARIANT, "I1: %u requests live, %u slots free, of %u",
                               seen, unused, s->config.max_requests);
    return BP_SERVING_OK;
}
