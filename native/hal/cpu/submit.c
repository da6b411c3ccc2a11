/*
 * From a batch to work: everything is checked before anything runs, so a refused batch has no
 * effect. Handles become pointers here; execute.c looks nothing up.
 *
 * Two passes over the commands: the first checks heads and counts bytes, the second fills one
 * allocation. A command whose struct has our own size is read in place; any other by the size rule.
 */
#include "../adopt.h"
#include "memory.h"
#include "queue.h"

#include <stdio.h>
#include <stdlib.h>

#define MOST_COMMANDS  (1u << 20)
#define MOST_FENCES    4096u
#define MOST_ARGUMENTS 512u
#define ALIGN(bytes)   (((bytes) + 15ull) & ~15ull)

typedef union bp_any_command {
    bp_command prefix;
    bp_copy_command copy;
    bp_fill_command fill;
    bp_launch_command launch;
    bp_op_command op;
    bp_timestamp_command timestamp;
} bp_any_command;

/* Cuts pieces off the work's allocation; the sizes were counted. */
typedef struct bp_arena {
    unsigned char *next;
} bp_arena;

static void *cut(bp_arena *arena, uint64_t bytes) {
    void *piece = arena->next;
    arena->next += ALIGN(bytes);
    return piece;
}

static int32_t at_command(uint32_t index, int32_t status) {
    char why[BP_ERROR_BYTES];
    bp_error_copy(why, sizeof(why), NULL);
    return bp_fail(status, "command %u: %.440s", index, why);
}

static const struct {
    uint32_t size, reserved;
    const char *name;
} KINDS[] = {
    [BP_COMMAND_COPY] = {sizeof(bp_copy_command), offsetof(bp_copy_command, reserved), "copy"},
    [BP_COMMAND_FILL] = {sizeof(bp_fill_command), offsetof(bp_fill_command, reserved), "fill"},
    [BP_COMMAND_LAUNCH] = {sizeof(bp_launch_command), offsetof(bp_launch_command, reserved),
                           "launch"},
    [BP_COMMAND_OP] = {sizeof(bp_op_command), offsetof(bp_op_command, reserved), "op"},
    [BP_COMMAND_TIMESTAMP] = {sizeof(bp_timestamp_command),
                              offsetof(bp_timestamp_command, reserved), "timestamp"},
};

/* The command by the size rule: itself when it has our size, else a copy in `own`. */
static const bp_any_command *read_command(const bp_command *given, bp_any_command *own,
                                          int32_t *status) {
    *status = BP_INVALID_ARGUMENT;
    if (!given) {
        bp_fail(*status, "it is null");
        return NULL;
    }
    if (given->head.struct_size < sizeof(*given) || given->kind == 0 ||
        given->kind >= sizeof(KINDS) / sizeof(KINDS[0])) {
        *status = given->head.struct_size < sizeof(*given) ? BP_INVALID_ARGUMENT : BP_UNSUPPORTED;
        bp_fail(*status, "struct_size %u and kind %u are not of a known command",
                given->head.struct_size, given->kind);
        return NULL;
    }
    uint32_t size = KINDS[given->kind].size, reserved = KINDS[given->kind].reserved;
    const bp_any_command *command = (const bp_any_command *)(const void *)given;
    const uint64_t *words =
        (const uint64_t *)(const void *)((const unsigned char *)given + reserved);
    if (given->head.struct_size != size || given->head.struct_version != 1 ||
        (words[0] | words[1] | words[2] | words[3])) {
        *status = bp_adopt(given, own, size, reserved, KINDS[given->kind].name);
        command = own;
        if (*status)
            return NULL;
    }
    if (given->flags) {
        *status = bp_fail(BP_INVALID_ARGUMENT, "flags 0x%x are unknown", given->flags);
        return NULL;
    }
    *status = BP_OK;
    return command;
}

