/*
 * What a plugin of the runtime exports: a policy for replays, or a rule for streams.
 *
 * `bedplate memory replay TRACE --policy ./mine.so` runs a policy over a trace. It gets memory from
 * the replay alone, a segment at a time, so what it holds and how often it asks is counted for it;
 * every address that it gives out is checked. `explore(program, rule="./mine.so")` lets a rule
 * choose which of a queue's ready batches goes next. Both are called from one thread.
 */
#ifndef BEDPLATE_POLICY_H
#define BEDPLATE_POLICY_H

#include <bedplate/streams.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The device of a replay. */
typedef struct {
    void *self;
    uint64_t (*create)(void *self, uint64_t bytes); /* its address, or 0: the device is full */
    void (*release)(void *self, uint64_t address);  /* a whole segment, nothing live in it */
} bp_runtime_segments;

typedef struct {
    void *(*open)(const bp_runtime_segments *); /* which outlive it; null: no host memory */
    /* An address in a segment, a multiple of 256, or 0: it does not fit. */
    uint64_t (*allocate)(void *policy, uint64_t bytes, uint32_t stream);
    void (*free)(void *policy, uint64_t address);
    void (*close)(void *policy);
} bp_runtime_policy;

/* What the library of a policy exports. */
__attribute__((visibility("default"))) const bp_runtime_policy *bp_runtime_policy_1(void);

/* What the library of a rule exports, see bp_runtime_rule. */
__attribute__((visibility("default"))) uint32_t bp_runtime_rule_1(void *, const bp_runtime_ready *,
                                                                  uint32_t, uint32_t);

#ifdef __cplusplus
}
#endif

#endif
