/* See launch.h. */
#include "launch.h"

#include <string.h>

/* Bytes of one argument's alignment: its size as a power of two, up to 8. */
static uint32_t alignment_of(uint32_t bytes) {
    return bytes >= 8 ? 8 : bytes >= 4 ? 4 : bytes >= 2 ? 2 : 1;
}

uint64_t bp_launch_room(const bp_launch_command *launch) {
    uint64_t most = 0;
    if (launch->argument_count > BP_MOST_ARGUMENTS || !launch->arguments)
        return 0;
    for (uint32_t i = 0; i < launch->argument_count; i++) {
        const bp_argument *argument = &launch->arguments[i];
        most += argument->kind == BP_ARGUMENT_BYTES ? (argument->bytes + 7ull) & ~7ull : 8;
    }
    return most < BP_MAX_LAUNCH_PARAMETER_BYTES ? most : BP_MAX_LAUNCH_PARAMETER_BYTES;
}

/* Product of three counts into *product; a sentence when one is 0 or the product passes `most`. */
static __attribute__((noinline)) int32_t volume_of(const uint32_t counts[3], uint64_t most,
                                                   const char *what, uint64_t *product) {
    uint64_t plane = (uint64_t)counts[0] * counts[1];
    if (!plane || !counts[2] || __builtin_mul_overflow(plane, counts[2], product) ||
        *product > most)
        return bp_fail(BP_INVALID_ARGUMENT,
                       "a %s of %u x %u x %u; each is at least 1, all at most %llu", what,
                       counts[0], counts[1], counts[2], (unsigned long long)most);
    return BP_OK;
}

/* Most have one dimension. */
static inline int32_t volume(const uint32_t counts[3], uint64_t most, const char *what,
                             uint64_t *product) {
    *product = counts[0];
    if (counts[1] == 1 && counts[2] == 1 && counts[0] - 1ull < most)
        return BP_OK;
    return volume_of(counts, most, what, product);
}

/* Most values are a word or half of one, which needs no call. */
static inline void put(unsigned char *to, const void *from, uint32_t bytes) {
    if (bytes == 4)
        memcpy(to, from, 4);
    else if (bytes == 8)
        memcpy(to, from, 8);
    else
        memcpy(to, from, bytes);
}

/* The address of a range, 0 for none, also where devices have none; whether the range is one. */
static inline int put_range(bp_device *device, const bp_range *range, unsigned char *to,
                            bp_piece *piece) {
    uint64_t address = 0;
    bp_span span = {0};
    if (range->memory) {
        if (!bp_span_of(device, range, &span))
            return 0;
        address = span.memory->address ? span.memory->address + span.offset : 0;
    }
    memcpy(to, &address, sizeof(address));
    if (piece)
        piece->span = span;
    return 1;
}

static __attribute__((cold)) int32_t refuse_argument(bp_device *device, const bp_argument *argument,
                                                     uint32_t i) {
    if (argument->kind == BP_ARGUMENT_RANGE)
        return bp_memory_refuse(device, &argument->range, "an argument");
    return bp_fail(BP_INVALID_ARGUMENT, "argument %u has kind %u and %u bytes at %p", i,
                   argument->kind, argument->bytes, argument->data);
}

/* The status for arguments that take `bytes`, which is too much. */
static __attribute__((cold)) int32_t refuse_bytes(uint64_t bytes) {
    if (bytes <= BP_MAX_LAUNCH_PARAMETER_BYTES)
        return BP_LAUNCH_NO_ROOM;
    return bp_fail(BP_INVALID_ARGUMENT, "arguments of more than %u bytes",
                   BP_MAX_LAUNCH_PARAMETER_BYTES);
}

/* Kind, size and place of an argument are read once: whoever changes them meanwhile harms nobody.
 * `room` is at most BP_MAX_LAUNCH_PARAMETER_BYTES. Inlined once with pieces and once without. */
