/* Plans of bp.ops.1: a checked op with exact shapes, and how to run it. */
#ifndef BEDPLATE_HAL_CPU_PLAN_H
#define BEDPLATE_HAL_CPU_PLAN_H

#include "device.h"
#include "ops.h"

typedef struct bp_plan_object {
    bp_object object;
    bp_cpu_plan plan;
} bp_plan_object;

extern const bp_ops bp_ops_table;

void bp_plan_free(bp_plan_object *plan);

/* Checks the bindings and the workspace of one op command; fills addresses[tensor] and *workspace.
 * Holds the device's lock. */
int32_t bp_plan_bind(bp_device *device, const bp_plan_object *plan, const bp_op_command *command,
                     unsigned char **addresses, unsigned char **workspace);

/* Bytes of one element times lanes, or of one block of 32; 0 for an unknown dtype. */
uint32_t bp_dtype_bytes(uint32_t dtype, uint32_t *elements);

#endif
