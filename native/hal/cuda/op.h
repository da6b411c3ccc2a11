/*
 * Ops of bp.ops.1 on a CUDA device: matmul by cuBLASLt, convert by a kernel of our own. The
 * registry of plans is the cpu's (cpu/plan.h); what an op may rely on is in cpu/ops.h.
 *
 * Planning asks for everything an execution needs (an algorithm, a loaded kernel); an execution
 * only puts work into a stream, so it allocates nothing and can be recorded.
 */
#ifndef BEDPLATE_HAL_CUDA_OP_H
#define BEDPLATE_HAL_CUDA_OP_H

#include "../cpu/plan.h"
#include "device.h"

typedef struct bp_cuda_op {
    bp_cpu_op base;
    /* Puts one execution into a stream; BP_OK, or a status with a sentence. Locked. */
    int32_t (*issue)(bp_cuda_device *device, bp_cu_stream stream, const bp_cpu_binding *binding);
} bp_cuda_op;

extern const bp_cuda_op bp_cuda_matmul, bp_cuda_convert;

/* Gives back what ops keep with a device; before its context goes. */
void bp_cuda_ops_close(bp_cuda_device *device);

#endif
