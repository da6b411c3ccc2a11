/* Prefix index: which block already holds the KV of this run of tokens.
 *
 * A key is the keyed hash of (tag, parent key, domain, tokens), so a block is
 * found only behind the same whole prefix in the same domain. The key alone is
 * never believed: a hit also compares the parent, the domain and the tokens.
 * When a key is already taken by other content, the block stays unindexed and so
 * do its descendants: their chain could not be followed through it.
 */
#include <stddef.h>
#include <string.h>

#include "state.h"

typedef struct {
    uint64_t tag, parent[2], domain[2], count;
    int32_t tokens[64];
} material;

static void block_key(const bp_serving *s, const uint64_t parent[2], const uint64_t domain[2],
                      const int32_t *tokens, uint64_t key[2]) {
    material m;
    m.tag = 0x626c6f636b2d7631u; /* this layout of the fields, version 1 */
    memcpy(m.parent, parent, sizeof m.parent);
    memcpy(m.domain, domain, sizeof m.domain);
    m.count = s->config.block_tokens;
    memcpy(m.tokens, tokens, s->config.block_tokens * sizeof *tokens);
    bp_serving_siphash(s->config.hash_key, &m,
                       offsetof(material, tokens) + s->config.block_tokens * sizeof *tokens, key);
#ifdef BEDPLATE_TEST_HOME_BITS /* builds of the tests: few homes, or few keys as well */
    key[0] &= (1u << BEDPLATE_TEST_HOME_BITS) - 1;
#endif
#ifdef BEDPLATE_TEST_SHORT_KEYS
    key[1] = 0;
#endif
}

static bool same(const uint64_t a[2], const uint64_t b[2]) {
    return a[0] == b[0] && a[1] == b[1];
}

uint32_t prefix_find(const bp_serving *s, const uint64_t key[2]) {
    for (uint32_t i = (uint32_t)key[0] & s->index_mask; s->index[i] != NONE;
         i = (i + 1) & s->index_mask)
        if (same(s->blocks[s->index[i]].key, key))
            return s->index[i];
    return NONE;
}

static void insert(bp_serving *s, uint32_t b) {
    uint32_t i = (uint32_t)s->blocks[b].key[0] & s->index_mask;
    while (s->index[i] != NONE)
        i = (i + 1) & s->index_mask;
    s->index[i] = b;
    s->blocks[b].indexed = true;
    s->inserts++;
}

void prefix_remove(bp_serving *s, uint32_t b) {
    if (!s->blocks[b].indexed)
        return;
    s->blocks[b].indexed = false;
    s->removes++;
    uint32_t hole = (uint32_t)s->blocks[b].key[0] & s->index_mask;
    while (s->index[hole] != b)
        hole = (hole + 1) & s->index_mask;
    /* Backward-shift deletion: move later entries of the run into the hole when
     * their home lies at or before it, so a probe never needs a tombstone. */
    for (uint32_t i = (hole + 1) & s->index_mask; s->index[i] != NONE;
         i = (i + 1) & s->index_mask) {
        uint32_t home = (uint32_t)s->blocks[s->index[i]].key[0] & s->index_mask;
        if (((i - home) & s->index_mask) >= ((i - hole) & s->index_mask)) {
            s->index[hole] = s->index[i];
            hole = i;
        }
    }
    s->index[hole] = NONE;
}

static const int32_t *content(const bp_serving *s, uint32_t b) {
    return s->block_tokens + (uint64_t)b * s->config.block_tokens;
}

static bool holds(const bp_serving *s, uint32_t b, const uint64_t parent[2],
                  const uint64_t domain[2], const int32_t *tokens) {
    const block *x = &s->blocks[b];
    return same(x->parent, parent) && same(x->domain, domain) &&
           memcmp(content(s, b), tokens, s->config.block_tokens * sizeof *tokens) == 0;
}

static bool may_share(const bp_serving *s, const request *r) {
    return s->config.prefix_sharing && !(r->flags & BP_SERVING_SCORE);
}

/* Brings the match of a waiting request up to the index, whose chain is r->tail_key and
 * `table`. Blocks that were kept are compared, not hashed: an indexed block with the same
 * parent, domain and tokens has the same key. Only what lies beyond them is hashed, one
 * block further than found. Returns how many keys were hashed. */
