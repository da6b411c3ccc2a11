/*
 * Launches: grid, block and shared memory against the limits of kernel and device, and arguments.
 *
 * Arguments are packed as a native kernel reads them (see bp_argument): values aligned to their
 * size up to 8, ranges as 8-byte device addresses. Beside that each argument is kept as a piece,
 * for devices that are given arguments one by one. Wants limits from the device, nothing else.
 */
#ifndef BEDPLATE_HAL_CHASSIS_LAUNCH_H
#define BEDPLATE_HAL_CHASSIS_LAUNCH_H

#include "memory.h"
#include "module.h"

/* One argument: a span, or a value inside the packed parameters. */
typedef struct bp_piece {
    /* BP_ARGUMENT_RANGE or BP_ARGUMENT_BYTES. */
    uint32_t kind;
    /* Where it lies in the packed parameters, and how long it is there. */
    uint32_t at, bytes;
    /* memory is null for a null address. */
    bp_span span;
} bp_piece;

typedef struct bp_launch_node {
    const bp_kernel_object *kernel;
    uint32_t grid[3], block[3], cluster[3], shared_bytes;
    /* Product of grid; at most 2^48. */
    uint64_t blocks;
    uint32_t parameters_bytes;
    /* Padding between arguments is zero. */
    const unsigned char *parameters;
    const bp_piece *pieces;
    uint32_t piece_count;
} bp_launch_node;

/* Most arguments of a launch. */
#define BP_MOST_ARGUMENTS 512u

/* What bp_launch_compile answers, without a sentence, when `room` is too little. */
#define BP_LAUNCH_NO_ROOM 1

/* Bytes that packed arguments take at most. Of a launch that bp_launch_compile would refuse it is
 * any number. */
uint64_t bp_launch_room(const bp_launch_command *launch);

/* Checks everything and fills the node; BP_OK, BP_LAUNCH_NO_ROOM, or a status with a sentence.
 * `known` is a live kernel of this device that the launch may well name, or null; `count` is its
 * argument_count, read once by the caller; `parameters` has `room` bytes; `pieces` has `count`
 * places, or is null when the backend wants none. Holds the device's lock. */
int32_t bp_launch_compile(bp_device *device, const bp_launch_command *launch,
                          const bp_kernel_object *known, uint32_t count, uint64_t room,
                          unsigned char *parameters, bp_piece *pieces, bp_launch_node *node);

#endif
