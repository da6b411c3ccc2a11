/* The serving core's private state: one allocation, carved at creation.
 *
 * Invariants (tests cite them by number; bp_serving_check walks them):
 *  I1 every request slot is free, waiting or running, and the lists say the same
 *  I2 clean + cached + referenced + fenced = block_count
 *  I3 a block's references equal the running requests whose tables hold it
 *  I4 no two requests may write one block: only full, computed blocks are shared
 *  I5 a planned step holds at most max_batched_tokens tokens
 *  I6 a cached or referenced block with a key is found by that key
 *  I7 a free block (clean or cached) is on exactly one free list
 *  I8 what a waiting request keeps of its prefix match is what a new match finds
 */
#ifndef BEDPLATE_SERVING_STATE_H
#define BEDPLATE_SERVING_STATE_H

#include <stdbool.h>

#include "bedplate/serving.h"

#define NONE UINT32_MAX

enum block_state { BLOCK_CLEAN, BLOCK_CACHED, BLOCK_REFERENCED, BLOCK_FENCED };
enum request_state { REQUEST_FREE, REQUEST_WAITING, REQUEST_RUNNING };

typedef struct {
    uint64_t key[2];    /* prefix key, valid when indexed */
    uint64_t parent[2]; /* key of the block before, or the domain's root */
    uint64_t domain[2];
    uint64_t fence_step; /* FENCED: free once this step is done */
    uint32_t next, prev; /* free list or fence list */
    uint32_t references;
    uint32_t generation; /* counts reuses */
    uint8_t state;
    bool indexed;
} block;

typedef struct {
    uint32_t head, tail, count;
} list;

typedef struct {
    uint64_t id;
    uint64_t arrival; /* order of ADD */
    uint64_t domain[2];
    uint64_t tail_key[2]; /* key of the last indexed block of this request */
    /* Of a waiting request: its table's first `matched` entries are the blocks of its
     * prefix and tail_key is the last one's key, as of these counts of the index. */
    uint64_t seen_inserts, seen_removes;
    uint32_t matched;
    int32_t priority;
    uint32_t state, flags;
    uint32_t prompt_tokens, token_count, max_tokens; /* max_tokens: prompt + output */
    uint32_t computed;                               /* tokens whose KV is in the pool */
    uint32_t block_count, keyed_blocks;              /* keyed: leading blocks with a key */
    uint32_t cached_tokens, preemptions, passed_over;
    uint32_t next, prev;
    uint32_t scheduled; /* tokens in the step in flight */
    bool unindexable;   /* its chain met other content under a key */
    bool complete;      /* has its last token, or lost its row: waits for END */
} request;

typedef struct {
    uint32_t slot, first, tokens;
    uint32_t sample_first, sample_count;
    uint64_t id; /* the slot may have been reused */
} planned_row;

struct bp_serving {
    bp_serving_config config;
    uint32_t blocks_per_request;
    block *blocks;
    int32_t *block_tokens;      /* [block_count, block_tokens]: what an indexed block holds */
    list clean, cached, fenced; /* cached: head is evicted first */
    uint32_t referenced;
    uint32_t *index; /* open addressing, linear probing, backward-shift deletion */
    uint32_t index_mask;
    uint64_t inserts, removes; /* of the index, since create */
    uint32_t *scratch;         /* [2, blocks_per_request], for bp_serving_check */
    request *requests;
    int32_t *tokens;       /* [max_requests, max_model_tokens] */
    uint32_t *tables;      /* [max_requests, blocks_per_request] */
    list waiting, running; /* by (priority, arrival) */
    uint32_t free_slot;    /* chain of free request slots */
    uint32_t *slot_index;  /* request id -> slot, open addressing */
    uint32_t slot_mask;
    planned_row *plan; /* the step in flight */
    uint32_t plan_rows;
    bool in_flight;
    uint64_t step, arrivals, now_ns;
    bp_serving_stats stats;
};

int32_t bp_serving_fail(int32_t status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* pool.c */
void pool_init(bp_serving *s);
uint32_t pool_take(bp_serving *s);                  /* NONE when nothing is free */
void pool_share(bp_serving *s, uint32_t b);         /* one more reference */
void pool_release(bp_serving *s, uint32_t b);       /* one reference less */
void pool_pass_fence(bp_serving *s, uint64_t step); /* fenced blocks up to step are free */
uint32_t pool_free_count(const bp_serving *s);      /* clean + cached */
int32_t pool_check(const bp_serving *s);

/* prefix.c */
uint32_t prefix_find(const bp_serving *s, const uint64_t key[2]); /* block or NONE */
void prefix_remove(bp_serving *s, uint32_t b);
uint32_t prefix_match(bp_serving *s, request *r); /* blocks, in the request's table */
void prefix_extend(bp_serving *s, request *r);    /* index blocks that became full */
int32_t prefix_check(const bp_serving *s);

/* request.c */
int32_t request_add(bp_serving *s, const bp_serving_event *e);
int32_t request_end(bp_serving *s, uint64_t id);
request *request_find(bp_serving *s, uint64_t id);
void request_release_blocks(bp_serving *s, request *r);
void request_insert(bp_serving *s, list *l, request *r);
void request_remove(bp_serving *s, list *l, request *r);
int32_t request_check(const bp_serving *s);

static inline uint32_t slot_of(const bp_serving *s, const request *r) {
    return (uint32_t)(r - s->requests);
}
static inline int32_t *tokens_of(const bp_serving *s, const request *r) {
    return s->tokens + (uint64_t)slot_of(s, r) * s->config.max_model_tokens;
}
static inline uint32_t *table_of(const bp_serving *s, const request *r) {
    return s->tables + (uint64_t)slot_of(s, r) * s->blocks_per_request;
}
static inline uint32_t blocks_for(const bp_serving *s, uint32_t tokens) {
    return (tokens + s->config.block_tokens - 1) / s->config.block_tokens;
}

#endif