static uint32_t rematch(const bp_serving *s, request *r, const int32_t *tokens, uint32_t *table) {
    uint32_t bt = s->config.block_tokens, hashed = 0;
    if (r->seen_removes != s->removes) {
        uint64_t tail[2] = {0, 0};
        uint32_t kept = 0;
        for (; kept < r->matched; kept++) {
            const block *x = &s->blocks[table[kept]];
            if (!x->indexed ||
                !holds(s, table[kept], tail, r->domain, tokens + (uint64_t)kept * bt))
                break;
            memcpy(tail, x->key, sizeof tail);
        }
        r->matched = kept;
        memcpy(r->tail_key, tail, sizeof tail);
        r->seen_removes = s->removes;
    }
    if (r->seen_inserts == s->inserts)
        return hashed;
    /* The block of the last token is left out: one token must be computed to have logits. */
    uint32_t limit = (r->token_count - 1) / bt;
    while (r->matched < limit) {
        uint64_t key[2];
        const int32_t *run = tokens + (uint64_t)r->matched * bt;
        block_key(s, r->tail_key, r->domain, run, key);
        hashed++;
        uint32_t b = prefix_find(s, key);
        if (b == NONE || !holds(s, b, r->tail_key, r->domain, run))
            break;
        table[r->matched++] = b;
        memcpy(r->tail_key, key, sizeof key);
    }
    r->seen_inserts = s->inserts;
    return hashed;
}

uint32_t prefix_match(bp_serving *s, request *r) {
    if (may_share(s, r))
        s->stats.prefix_hashes += rematch(s, r, tokens_of(s, r), table_of(s, r));
    return r->matched;
}

void prefix_extend(bp_serving *s, request *r) {
    if (!s->config.prefix_sharing || r->unindexable)
        return;
    uint32_t full = r->computed / s->config.block_tokens;
    for (; r->keyed_blocks < full; r->keyed_blocks++) {
        const int32_t *run = tokens_of(s, r) + (uint64_t)r->keyed_blocks * s->config.block_tokens;
        uint32_t b = table_of(s, r)[r->keyed_blocks];
        uint64_t key[2];
        block_key(s, r->tail_key, r->domain, run, key);
        s->stats.prefix_hashes++;
        uint32_t other = prefix_find(s, key);
        if (other == NONE) {
            block *x = &s->blocks[b];
            memcpy(x->key, key, sizeof key);
            memcpy(x->parent, r->tail_key, sizeof key);
            memcpy(x->domain, r->domain, sizeof key);
            memcpy(s->block_tokens + (uint64_t)b * s->config.block_tokens, run,
                   s->config.block_tokens * sizeof *run);
            insert(s, b);
        } else if (!holds(s, other, r->tail_key, r->domain, run)) {
            r->unindexable = true;
            return;
        } /* else: a twin computed at the same time keeps the key; the chain goes on */
        memcpy(r->tail_key, key, sizeof key);
    }
}

static int32_t check_match(const bp_serving *s, const request *r) {
    uint32_t width = s->blocks_per_request, *kept = s->scratch, *anew = s->scratch + width;
    const int32_t *tokens = s->tokens + (uint64_t)slot_of(s, r) * s->config.max_model_tokens;
    request one = *r, two = *r;
    memcpy(kept, s->tables + (uint64_t)slot_of(s, r) * width, r->matched * sizeof *kept);
    two.matched = 0;
    two.tail_key[0] = two.tail_key[1] = 0;
    two.seen_inserts = s->inserts + 1;
    rematch(s, &one, tokens, kept);
    rematch(s, &two, tokens, anew);
    if (one.matched != two.matched || memcmp(kept, anew, one.matched * sizeof *kept) != 0 ||
        !same(one.tail_key, two.tail_key))
        return bp_serving_fail(BP_SERVING_INVARIANT,
                               "I8: request %llu keeps a match of %u blocks, a new one finds %u",
                               (unsigned long long)r->id, one.matched, two.matched);
    return BP_SERVING_OK;
}

int32_t prefix_check(const bp_serving *s) {
    for (uint32_t slot = s->waiting.head; slot != NONE; slot = s->requests[slot].next) {
        int32_t status =
            may_share(s, &s->requests[slot]) ? check_match(s, &s->requests[slot]) : BP_SERVING_OK;
        if (status)
            return status;
    }
    uint32_t indexed = 0, entries = 0;
    for (uint32_t b = 0; b < s->config.block_count; b++) {
        if (!s->blocks[b].indexed)
            continue;
        indexed++;
        if (prefix_find(s, s->blocks[b].key) != b)
            return bp_serving_fail(BP_SERVING_INVARIANT, "I6: block %u is not found by its key", b);
    }
    for (uint32_t i = 0; i <= s->index_mask; i++)
        entries += s->index[i] != NONE;
    if (indexed != entries)
        return bp_serving_fail(BP_SERVING_INVARIANT, "I6: %u blocks have keys, the index holds %u",
                               indexed, entries);
    return BP_SERVING_OK;
}