/* Bytes of one argument's alignment: its size as a power of two, up to 8. */
static uint32_t alignment_of(uint32_t bytes) {
    return bytes >= 8 ? 8 : bytes >= 4 ? 4 : bytes >= 2 ? 2 : 1;
}

/* Packed size of a launch's arguments; a status with a sentence when it is out of bounds. */
static int32_t measure_arguments(const bp_launch_command *launch, uint64_t *bytes) {
    uint64_t at = 0;
    if (launch->argument_count > MOST_ARGUMENTS || (launch->argument_count && !launch->arguments))
        return bp_fail(BP_INVALID_ARGUMENT, "%u arguments; up to %u are known",
                       launch->argument_count, MOST_ARGUMENTS);
    for (uint32_t i = 0; i < launch->argument_count; i++) {
        const bp_argument *argument = &launch->arguments[i];
        uint32_t size = argument->kind == BP_ARGUMENT_RANGE ? 8 : argument->bytes;
        if (argument->kind != BP_ARGUMENT_RANGE &&
            (argument->kind != BP_ARGUMENT_BYTES || !argument->data || size == 0))
            return bp_fail(BP_INVALID_ARGUMENT, "argument %u has kind %u and %u bytes at %p", i,
                           argument->kind, size, argument->data);
        uint32_t alignment = alignment_of(size);
        at = (at + alignment - 1) / alignment * alignment + size;
        if (at > BP_MAX_LAUNCH_PARAMETER_BYTES)
            return bp_fail(BP_INVALID_ARGUMENT, "arguments of more than %u bytes",
                           BP_MAX_LAUNCH_PARAMETER_BYTES);
    }
    *bytes = at;
    return BP_OK;
}

static int32_t measure_command(const bp_any_command *command, uint64_t *bytes) {
    uint64_t extra = 0;
    if (command->prefix.kind == BP_COMMAND_LAUNCH) {
        int32_t status = measure_arguments(&command->launch, &extra);
        if (status)
            return status;
    } else if (command->prefix.kind == BP_COMMAND_OP) {
        extra = BP_MAX_OP_TENSORS * sizeof(unsigned char *);
    }
    *bytes += ALIGN(extra);
    return BP_OK;
}

static int32_t compile_arguments(bp_device *device, const bp_launch_command *launch,
                                 unsigned char *parameters) {
    uint64_t at = 0;
    for (uint32_t i = 0; i < launch->argument_count; i++) {
        const bp_argument *argument = &launch->arguments[i];
        if (argument->kind == BP_ARGUMENT_BYTES) {
            uint32_t alignment = alignment_of(argument->bytes);
            at = (at + alignment - 1) / alignment * alignment;
            memcpy(parameters + at, argument->data, argument->bytes);
            at += argument->bytes;
            continue;
        }
        uint64_t address = 0;
        if (argument->range.memory) {
            unsigned char *data = bp_memory_resolve(device, &argument->range, "an argument");
            if (!data)
                return BP_INVALID_ARGUMENT;
            address = (uint64_t)(uintptr_t)data;
        }
        at = (at + 7) / 8 * 8;
        memcpy(parameters + at, &address, sizeof(address));
        at += sizeof(address);
    }
    return BP_OK;
}

/* Product of three counts into *product; a sentence when one is 0 or the product passes `most`. */
static int32_t volume(const uint32_t counts[3], uint64_t most, const char *what,
                      uint64_t *product) {
    uint64_t plane = (uint64_t)counts[0] * counts[1];
    if (!counts[0] || !counts[1] || !counts[2] || plane > most || counts[2] > most / plane)
        return bp_fail(BP_INVALID_ARGUMENT,
                       "a %s of %u x %u x %u; each is at least 1, all at most %llu", what,
                       counts[0], counts[1], counts[2], (unsigned long long)most);
    *product = plane * counts[2];
    return BP_OK;
}

