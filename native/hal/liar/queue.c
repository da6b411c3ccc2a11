/*
 * Lies about work: a batch is rewritten, then given to the honest queue. A batch that is not well
 * formed goes on as it is, so that refusals stay honest.
 */
#include "lie.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* One rewritten command. */
typedef union forged {
    bp_command prefix;
    bp_copy_command copy;
    bp_fill_command fill;
    bp_launch_command launch;
    bp_op_command op;
    bp_timestamp_command timestamp;
} forged;

typedef struct forgery {
    uint64_t device;
    bp_lie lie;
    bp_fence *signals;
    /* Up to three commands for each given one. */
    forged *commands;
    const bp_command **pointers;
    uint32_t count;
} forgery;

static uint32_t size_of(uint32_t kind) {
    switch (kind) {
    case BP_COMMAND_COPY:
        return sizeof(bp_copy_command);
    case BP_COMMAND_FILL:
        return sizeof(bp_fill_command);
    case BP_COMMAND_LAUNCH:
        return sizeof(bp_launch_command);
    case BP_COMMAND_OP:
        return sizeof(bp_op_command);
    case BP_COMMAND_TIMESTAMP:
        return sizeof(bp_timestamp_command);
    default:
        return 0;
    }
}

static int well_formed(const bp_batch *batch) {
    if (batch->head.struct_size != sizeof(*batch) || batch->command_count > 4096 ||
        (batch->command_count && !batch->commands) || (batch->signal_count && !batch->signal))
        return 0;
    for (uint32_t i = 0; i < batch->command_count; i++) {
        const bp_command *command = batch->commands[i];
        if (!command || command->head.struct_size != size_of(command->kind))
            return 0;
    }
    return 1;
}

static uint64_t memory_bytes(uint64_t device, uint64_t memory) {
    bp_memory_info info = {.head = {1, sizeof(info)}};
    return bp_liar_honest->mem->describe(device, memory, &info) == BP_OK ? info.bytes : 0;
}

static forged *append(forgery *forgery, const void *command, uint32_t size) {
    forged *copy = &forgery->commands[forgery->count];
    memcpy(copy, command, size);
    forgery->pointers[forgery->count++] = &copy->prefix;
    return copy;
}

/* Puts `bytes` of a value at a place behind the start of a range. */
static void spoil(forgery *forgery, const bp_range *range, uint64_t at, uint32_t value,
                  uint32_t bytes) {
    bp_fill_command fill = {.head = {1, sizeof(fill)},
                            .kind = BP_COMMAND_FILL,
                            .destination = {range->memory, range->offset + at, bytes},
                            .pattern = value,
                            .pattern_bytes = bytes};
    append(forgery, &fill, sizeof(fill));
}

static void lie_about_fill(forgery *forgery, bp_fill_command *fill) {
    bp_range *range = &fill->destination;
    uint64_t whole = memory_bytes(forgery->device, range->memory);
    int inside = range->offset <= whole && range->length <= whole - range->offset;
    if (forgery->lie == BP_LIE_SHORT_FILL && inside && range->length >= fill->pattern_bytes)
        range->length -= fill->pattern_bytes;
    if (forgery->lie == BP_LIE_OVERRUN && inside &&
        whole - range->offset - range->length >= fill->pattern_bytes)
        range->length += fill->pattern_bytes;
    if (forgery->lie == BP_LIE_RANGE_UNCHECKED && whole && !inside)
        *range = (bp_range){range->memory, 0, 0};
}

static void lie_about_launch(forgery *forgery, bp_launch_command *launch) {
    if (forgery->lie == BP_LIE_SKIPPED_BLOCK && launch->grid[0] > 1)
        launch->grid[0]--;
    if (forgery->lie == BP_LIE_REPEATED_BLOCK)
        append(forgery, launch, sizeof(*launch));
}