static inline __attribute__((always_inline)) int32_t
compile_arguments(bp_device *device, const bp_argument *arguments, uint32_t count, uint64_t room,
                  unsigned char *parameters, bp_piece *pieces, uint64_t *bytes) {
    uint64_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        const bp_argument *argument = &arguments[i];
        uint32_t kind = argument->kind, size = 8;
        uint64_t alignment = 8;
        const void *data = argument->data;
        if (kind != BP_ARGUMENT_RANGE) {
            size = argument->bytes;
            if (kind != BP_ARGUMENT_BYTES || !data || size == 0)
                return refuse_argument(device, argument, i);
            alignment = alignment_of(size);
        }
        uint64_t start = (at + alignment - 1) & -alignment;
        if (start + size > room)
            return refuse_bytes(start + size);
        while (at < start)
            parameters[at++] = 0;
        bp_piece *piece = pieces ? &pieces[i] : NULL;
        if (piece)
            *piece = (bp_piece){.kind = kind, .at = (uint32_t)at, .bytes = size};
        if (kind == BP_ARGUMENT_BYTES)
            put(parameters + at, data, size);
        else if (!put_range(device, &argument->range, parameters + at, piece))
            return refuse_argument(device, argument, i);
        at += size;
    }
    *bytes = at;
    return BP_OK;
}

static int32_t check_limits(const bp_device *device, const bp_launch_node *node) {
    const bp_limits *limits = &device->limits;
    if (node->cluster[0] | node->cluster[1] | node->cluster[2]) {
        uint64_t blocks = 0;
        if (!limits->max_cluster_blocks)
            return bp_fail(BP_UNSUPPORTED, "this backend has no clusters");
        int32_t status = volume(node->cluster, limits->max_cluster_blocks, "cluster", &blocks);
        if (status)
            return status;
    }
    if (node->shared_bytes > limits->max_shared_bytes)
        return bp_fail(limits->max_shared_bytes ? BP_INVALID_ARGUMENT : BP_UNSUPPORTED,
                       "%u bytes of dynamic shared memory; at most %u", node->shared_bytes,
                       limits->max_shared_bytes);
    return BP_OK;
}

static __attribute__((cold)) int32_t refuse_kernel(const bp_device *device, uint64_t kernel) {
    bp_object_find(kernel, BP_KIND_KERNEL, device);
    return BP_INVALID_ARGUMENT;
}

int32_t bp_launch_compile(bp_device *device, const bp_launch_command *launch,
                          const bp_kernel_object *known, uint32_t count, uint64_t room,
                          unsigned char *parameters, bp_piece *pieces, bp_launch_node *node) {
    const bp_kernel_object *kernel = known;
    uint64_t handle = launch->kernel, threads = 0, bytes = 0;
    if (!known || known->object.handle != handle)
        kernel = bp_object_peek(handle, BP_KIND_KERNEL, device);
    if (!kernel)
        return refuse_kernel(device, handle);
    node->kernel = kernel;
    memcpy(node->grid, launch->grid, sizeof(node->grid));
    memcpy(node->block, launch->block, sizeof(node->block));
    memcpy(node->cluster, launch->cluster, sizeof(node->cluster));
    node->shared_bytes = launch->dynamic_shared_bytes;
    int32_t status = volume(node->grid, 1ull << 48, "grid", &node->blocks);
    if (status == BP_OK)
        status = volume(node->block, kernel->max_threads_per_block, "block", &threads);
    if (status == BP_OK)
        status = check_limits(device, node);
    if (status)
        return status;
    if (count > BP_MOST_ARGUMENTS || (count && !launch->arguments))
        return bp_fail(BP_INVALID_ARGUMENT, "%u arguments; up to %u are known", count,
                       BP_MOST_ARGUMENTS);
    if (room > BP_MAX_LAUNCH_PARAMETER_BYTES)
        room = BP_MAX_LAUNCH_PARAMETER_BYTES;
    const bp_argument *arguments = launch->arguments;
    status = pieces ? compile_arguments(device, arguments, count, room, parameters, pieces, &bytes)
                    : compile_arguments(device, arguments, count, room, parameters, NULL, &bytes);
    node->parameters = parameters;
    node->parameters_bytes = (uint32_t)bytes;
    node->pieces = pieces;
    node->piece_count = count;
    return status;
}
