/*
 * The liar: the cpu backend behind functions that lie, one named lie per device.
 *
 * Every lie is told through the tables alone; the cpu code below is the honest one. The property
 * `liar.lie` of a device names its lie. BEDPLATE_HAL_LIAR_SEED (a number, default 1) chooses where
 * a lie that needs a place puts it, so a run can be repeated.
 */
#ifndef BEDPLATE_HAL_LIAR_LIE_H
#define BEDPLATE_HAL_LIAR_LIE_H

#include "bedplate/hal.h"

typedef enum bp_lie {
    BP_LIE_NONE,
    /* core */
    BP_LIE_TEXT_OVERFLOW,
    BP_LIE_NO_ERROR_TEXT,
    BP_LIE_FALSE_CLAIM,
    BP_LIE_HIDDEN_TIMESTAMP,
    BP_LIE_SHARED_TEXT,
    BP_LIE_CHANGING_FACTS,
    /* mem */
    BP_LIE_MISALIGNED,
    BP_LIE_STALE_ACCEPTED,
    BP_LIE_SHORT_STRUCT,
    BP_LIE_WRONG_ADDRESS,
    BP_LIE_PIN_COPY,
    BP_LIE_KEPT_MEMORY,
    BP_LIE_EARLY_FREE,
    /* queue */
    BP_LIE_WRONG_COPY,
    BP_LIE_SHORT_FILL,
    BP_LIE_OVERRUN,
    BP_LIE_REORDERED,
    BP_LIE_DROPPED_COMMAND,
    BP_LIE_EARLY_START,
    BP_LIE_EARLY_SIGNAL,
    BP_LIE_RESERVED_IGNORED,
    BP_LIE_UNKNOWN_TAIL_IGNORED,
    BP_LIE_RANGE_UNCHECKED,
    BP_LIE_SKIPPED_BLOCK,
    BP_LIE_REPEATED_BLOCK,
    BP_LIE_LOST_TAG,
    BP_LIE_WRONG_TIMESTAMP,
    BP_LIE_WRONG_OP,
    BP_LIE_SWAPPED_PAIR,
    BP_LIE_SPOILED_INPUT,
    BP_LIE_EARLY_CLOCK,
    BP_LIE_VERSION_IGNORED,
    BP_LIE_WIDE_SIGNAL,
    BP_LIE_HASTY_EMPTY,
    BP_LIE_DEAF_SECOND_WAIT,
    BP_LIE_PARTIAL_BATCH,
    BP_LIE_REFUSED_SIGNAL,
    BP_LIE_STALE_QUEUE,
    /* timeline */
    BP_LIE_STUCK_VALUE,
    BP_LIE_BACKWARDS,
    BP_LIE_DEADLINE_IS_SUCCESS,
    BP_LIE_AMNESIA,
    BP_LIE_SILENT_FAULT,
    BP_LIE_LOST_DEVICE,
    BP_LIE_LOST_WAKE,
    BP_LIE_EARLY_DEADLINE,
    BP_LIE_COUNT,
} bp_lie;

/* The honest backend. */
extern const bp_api *bp_liar_honest;

/* The lie of an open device, NONE for a handle that is none; remembered for this thread. */
bp_lie bp_liar_of(uint64_t device);

/* A number below `most` from the seed; 0 when most is 0. */
uint64_t bp_liar_place(uint64_t most);

extern const bp_mem bp_liar_memory;
extern const bp_timeline bp_liar_timeline;
int32_t bp_liar_submit(uint64_t device, uint64_t queue, const bp_batch *batch);
int32_t bp_liar_flush(uint64_t device, uint64_t queue);
int32_t bp_liar_destroy_queue(uint64_t device, uint64_t queue);

/* After a call of this thread failed: what any thread then reads under BP_LIE_SHARED_TEXT. */
void bp_liar_share_text(void);

#endif