static int32_t compile_launch(bp_device *device, const bp_launch_command *launch, bp_arena *arena,
                              bp_launch_node *node) {
    const bp_kernel_object *kernel = bp_object_find(launch->kernel, BP_KIND_KERNEL, device);
    uint64_t threads = 0, bytes = 0;
    if (!kernel)
        return BP_INVALID_ARGUMENT;
    int32_t status = volume(launch->grid, 1ull << 48, "grid", &node->blocks);
    if (status == BP_OK)
        status = volume(launch->block, BP_MAX_THREADS_PER_BLOCK, "block", &threads);
    if (status)
        return status;
    if (launch->cluster[0] | launch->cluster[1] | launch->cluster[2])
        return bp_fail(BP_UNSUPPORTED, "this backend has no clusters");
    if (launch->dynamic_shared_bytes > BP_MAX_SHARED_BYTES)
        return bp_fail(BP_INVALID_ARGUMENT, "%u bytes of dynamic shared memory; at most %u",
                       launch->dynamic_shared_bytes, BP_MAX_SHARED_BYTES);
    node->entry = kernel->entry;
    node->name = kernel->name;
    memcpy(node->grid, launch->grid, sizeof(node->grid));
    memcpy(node->block, launch->block, sizeof(node->block));
    node->shared_bytes = launch->dynamic_shared_bytes;
    status = measure_arguments(launch, &bytes);
    if (status)
        return status;
    unsigned char *parameters = cut(arena, bytes);
    /* Padding between arguments is defined. */
    memset(parameters, 0, bytes);
    node->parameters = parameters;
    node->parameters_bytes = (uint32_t)bytes;
    return compile_arguments(device, launch, parameters);
}

static int32_t compile_copy(bp_device *device, const bp_copy_command *copy, bp_span_node *node) {
    node->to = bp_memory_resolve(device, &copy->destination, "destination");
    node->from = node->to ? bp_memory_resolve(device, &copy->source, "source") : NULL;
    if (!node->from)
        return BP_INVALID_ARGUMENT;
    if (copy->destination.length != copy->source.length)
        return bp_fail(BP_INVALID_ARGUMENT, "a copy of %llu bytes to %llu bytes",
                       (unsigned long long)copy->source.length,
                       (unsigned long long)copy->destination.length);
    node->bytes = copy->source.length;
    if (node->to < node->from + node->bytes && node->from < node->to + node->bytes)
        return bp_fail(BP_INVALID_ARGUMENT, "source and destination of a copy overlap");
    return BP_OK;
}

static int32_t compile_fill(bp_device *device, const bp_fill_command *fill, bp_span_node *node) {
    node->to = bp_memory_resolve(device, &fill->destination, "destination");
    if (!node->to)
        return BP_INVALID_ARGUMENT;
    uint32_t bytes = fill->pattern_bytes;
    if ((bytes != 1 && bytes != 2 && bytes != 4) || fill->destination.length % bytes ||
        (uintptr_t)node->to % bytes)
        return bp_fail(BP_INVALID_ARGUMENT,
                       "a fill of %llu bytes at offset %llu with a pattern of %u bytes",
                       (unsigned long long)fill->destination.length,
                       (unsigned long long)fill->destination.offset, bytes);
    node->bytes = fill->destination.length;
    node->pattern = fill->pattern;
    node->pattern_bytes = bytes;
    return BP_OK;
}

static int32_t compile_timestamp(bp_device *device, const bp_timestamp_command *command,
                                 bp_span_node *node) {
    node->to = bp_memory_resolve(device, &command->destination, "destination");
    if (!node->to)
        return BP_INVALID_ARGUMENT;
    if (command->destination.length != 8 || (uintptr_t)node->to % 8)
        return bp_fail(BP_INVALID_ARGUMENT,
                       "a timestamp into %llu bytes at offset %llu; it wants 8, aligned to 8",
                       (unsigned long long)command->destination.length,
                       (unsigned long long)command->destination.offset);
    node->bytes = 8;
    return BP_OK;
}