static void lie_about_op(forgery *forgery, const bp_op_command *op) {
    if (!op->bindings || op->binding_count == 0)
        return;
    /* The first binding is an input of most ops. */
    if (forgery->lie == BP_LIE_SPOILED_INPUT && op->bindings[0].length)
        spoil(forgery, &op->bindings[0], 0, 0x77, 1);
    if (forgery->lie != BP_LIE_WRONG_OP)
        return;
    const bp_range *out = &op->bindings[op->binding_count - 1];
    /* A bf16 of 1.0 in the place of an element. */
    if (out->memory && out->length >= 2)
        spoil(forgery, out, 2 * bp_liar_place(out->length / 2), 0x3f80, 2);
}

static void lie_about_time(forgery *forgery, const bp_timestamp_command *timestamp) {
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t told = (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
    /* Time stands still at 0, or is what it was when the batch came. */
    if (forgery->lie == BP_LIE_WRONG_TIMESTAMP)
        told = 0;
    else if (forgery->lie != BP_LIE_EARLY_CLOCK)
        return;
    spoil(forgery, &timestamp->destination, 0, (uint32_t)told, 4);
    spoil(forgery, &timestamp->destination, 4, (uint32_t)(told >> 32), 4);
}

static void forge(forgery *forgery, const bp_command *given) {
    forged *copy = append(forgery, given, size_of(given->kind));
    switch (given->kind) {
    case BP_COMMAND_COPY:
        if (forgery->lie == BP_LIE_WRONG_COPY && copy->copy.source.length)
            spoil(forgery, &copy->copy.destination, bp_liar_place(copy->copy.source.length), 0xfd,
                  1);
        break;
    case BP_COMMAND_FILL:
        lie_about_fill(forgery, &copy->fill);
        break;
    case BP_COMMAND_LAUNCH:
        lie_about_launch(forgery, &copy->launch);
        break;
    case BP_COMMAND_OP:
        lie_about_op(forgery, &copy->op);
        break;
    default:
        lie_about_time(forgery, &copy->timestamp);
    }
}

static void reverse(forgery *forgery) {
    for (uint32_t i = 0; i < forgery->count / 2; i++) {
        const bp_command *other = forgery->pointers[forgery->count - 1 - i];
        forgery->pointers[forgery->count - 1 - i] = forgery->pointers[i];
        forgery->pointers[i] = other;
    }
}

/* Exchanges two neighbours; short batches stay as they are. */
static void swap_pair(forgery *forgery) {
    if (forgery->count < 8)
        return;
    uint64_t at = bp_liar_place(forgery->count - 1);
    const bp_command *first = forgery->pointers[at];
    forgery->pointers[at] = forgery->pointers[at + 1];
    forgery->pointers[at + 1] = first;
}

/* Lies in what surrounds the commands. */
static void forge_batch(uint64_t device, bp_lie lie, bp_batch *batch, bp_fence *signals) {
    int hasty = lie == BP_LIE_HASTY_EMPTY && !batch->command_count && !batch->wait_count;
    if (lie == BP_LIE_DEAF_SECOND_WAIT && batch->wait_count > 1)
        batch->wait_count = 1;
    if (lie == BP_LIE_WIDE_SIGNAL && signals) {
        for (uint32_t i = 0; i < batch->signal_count; i++)
            signals[i] = (bp_fence){batch->signal[i].timeline, (uint32_t)batch->signal[i].value};
        batch->signal = signals;
    }
    if (lie == BP_LIE_LOST_TAG)
        batch->tag = 0;
    if (lie == BP_LIE_EARLY_START)
        batch->wait_count = 0;
    if (lie == BP_LIE_EARLY_SIGNAL || hasty) {
        for (uint32_t i = 0; i < batch->signal_count; i++)
            bp_liar_honest->timeline->signal(device, batch->signal[i].timeline,
                                             batch->signal[i].value);
        batch->signal_count = 0;
    }
}

/* A refused batch has an effect after all: its first command, or its first signal. */
static void lie_about_refusal(uint64_t device, uint64_t queue, bp_lie lie, const bp_batch *batch) {
    if (lie == BP_LIE_PARTIAL_BATCH && batch->command_count > 1) {
        bp_batch part = {.head = {1, sizeof(part)}, .commands = batch->commands};
        part.command_count = 1;
        bp_liar_honest->queue->submit(device, queue, &part);
    }
    if (lie == BP_LIE_REFUSED_SIGNAL && batch->signal_count)
        bp_liar_honest->timeline->signal(device, batch->signal[0].timeline, batch->signal[0].value);
}

static int32_t submit_forged(uint64_t device, uint64_t queue, bp_lie lie, const bp_batch *given) {
    bp_batch batch = *given;
    forgery forgery = {.device = device, .lie = lie};
    uint32_t room = 3 * batch.command_count + 1;
    forgery.commands = calloc(room, sizeof(*forgery.commands));
    forgery.pointers = calloc(room, sizeof(*forgery.pointers));
    forgery.signals = calloc(batch.signal_count + 1, sizeof(*forgery.signals));
    int32_t status = BP_OUT_OF_MEMORY;
    if (forgery.commands && forgery.pointers && forgery.signals) {
        for (uint32_t i = 0; i < batch.command_count; i++)
            forge(&forgery, batch.commands[i]);
        if (lie == BP_LIE_REORDERED)
            reverse(&forgery);
        if (lie == BP_LIE_SWAPPED_PAIR)
            swap_pair(&forgery);
        if (lie == BP_LIE_DROPPED_COMMAND && forgery.count > 1)
            forgery.count--;
        batch.commands = forgery.pointers;
        batch.command_count = forgery.count;
        forge_batch(device, lie, &batch, forgery.signals);
        status = bp_liar_honest->queue->submit(device, queue, &batch);
        if (status == BP_INVALID_ARGUMENT)
            lie_about_refusal(device, queue, lie, &batch);
    }
    free(forgery.signals);
    free(forgery.commands);
    free(forgery.pointers);
    return status;
}

int32_t bp_liar_submit(uint64_t device, uint64_t queue, const bp_batch *given) {
    bp_lie lie = bp_liar_of(device);
    if (given && lie == BP_LIE_VERSION_IGNORED && given->head.struct_size == sizeof(*given)) {
        bp_batch batch = *given;
        batch.head.struct_version = 1;
        return bp_liar_honest->queue->submit(device, queue, &batch);
    }
    if (given && given->head.struct_size >= sizeof(*given) &&
        (lie == BP_LIE_RESERVED_IGNORED || lie == BP_LIE_UNKNOWN_TAIL_IGNORED)) {
        bp_batch batch = *given;
        if (lie == BP_LIE_RESERVED_IGNORED)
            memset(batch.reserved, 0, sizeof(batch.reserved));
        if (lie == BP_LIE_UNKNOWN_TAIL_IGNORED || given->head.struct_size == sizeof(batch)) {
            batch.head.struct_size = sizeof(batch);
            return bp_liar_honest->queue->submit(device, queue, &batch);
        }
    }
    if (lie == BP_LIE_NONE || !given || !well_formed(given))
        return bp_liar_honest->queue->submit(device, queue, given);
    return submit_forged(device, queue, lie, given);
}

int32_t bp_liar_flush(uint64_t device, uint64_t queue) {
    bp_lie lie = bp_liar_of(device);
    int32_t status = bp_liar_honest->queue->flush(device, queue);
    if (status != BP_OK && lie == BP_LIE_SHARED_TEXT)
        bp_liar_share_text();
    return status;
}

int32_t bp_liar_destroy_queue(uint64_t device, uint64_t queue) {
    /* Says yes and keeps it. */
    if (bp_liar_of(device) == BP_LIE_STALE_QUEUE &&
        bp_liar_honest->queue->flush(device, queue) == BP_OK)
        return BP_OK;
    return bp_liar_honest->queue->destroy(device, queue);
}
