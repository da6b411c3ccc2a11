/*
 * Lies about work: a batch is rewritten, then given to the honest queue. A batch that is not well
 * formed goes on as it is, so that refusals stay honest.
 */
#include "lie.h"

#include <stdlib.h>
#include <string.h>

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
    if (forgery->lie != BP_LIE_WRONG_OP || !op->bindings || op->binding_count == 0)
        return;
    const bp_range *out = &op->bindings[op->binding_count - 1];
    /* A bf16 of 1.0 in the place of an element. */
    if (out->memory && out->length >= 2)
        spoil(forgery, out, 2 * bp_liar_place(out->length / 2), 0x3f80, 2);
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
        /* Time stands still at 0. */
        if (forgery->lie == BP_LIE_WRONG_TIMESTAMP) {
            spoil(forgery, &copy->timestamp.destination, 0, 0, 4);
            spoil(forgery, &copy->timestamp.destination, 4, 0, 4);
        }
    }
}

static void reverse(forgery *forgery) {
    for (uint32_t i = 0; i < forgery->count / 2; i++) {
        const bp_command *other = forgery->pointers[forgery->count - 1 - i];
        forgery->pointers[forgery->count - 1 - i] = forgery->pointers[i];
        forgery->pointers[i] = other;
    }
}

/* Lies in what surrounds the commands. */
static void forge_batch(uint64_t device, bp_lie lie, bp_batch *batch) {
    if (lie == BP_LIE_LOST_TAG)
        batch->tag = 0;
    if (lie == BP_LIE_EARLY_START)
        batch->wait_count = 0;
    if (lie == BP_LIE_EARLY_SIGNAL) {
        for (uint32_t i = 0; i < batch->signal_count; i++)
            bp_liar_honest->timeline->signal(device, batch->signal[i].timeline,
                                             batch->signal[i].value);
        batch->signal_count = 0;
    }
}

static int32_t submit_forged(uint64_t device, uint64_t queue, bp_lie lie, const bp_batch *given) {
    bp_batch batch = *given;
    forgery forgery = {.device = device, .lie = lie};
    uint32_t room = 3 * batch.command_count + 1;
    forgery.commands = calloc(room, sizeof(*forgery.commands));
    forgery.pointers = calloc(room, sizeof(*forgery.pointers));
    int32_t status = BP_OUT_OF_MEMORY;
    if (forgery.commands && forgery.pointers) {
        for (uint32_t i = 0; i < batch.command_count; i++)
            forge(&forgery, batch.commands[i]);
        if (lie == BP_LIE_REORDERED)
            reverse(&forgery);
        if (lie == BP_LIE_DROPPED_COMMAND && forgery.count > 1)
            forgery.count--;
        batch.commands = forgery.pointers;
        batch.command_count = forgery.count;
        forge_batch(device, lie, &batch);
        status = bp_liar_honest->queue->submit(device, queue, &batch);
    }
    free(forgery.commands);
    free(forgery.pointers);
    return status;
}

int32_t bp_liar_submit(uint64_t device, uint64_t queue, const bp_batch *given) {
    bp_lie lie = bp_liar_of(device);
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