static int32_t compile_op(bp_device *device, const bp_op_command *command, bp_arena *arena,
                          bp_op_node *node) {
    const bp_plan_object *plan = bp_object_find(command->plan, BP_KIND_PLAN, device);
    if (!plan)
        return BP_INVALID_ARGUMENT;
    node->plan = &plan->plan;
    node->addresses = cut(arena, BP_MAX_OP_TENSORS * sizeof(unsigned char *));
    return bp_plan_bind(device, plan, command, node->addresses, &node->workspace);
}

static int32_t compile_command(bp_device *device, const bp_command *given, bp_arena *arena,
                               bp_node *node) {
    bp_any_command own;
    int32_t status;
    const bp_any_command *command = read_command(given, &own, &status);
    if (!command)
        return status;
    node->kind = command->prefix.kind;
    switch (node->kind) {
    case BP_COMMAND_COPY:
        return compile_copy(device, &command->copy, &node->span);
    case BP_COMMAND_FILL:
        return compile_fill(device, &command->fill, &node->span);
    case BP_COMMAND_LAUNCH:
        return compile_launch(device, &command->launch, arena, &node->launch);
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

static int32_t measure(const bp_batch *batch, uint64_t *bytes) {
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
    *bytes = ALIGN(sizeof(bp_work)) + ALIGN(batch->wait_count * sizeof(bp_point)) +
             ALIGN(batch->signal_count * sizeof(bp_point)) +
             ALIGN(batch->command_count * sizeof(bp_node));
    for (uint32_t i = 0; i < batch->command_count; i++) {
        bp_any_command own;
        int32_t status;
        const bp_any_command *command = read_command(batch->commands[i], &own, &status);
        if (command)
            status = measure_command(command, bytes);
        if (status)
            return at_command(i, status);
    }
    return BP_OK;
}

/* An allocation of at least `bytes`: the spare one when it is large enough. */
static bp_work *allocate(bp_work **spare, uint64_t bytes) {
    bp_work *work = *spare;
    if (work && work->capacity >= bytes) {
        *spare = NULL;
    } else {
        work = malloc(bytes);
        if (!work)
            return NULL;
        work->capacity = bytes;
    }
    uint64_t capacity = work->capacity;
    memset(work, 0, sizeof(*work));
    work->capacity = capacity;
    return work;
}

static int32_t fill(bp_device *device, const bp_batch *batch, bp_work *work) {
    bp_arena arena = {(unsigned char *)work + ALIGN(sizeof(*work))};
    work->tag = batch->tag;
    work->wait_count = batch->wait_count;
    work->signal_count = batch->signal_count;
    work->node_count = batch->command_count;
    work->waits = cut(&arena, batch->wait_count * sizeof(bp_point));
    work->signals = cut(&arena, batch->signal_count * sizeof(bp_point));
    work->nodes = cut(&arena, batch->command_count * sizeof(bp_node));
    int32_t status = compile_fences(device, batch->wait, batch->wait_count, work->waits);
    if (status == BP_OK)
        status = compile_fences(device, batch->signal, batch->signal_count, work->signals);
    for (uint32_t i = 0; status == BP_OK && i < batch->command_count; i++) {
        work->nodes[i].index = i;
        status = compile_command(device, batch->commands[i], &arena, &work->nodes[i]);
        if (status)
            at_command(i, status);
    }
    return status;
}

bp_work *bp_work_compile(bp_device *device, const bp_batch *given, bp_work **spare,
                         int32_t *status) {
    bp_batch batch;
    uint64_t bytes = 0;
    *status = BP_ADOPT(given, &batch, "batch");
    if (*status == BP_OK)
        *status = measure(&batch, &bytes);
    if (*status)
        return NULL;
    bp_work *work = allocate(spare, bytes);
    if (!work) {
        *status = bp_fail(BP_OUT_OF_MEMORY, "no host memory for a batch of %llu bytes",
                          (unsigned long long)bytes);
        return NULL;
    }
    *status = fill(device, &batch, work);
    if (*status == BP_OK)
        return work;
    free(work);
    return NULL;
}
