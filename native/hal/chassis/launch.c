/* See launch.h. */
#include "launch.h"

#include <string.h>

#define MOST_ARGUMENTS 512u

/* Bytes of one argument's alignment: its size as a power of two, up to 8. */
static uint32_t alignment_of(uint32_t bytes) {
    return bytes >= 8 ? 8 : bytes >= 4 ? 4 : bytes >= 2 ? 2 : 1;
}

/* Bytes of the arguments as they are packed. */
static int32_t measure_exactly(const bp_launch_command *launch, uint64_t *bytes) {
    uint64_t at = 0;
    for (uint32_t i = 0; i < launch->argument_count; i++) {
        const bp_argument *argument = &launch->arguments[i];
        uint32_t size = argument->kind == BP_ARGUMENT_RANGE ? 8 : argument->bytes;
        uint64_t alignment = alignment_of(size);
        at = ((at + alignment - 1) & ~(alignment - 1)) + size;
        if (at > BP_MAX_LAUNCH_PARAMETER_BYTES)
            return bp_fail(BP_INVALID_ARGUMENT, "arguments of more than %u bytes",
                           BP_MAX_LAUNCH_PARAMETER_BYTES);
    }
    *bytes = at;
    return BP_OK;
}

/* The unrounded bytes of each argument are looked at here; that they fit is seen by adding up what
 * each takes at most, and exactly only when that is too much. */
int32_t bp_launch_measure(const bp_launch_command *launch, uint64_t *bytes) {
    uint64_t most = 0;
    if (launch->argument_count > MOST_ARGUMENTS || (launch->argument_count && !launch->arguments))
        return bp_fail(BP_INVALID_ARGUMENT, "%u arguments; up to %u are known",
                       launch->argument_count, MOST_ARGUMENTS);
    for (uint32_t i = 0; i < launch->argument_count; i++) {
        const bp_argument *argument = &launch->arguments[i];
        if (argument->kind == BP_ARGUMENT_RANGE) {
            most += 8;
            continue;
        }
        if (argument->kind != BP_ARGUMENT_BYTES || !argument->data || argument->bytes == 0)
            return bp_fail(BP_INVALID_ARGUMENT, "argument %u has kind %u and %u bytes at %p", i,
                           argument->kind, argument->bytes, argument->data);
        most += (argument->bytes + 7ull) & ~7ull;
    }
    *bytes = most;
    return most <= BP_MAX_LAUNCH_PARAMETER_BYTES ? BP_OK : measure_exactly(launch, bytes);
}

/* Product of three counts into *product; a sentence when one is 0 or the product passes `most`. */
static int32_t volume(const uint32_t counts[3], uint64_t most, const char *what,
                      uint64_t *product) {
    uint64_t plane = (uint64_t)counts[0] * counts[1];
    if (counts[2] == 1 && plane && plane <= most) {
        *product = plane;
        return BP_OK;
    }
    if (!plane || !counts[2] || __builtin_mul_overflow(plane, counts[2], product) ||
        *product > most)
        return bp_fail(BP_INVALID_ARGUMENT,
                       "a %s of %u x %u x %u; each is at least 1, all at most %llu", what,
                       counts[0], counts[1], counts[2], (unsigned long long)most);
    return BP_OK;
}

/* Most values are a word or half of one, which needs no call. */
static void put(unsigned char *to, const void *from, uint32_t bytes) {
    if (bytes == 8)
        memcpy(to, from, 8);
    else if (bytes == 4)
        memcpy(to, from, 4);
    else
        memcpy(to, from, bytes);
}

/* The address of a range, 0 for none, also where devices have none. */
static int32_t put_range(bp_device *device, const bp_range *range, unsigned char *to,
                         bp_span *span) {
    uint64_t address = 0;
    if (range->memory) {
        int32_t status = bp_memory_resolve(device, range, "an argument", span);
        if (status)
            return status;
        address = span->memory->address ? span->memory->address + span->offset : 0;
    } else {
        *span = (bp_span){0};
    }
    memcpy(to, &address, sizeof(address));
    return BP_OK;
}

/* The arguments were measured, so there is room for what they were then; an argument that has grown
 * since is refused. */
static int32_t compile_arguments(bp_device *device, const bp_launch_command *launch, uint64_t room,
                                 unsigned char *parameters, bp_piece *pieces, uint64_t *bytes) {
    uint64_t at = 0;
    bp_span span = {0};
    for (uint32_t i = 0; i < launch->argument_count; i++) {
        const bp_argument *argument = &launch->arguments[i];
        int is_range = argument->kind != BP_ARGUMENT_BYTES;
        uint32_t size = is_range ? 8 : argument->bytes;
        uint64_t alignment = alignment_of(size), padding = -at & (alignment - 1);
        if (at + padding + size > room)
            return bp_fail(BP_INVALID_ARGUMENT, "argument %u changed during submit", i);
        if (padding)
            memset(parameters + at, 0, padding);
        at += padding;
        if (!is_range) {
            put(parameters + at, argument->data, size);
        } else {
            int32_t status = put_range(device, &argument->range, parameters + at, &span);
            if (status)
                return status;
        }
        if (pieces)
            pieces[i] =
                (bp_piece){argument->kind, (uint32_t)at, size, is_range ? span : (bp_span){0}};
        at += size;
    }
    *bytes = at;
    return BP_OK;
}

static int32_t check_limits(const bp_device *device, const bp_launch_command *launch) {
    const bp_limits *limits = &device->limits;
    if (launch->cluster[0] | launch->cluster[1] | launch->cluster[2]) {
        uint64_t blocks = 0;
        if (!limits->max_cluster_blocks)
            return bp_fail(BP_UNSUPPORTED, "this backend has no clusters");
        int32_t status = volume(launch->cluster, limits->max_cluster_blocks, "cluster", &blocks);
        if (status)
            return status;
    }
    if (launch->dynamic_shared_bytes > limits->max_shared_bytes)
        return bp_fail(limits->max_shared_bytes ? BP_INVALID_ARGUMENT : BP_UNSUPPORTED,
                       "%u bytes of dynamic shared memory; at most %u",
                       launch->dynamic_shared_bytes, limits->max_shared_bytes);
    return BP_OK;
}

int32_t bp_launch_compile(bp_device *device, const bp_launch_command *launch, uint64_t room,
                          unsigned char *parameters, bp_piece *pieces, bp_launch_node *node) {
    const bp_kernel_object *kernel = bp_object_find(launch->kernel, BP_KIND_KERNEL, device);
    uint64_t threads = 0, bytes = 0;
    if (!kernel)
        return BP_INVALID_ARGUMENT;
    int32_t status = volume(launch->grid, 1ull << 48, "grid", &node->blocks);
    if (status == BP_OK)
        status = volume(launch->block, kernel->max_threads_per_block, "block", &threads);
    if (status == BP_OK)
        status = check_limits(device, launch);
    if (status)
        return status;
    node->kernel = kernel;
    memcpy(node->grid, launch->grid, sizeof(node->grid));
    memcpy(node->block, launch->block, sizeof(node->block));
    memcpy(node->cluster, launch->cluster, sizeof(node->cluster));
    node->shared_bytes = launch->dynamic_shared_bytes;
    status = compile_arguments(device, launch, room, parameters, pieces, &bytes);
    node->parameters = parameters;
    node->parameters_bytes = (uint32_t)bytes;
    node->pieces = pieces;
    node->piece_count = launch->argument_count;
    return status;
}
