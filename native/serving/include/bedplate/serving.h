/* Serving core: the KV block pool with prefix sharing, and the batch scheduler.
 *
 * The state is a pure function of the events given to it: no clock, no thread,
 * no random source, no I/O, and no allocation after bp_serving_create. The same
 * library drives the live engine and a simulation, so a plan can be replayed.
 *
 * One step: bp_serving_apply(events) then bp_serving_plan(out), the device runs
 * the plan, and the next apply carries BP_SERVING_STEP_DONE with its tokens.
 * A handle belongs to one thread at a time; the functions hold no lock.
 * Functions return 0 or a negative status; bp_serving_last_error() then holds
 * one sentence for the calling thread.
 */
#ifndef BEDPLATE_SERVING_H
#define BEDPLATE_SERVING_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BP_SERVING_API __attribute__((visibility("default")))

#define BP_SERVING_OK                0
#define BP_SERVING_INVALID_ARGUMENT  (-1)
#define BP_SERVING_OUT_OF_MEMORY     (-2)
#define BP_SERVING_UNKNOWN_REQUEST   (-3)
#define BP_SERVING_DUPLICATE_REQUEST (-4)
#define BP_SERVING_QUEUE_FULL        (-5)
#define BP_SERVING_TOO_LONG          (-6)
#define BP_SERVING_BUSY              (-7)
#define BP_SERVING_UNKNOWN_STEP      (-8)
#define BP_SERVING_INVARIANT         (-9)

/* Kinds of event. */
#define BP_SERVING_ADD       1u /* a request arrives */
#define BP_SERVING_END       2u /* finished or aborted: its blocks return */
#define BP_SERVING_STEP_DONE 3u /* the planned step ran; tokens[] in sample order */
#define BP_SERVING_STEP_LOST 4u /* the planned step failed; its rows run again */

/* Flags of BP_SERVING_ADD. */
#define BP_SERVING_SCORE 1u /* sample every prompt row (all logits wanted) */

typedef struct bp_serving bp_serving;

typedef struct {
    uint32_t struct_size;        /* bytes, of this struct */
    uint32_t block_count;        /* blocks in the pool */
    uint32_t block_tokens;       /* tokens a block holds, 1 to 64 */
    uint32_t max_requests;       /* known at once, waiting ones included */
    uint32_t max_running;        /* requests holding blocks at once */
    uint32_t max_batched_tokens; /* token budget of one step */
    uint32_t max_model_tokens;   /* longest request, prompt and output */
    uint32_t max_sample_rows;    /* logits rows one step may ask for */
    uint32_t prefix_sharing;     /* 0 or 1 */
    uint32_t max_preemptions;    /* ageing bound: beyond it, not a preferred victim */
    uint64_t hash_key[2];        /* secret of this process for prefix keys */
} bp_serving_config;

typedef struct {
    uint32_t kind;
    int32_t priority;        /* ADD: lower goes first */
    uint64_t request;        /* ADD, END: the caller's id, unique among live ones */
    uint64_t step;           /* STEP_*: the plan's step */
    const int32_t *tokens;   /* ADD: the prompt; STEP_DONE: one a sample row, -1 none */
    uint32_t token_count;    /* entries of tokens */
    uint32_t max_new_tokens; /* ADD */
    uint32_t flags;          /* ADD */
    uint32_t reserved;
    uint64_t domain[2]; /* ADD: prefixes are shared only inside one domain */
} bp_serving_event;

/* Arrays are the caller's. `rows` are requests, `tokens` are batch positions.
 * Capacities: rows max_running, tokens max_batched_tokens, samples
 * max_sample_rows, preempted max_running, query_start rows + 1, block_table
 * rows x table_stride with table_stride >= ceil(max_model_tokens/block_tokens).
 */
typedef struct {
    uint32_t struct_size;
    uint32_t table_stride;
    uint64_t *row_request;    /* [rows] */
    uint32_t *row_first;      /* [rows] position of the row's first token */
    uint32_t *row_tokens;     /* [rows] tokens scheduled */
    uint32_t *row_cached;     /* [rows] prompt tokens found in the pool at admission */
    int32_t *query_start;     /* [rows + 1] */
    int32_t *context_length;  /* [rows] tokens after this step */
    int32_t *block_table;     /* [rows, table_stride]; unused entries are -1 */
    int32_t *tokens;          /* [tokens] ids */
    int32_t *positions;       /* [tokens] */
    int32_t *kv_slots;        /* [tokens] block * block_tokens + offset */
    int32_t *sample_token;    /* [samples] index into tokens */
    uint32_t *sample_row;     /* [samples] index into rows */
    uint64_t *preempted;      /* [preempted] requests that lost their blocks */
    uint64_t step;            /* out: number of this step, from 1 */
    uint32_t row_count;       /* out */
    uint32_t token_count;     /* out; 0: nothing to run */
    uint32_t sample_count;    /* out */
    uint32_t preempted_count; /* out */
} bp_serving_plan_out;

typedef struct {
    uint32_t struct_size;
    uint32_t waiting, running;              /* requests */
    uint32_t blocks_clean, blocks_cached;   /* free ones: never indexed, reusable */
    uint32_t blocks_referenced;             /* held by running requests */
    uint32_t blocks_fenced;                 /* freed while a step still reads them */
    uint64_t steps, preemptions, evictions; /* since create */
    uint64_t prefix_queried, prefix_hit;    /* tokens */
    uint64_t added, ended;                  /* requests */
    uint64_t prefix_hashes;                 /* keys of blocks computed */
} bp_serving_stats;

BP_SERVING_API int32_t bp_serving_create(const bp_serving_config *config, bp_serving **out);
BP_SERVING_API void bp_serving_destroy(bp_serving *state);

/* Applies events in order; stops at the first bad one, whose index is written to
 * *applied (the ones before it hold). now_ns is recorded, never read as a clock. */
BP_SERVING_API int32_t bp_serving_apply(bp_serving *state, const bp_serving_event *events,
                                        uint32_t count, uint64_t now_ns, uint32_t *applied);

/* Plans the next step. BUSY while a step is in flight. */
BP_SERVING_API int32_t bp_serving_plan(bp_serving *state, bp_serving_plan_out *out);

BP_SERVING_API int32_t bp_serving_get_stats(const bp_serving *state, bp_serving_stats *out);

/* Walks the whole state; INVARIANT names the first rule broken. O(state). */
BP_SERVING_API int32_t bp_serving_check(const bp_serving *state);

/* SipHash-2-4 with 128-bit output. Source: Aumasson and Bernstein, "SipHash: a
 * fast short-input PRF" (2012), and its 128-bit extension in the reference code. */
BP_SERVING_API void bp_serving_siphash(const uint64_t key[2], const void *data, uint64_t bytes,
                                       uint64_t out[2]);

BP_SERVING_API const char *bp_serving_last_error(void);

#ifdef __cplusplus
}
#endif
#endif
