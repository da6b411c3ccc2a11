/* The block pool: who may use which block, and in what order blocks are reused.
 *
 * Clean blocks go first; then cached ones, least recently released first. A
 * request releases its blocks last to first, so the tail of a prefix is evicted
 * before its head, and a head without its tail still helps the next request.
 */
#include "state.h"

static void push_tail(bp_serving *s, list *l, uint32_t b) {
    block *x = &s->blocks[b];
    x->next = NONE;
    x->prev = l->tail;
    if (l->tail == NONE) {
        l->head = b;
    } else {
        s->blocks[l->tail].next = b;
    }
    l->tail = b;
    l->count++;
}

static void unlink_block(bp_serving *s, list *l, uint32_t b) {
    block *x = &s->blocks[b];
    if (x->prev == NONE) {
        l->head = x->next;
    } else {
        s->blocks[x->prev].next = x->next;
    }
    if (x->next == NONE) {
        l->tail = x->prev;
    } else {
        s->blocks[x->next].prev = x->prev;
    }
    x->next = x->prev = NONE;
    l->count--;
}

void pool_init(bp_serving *s) {
    s->clean = s->cached = s->fenced = (list){NONE, NONE, 0};
    for (uint32_t b = 0; b < s->config.block_count; b++) {
        s->blocks[b].state = BLOCK_CLEAN;
        push_tail(s, &s->clean, b);
    }
}

uint32_t pool_free_count(const bp_serving *s) {
    return s->clean.count + s->cached.count;
}

uint32_t pool_take(bp_serving *s) {
    uint32_t b = s->clean.head;
    if (b != NONE) {
        unlink_block(s, &s->clean, b);
    } else {
        b = s->cached.head;
        if (b == NONE)
            return NONE;
        unlink_block(s, &s->cached, b);
        prefix_remove(s, b);
        s->stats.evictions++;
    }
    block *x = &s->blocks[b];
    x->state = BLOCK_REFERENCED;
    x->references = 1;
    x->generation++;
    s->referenced++;
    return b;
}

void pool_share(bp_serving *s, uint32_t b) {
    block *x = &s->blocks[b];
    if (x->state == BLOCK_CACHED) {
        unlink_block(s, &s->cached, b);
        x->state = BLOCK_REFERENCED;
        s->referenced++;
    } else if (x->state == BLOCK_FENCED) {
        unlink_block(s, &s->fenced, b);
        x->state = BLOCK_REFERENCED;
        s->referenced++;
    }
    x->references++;
}

static void make_free(bp_serving *s, uint32_t b) {
    block *x = &s->blocks[b];
    x->state = x->indexed ? BLOCK_CACHED : BLOCK_CLEAN;
    push_tail(s, x->indexed ? &s->cached : &s->clean, b);
}

void pool_release(bp_serving *s, uint32_t b) {
    block *x = &s->blocks[b];
    if (--x->references > 0)
        return;
    s->referenced--;
    if (s->in_flight) { /* the running step may still read it */
        x->state = BLOCK_FENCED;
        x->fence_step = s->step;
        push_tail(s, &s->fenced, b);
    } else {
        make_free(s, b);
    }
}

void pool_pass_fence(bp_serving *s, uint64_t step) {
    while (s->fenced.head != NONE && s->blocks[s->fenced.head].fence_step <= step) {
        uint32_t b = s->fenced.head;
        unlink_block(s, &s->fenced, b);
        make_free(s, b);
    }
}

static int32_t check_list(const bp_serving *s, const list *l, uint8_t state) {
    uint32_t seen = 0, previous = NONE;
    for (uint32_t b = l->head; b != NONE; b = s->blocks[b].next) {
        const block *x = &s->blocks[b];
        if (x->state != state || x->prev != previous || x->references != 0)
            return bp_serving_fail(BP_SERVING_INVARIANT, "I7: block %u is on a list it is not in",
                                   b);
        if (++seen > s->config.block_count)
            return bp_serving_fail(BP_SERVING_INVARIANT, "I7: a free list loops at block %u", b);
        previous = b;
    }
    if (seen != l->count || l->tail != previous)
        return bp_serving_fail(BP_SERVING_INVARIANT, "I7: a list of %u blocks counts %u", seen,
                               l->count);
    return BP_SERVING_OK;
}

int32_t pool_check(const bp_serving *s) {
    int32_t status = check_list(s, &s->clean, BLOCK_CLEAN);
    if (status == 0)
        status = check_list(s, &s->cached, BLOCK_CACHED);
    if (status == 0)
        status = check_list(s, &s->fenced, BLOCK_FENCED);
    if (status)
        return status;
    uint32_t total = s->clean.count + s->cached.count + s->fenced.count + s->referenced;
    if (total != s->config.block_count)
        return bp_serving_fail(BP_SERVING_INVARIANT, "I2: %u blocks are accounted for, of %u",
                               total, s->config.block_count);
    uint64_t references = 0, held = 0;
    for (uint32_t b = 0; b < s->config.block_count; b++) {
        references += s->blocks[b].references;
        if (s->blocks[b].state == BLOCK_CLEAN && s->blocks[b].indexed)
            return bp_serving_fail(BP_SERVING_INVARIANT, "I6: clean block %u has a key", b);
    }
    for (uint32_t slot = s->running.head; slot != NONE; slot = s->requests[slot].next) {
        const request *r = &s->requests[slot];
        held += r->block_count;
        for (uint32_t i = 0; i < r->block_count; i++) {
            uint32_t b = table_of(s, r)[i];
            if (b >= s->config.block_count || s->blocks[b].state != BLOCK_REFERENCED)
                return bp_serving_fail(BP_SERVING_INVARIANT, "I3: request %llu holds free block %u",
                                       (unsigned long long)r->id, b);
            if (s->blocks[b].references > 1 && (i + 1) * s->config.block_tokens > r->computed)
                return bp_serving_fail(BP_SERVING_INVARIANT, "I4: shared block %u may be written",
                                       b);
        }
    }
    if (references != held)
        return bp_serving_fail(BP_SERVING_INVARIANT, "I3: %llu references for %llu table entries",
                               (unsigned long long)references, (unsigned long long)held);
    return BP_SERVING_OK;
}
