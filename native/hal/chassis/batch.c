/* See batch.h. */
#include "batch.h"

#include "../adopt.h"
#include "command.h"

#include <stdio.h>
#include <stdlib.h>

#define MOST_COMMANDS (1u << 20)
#define MOST_FENCES   4096u
#define ALIGN(bytes)  (((bytes) + 15ull) & ~15ull)

/* What compiling answers, without a sentence, when the work's allocation is too small. */
#define NO_ROOM BP_LAUNCH_NO_ROOM

/* Cuts pieces off the work's allocation. */
typedef struct bp_arena {
    unsigned char *next, *end;
} bp_arena;

static uint64_t left(const bp_arena *arena) {
    return (uint64_t)(arena->end - arena->next);
}

/* Null when it does not fit. */
static void *cut(bp_arena *arena, uint64_t bytes) {
    void *piece = arena->next;
    bytes = ALIGN(bytes);
    if (bytes > left(arena))
        return NULL;
    arena->next += bytes;
    return piece;
}

static __attribute__((cold)) int32_t at_command(uint32_t index, int32_t status) {
    char why[BP_ERROR_BYTES];
    bp_error_copy(why, sizeof(why), NULL);
    return bp_fail(status, "command %u: %.440s", index, why);
}

static int32_t compile_launch(bp_device *device, const bp_launch_command *launch,
                              const bp_kernel_object *known, bp_arena *arena,
                              bp_launch_node *node) {
    bp_piece *pieces = NULL;
    uint32_t count = launch->argument_count;
    if (bp_batch_driver_own.pieces) {
        pieces = cut(arena, count * sizeof(bp_piece));
        if (!pieces && count <= BP_MOST_ARGUMENTS)
            return NO_ROOM;
    }
    /* Packed where the next piece is cut, which is then as long as the arguments are. */
    int32_t status =
        bp_launch_compile(device, launch, known, count, left(arena), arena->next, pieces, node);
    if (status)
        return status;
    if (!cut(arena, node->parameters_bytes))
        return NO_ROOM;
    return bp_batch_driver_own.launch ? bp_batch_driver_own.launch(device, node) : BP_OK;
}

static int32_t compile_copy(bp_device *device, const bp_copy_command *copy, bp_span_node *node) {
    int32_t status = bp_memory_resolve(device, &copy->destination, "destination", &node->to);
    if (status == BP_OK)
        status = bp_memory_resolve(device, &copy->source, "source", &node->from);
    if (status)
        return status;
    if (node->to.bytes != node->from.bytes)
        return bp_fail(BP_INVALID_ARGUMENT, "a copy of %llu bytes to %llu bytes",
                       (unsigned long long)node->from.bytes, (unsigned long long)node->to.bytes);
    if (bp_span_overlap(&node->to, &node->from))
        return bp_fail(BP_INVALID_ARGUMENT, "source and destination of a copy overlap");
    return BP_OK;
}

static int32_t compile_fill(bp_device *device, const bp_fill_command *fill, bp_span_node *node) {
    int32_t status = bp_memory_resolve(device, &fill->destination, "destination", &node->to);
    if (status)
        return status;
    uint32_t bytes = fill->pattern_bytes;
    if ((bytes != 1 && bytes != 2 && bytes != 4) || node->to.bytes % bytes ||
        bp_span_place(&node->to) % bytes)
        return bp_fail(
            BP_INVALID_ARGUMENT, "a fill of %llu bytes at offset %llu with a pattern of %u bytes",
            (unsigned long long)node->to.bytes, (unsigned long long)node->to.offset, bytes);
    node->pattern = fill->pattern;
    node->pattern_bytes = bytes;
    return BP_OK;
}

