/* Plans of bp.ops.1: a checked op with exact shapes, and how to run it. */
#ifndef BEDPLATE_HAL_CPU_PLAN_H
#define BEDPLATE_HAL_CPU_PLAN_H

#include "../chassis/batch.h"
#include "ops.h"

typedef struct bp_plan_object {
    bp_object object;
    bp_cpu_plan plan;
} bp_plan_object;

/* A plan with the addresses of one op command. */
typedef struct bp_cpu_binding {
    const bp_cpu_plan *plan;
    unsigned char *workspace;
    unsigned char *addresses[BP_MAX_OP_TENSORS];
} bp_cpu_binding;

extern const bp_ops bp_ops_table;

void bp_plan_free(bp_plan_object *plan);

/* What bp_batch_driver.op wants, with op_bytes of bp_cpu_binding: checks the bindings and the
 * workspace of one op command. Locked. */
int32_t bp_plan_bind(bp_device *device, const bp_op_command *command, bp_op_node *node);

/* Bytes of one element times lanes, or of one block of 32; 0 for an unknown dtype. */
uint32_t bp_dtype_bytes(uint32_t dtype, uint32_t *elements);

#endif
