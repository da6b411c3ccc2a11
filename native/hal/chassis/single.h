/*
 * A batch of exactly one launch, compiled on the caller's stack.
 *
 * For a backend that issues at once: no allocation, no copy of the batch, no list. Takes a batch
 * with structs of this build's sizes, no waits, at most one signal and few arguments, which is what
 * a caller that launches one by one hands over. Everything else is left to bp_work_compile.
 */
#ifndef BEDPLATE_HAL_CHASSIS_SINGLE_H
#define BEDPLATE_HAL_CHASSIS_SINGLE_H

#include "batch.h"

/* Chosen, not measured: 29 words of arguments. */
#define BP_SINGLE_PARAMETER_BYTES 232u

typedef struct bp_single {
    bp_work work;
    bp_point signal;
    bp_node node;
    _Alignas(16) unsigned char parameters[BP_SINGLE_PARAMETER_BYTES];
} bp_single;

/* The work, without a ticket and inside `single`; or null when it is another batch or a refused
 * one, then bp_work_compile is the one to ask. Holds the device's lock. */
bp_work *bp_single_compile(bp_device *device, const bp_batch *batch, bp_single *single);

#endif