static int32_t compile_timestamp(bp_device *device, const bp_timestamp_command *command,
                                 bp_span_node *node) {
    if (!device->limits.timestamp)
        return bp_fail(BP_UNSUPPORTED, "this device writes no timestamps");
    int32_t status = bp_memory_resolve(device, &command->destination, "destination", &node->to);
    if (status)
        return status;
    if (node->to.bytes != 8 || bp_span_place(&node->to) % 8)
        return bp_fail(BP_INVALID_ARGUMENT,
                       "a timestamp into %llu bytes at offset %llu; it wants 8, aligned to 8",
                       (unsigned long long)node->to.bytes, (unsigned long long)node->to.offset);
    return BP_OK;
}

static int32_t compile_op(bp_device *device, const bp_op_command *command, bp_arena *arena,
                          bp_op_node *node) {
    if (!bp_batch_driver_own.op)
        return bp_fail(BP_UNSUPPORTED, "this backend has no ops");
    node->bound = cut(arena, bp_batch_driver_own.op_bytes);
    if (!node->bound)
        return NO_ROOM;
    return bp_batch_driver_own.op(device, command, node);
}

static int32_t compile_command(bp_device *device, const bp_command *given, bp_arena *arena,
                               bp_node *node) {
    bp_any_command own;
    int32_t status;
    const bp_any_command *command = bp_command_read(given, &own, &status);
    if (!command)
        return status;
    node->kind = command->prefix.kind;
    switch (node->kind) {
    case BP_COMMAND_COPY:
        return compile_copy(device, &command->copy, &node->span);
    case BP_COMMAND_FILL:
        return compile_fill(device, &command->fill, &node->span);
    case BP_COMMAND_LAUNCH:
        return compile_launch(device, &command->launch, NULL, arena, &node->launch);
    case BP_COMMAND_OP:
        return compile_op(device, &command->op, arena, &node->op);
    default:
        return compile_timestamp(device, &command->timestamp, &node->span);
    }
}

static int32_t compile_fences(bp_device *device, const bp_fence *fences, uint32_t count,
                              bp_point *points) {
    for (uint32_t i = 0; i < count; i++) {
        points[i].timeline = bp_object_find(fences[i].timeline, BP_KIND_TIMELINE, device);
        points[i].value = fences[i].value;
        if (!points[i].timeline)
            return BP_INVALID_ARGUMENT;
    }
    return BP_OK;
}

static int32_t check(const bp_batch *batch) {
    if (batch->flags)
        return bp_fail(BP_INVALID_ARGUMENT, "batch flags 0x%x are unknown", batch->flags);
    if (batch->command_count > MOST_COMMANDS || batch->wait_count > MOST_FENCES ||
        batch->signal_count > MOST_FENCES)
        return bp_fail(BP_INVALID_ARGUMENT,
                       "a batch of %u commands, %u waits, %u signals; at most %u and %u",
                       batch->command_count, batch->wait_count, batch->signal_count, MOST_COMMANDS,
                       MOST_FENCES);
    if ((batch->command_count && !batch->commands) || (batch->wait_count && !batch->wait) ||
        (batch->signal_count && !batch->signal))
        return bp_fail(BP_INVALID_ARGUMENT, "an array of the batch is null but has a count");
    return BP_OK;
}

/* Bytes of a work without what its commands bring. */
static uint64_t bare(const bp_batch *batch) {
    return ALIGN(sizeof(bp_work)) + ALIGN(batch->wait_count * sizeof(bp_point)) +
           ALIGN(batch->signal_count * sizeof(bp_point)) +
           ALIGN(batch->command_count * sizeof(bp_node));
}

/* And what they bring, at most; one that will be refused brings anything. */
static uint64_t brought(const bp_batch *batch) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < batch->command_count; i++) {
        bp_any_command own;
        int32_t status;
        const bp_any_command *command = bp_command_read(batch->commands[i], &own, &status);
        if (!command)
            continue;
        if (command->prefix.kind == BP_COMMAND_OP)
            bytes += ALIGN(bp_batch_driver_own.op_bytes);
        if (command->prefix.kind != BP_COMMAND_LAUNCH)
            continue;
        bytes += ALIGN(bp_launch_room(&command->launch));
        if (bp_batch_driver_own.pieces && command->launch.argument_count <= BP_MOST_ARGUMENTS)
            bytes += ALIGN(command->launch.argument_count * sizeof(bp_piece));
    }
    return bytes;
}

static int32_t fill(bp_device *device, const bp_batch *batch, bp_work *work) {
    unsigned char *whole = (unsigned char *)work;
    bp_arena arena = {whole + ALIGN(sizeof(*work)), whole + work->capacity};
    *work = (bp_work){.capacity = work->capacity,
                      .tag = batch->tag,
                      .wait_count = batch->wait_count,
                      .signal_count = batch->signal_count,
                      .node_count = batch->command_count};
    work->waits = cut(&arena, batch->wait_count * sizeof(bp_point));
    work->signals = cut(&arena, batch->signal_count * sizeof(bp_point));
    work->nodes = cut(&arena, batch->command_count * sizeof(bp_node));
    int32_t status = compile_fences(device, batch->wait, batch->wait_count, work->waits);
    if (status == BP_OK)
        status = compile_fences(device, batch->signal, batch->signal_count, work->signals);
    const bp_kernel_object *known = NULL;
    for (uint32_t i = 0; status == BP_OK && i < batch->command_count; i++) {
        bp_node *node = &work->nodes[i];
        const bp_launch_command *launch = bp_command_launch(batch->commands[i]);
        node->index = i;
        if (launch) {
            node->kind = BP_COMMAND_LAUNCH;
            status = compile_launch(device, launch, known, &arena, &node->launch);
            known = node->launch.kernel;
        } else {
            status = compile_command(device, batch->commands[i], &arena, node);
        }
        if (status < 0)
            at_command(i, status);
    }
    return status;
}

/* Compiles into a new allocation, as large as the commands want it. */
static __attribute__((noinline)) bp_work *compile_anew(bp_device *device, const bp_batch *batch,
                                                       int32_t *status) {
    uint64_t bytes = bare(batch) + brought(batch);
    bp_work *work = malloc(bytes);
    if (!work) {
        *status = bp_fail(BP_OUT_OF_MEMORY, "no host memory for a batch of %llu bytes",
                          (unsigned long long)bytes);
        return NULL;
    }
    work->capacity = bytes;
    *status = fill(device, batch, work);
    if (*status == NO_ROOM)
        *status = bp_fail(BP_INVALID_ARGUMENT, "an argument changed during submit");
    if (*status == BP_OK)
        return work;
    free(work);
    return NULL;
}

/* Most batches are no larger than one before them, and then nothing is measured. */
bp_work *bp_work_compile(bp_device *device, const bp_batch *given, bp_work **spare,
                         int32_t *status) {
    bp_batch batch;
    *status = BP_ADOPT(given, &batch, "batch");
    if (*status == BP_OK)
        *status = check(&batch);
    if (*status)
        return NULL;
    bp_work *work = *spare;
    if (!work || work->capacity < bare(&batch))
        return compile_anew(device, &batch, status);
    *status = fill(device, &batch, work);
    if (*status == NO_ROOM)
        return compile_anew(device, &batch, status);
    if (*status)
        return NULL;
    *spare = NULL;
    return work;
}

void bp_work_describe(const bp_work *work, const bp_node *node, int32_t status, const char *why,
                      char *text, uint64_t room) {
    const char *kind = "";
    bp_text name = {"", 0};
    if (node->kind == BP_COMMAND_LAUNCH) {
        kind = "launch ";
        name = node->launch.kernel->name;
    } else if (node->kind == BP_COMMAND_OP) {
        kind = "op ";
        name = (bp_text){node->op.name, strlen(node->op.name)};
    }
    char plain[32];
    snprintf(plain, sizeof(plain), "it returned status %d", status);
    snprintf(text, room, "batch %llu, command %u (%s%.*s): %s", (unsigned long long)work->tag,
             node->index, kind, (int)(name.length < 80 ? name.length : 80), name.data,
             why[0] ? why : plain);
}
