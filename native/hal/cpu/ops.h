/*
 * Between the registry of plans (plan.c) and the portable loops of bp.ops.1 (ops/<op>.c).
 *
 * One file of ops/ holds one op: a `const bp_cpu_op bp_cpu_op_<name>` listed in ops/table.c. The
 * registry has done the common checks before an op sees anything:
 *   plan: every present tensor has a known dtype, rank <= BP_MAX_RANK, shape >= 0, stride >= 0, and
 *         an extent that fits 63 bits; attributes are complete, reserved words zero.
 *   run:  every binding is live and at least as long as its tensor's extent; a written tensor
 *         overlaps no other tensor, except one named in `in_place` at the same address; the
 *         workspace is there.
 * So an op checks what only it knows: count of tensors, their shapes and dtypes against each other.
 *
 * Trade-off: blocks are planned at run time (`blocks`), because `count` tensors say only then how
 * many rows there are; a batch recorded once for many rows costs nothing for the missing ones.
 */
#ifndef BEDPLATE_HAL_CPU_OPS_H
#define BEDPLATE_HAL_CPU_OPS_H

#include "../error.h"
#include "bedplate/hal.h"
#include "bedplate/hal_native.h"

typedef struct bp_cpu_tensor {
    /* Null while planning, and when absent. */
    unsigned char *data;
    /* 0 when absent. */
    uint32_t dtype;
    uint32_t rank;
    int64_t shape[BP_MAX_RANK];
    /* In elements, never negative. */
    int64_t stride[BP_MAX_RANK];
    /* From the first to the end of the last element; 0 when some dimension is 0. */
    uint64_t bytes;
} bp_cpu_tensor;

typedef union bp_cpu_attributes {
    bp_head head;
    bp_matmul_attributes matmul;
    bp_quantized_matmul_attributes quantized_matmul;
    bp_rmsnorm_attributes rmsnorm;
    bp_rope_attributes rope;
    bp_paged_attention_attributes paged_attention;
    bp_softmax_attributes softmax;
    bp_silu_mul_attributes silu_mul;
    bp_embedding_attributes embedding;
    bp_sample_attributes sample;
    bp_kv_write_attributes kv_write;
    bp_block_copy_attributes block_copy;
    bp_reduce_attributes reduce;
    bp_convert_attributes convert;
} bp_cpu_attributes;

typedef struct bp_cpu_op bp_cpu_op;
struct bp_device;

typedef struct bp_cpu_plan {
    const bp_cpu_op *op;
    struct bp_device *device;
    uint32_t count;
    /* Bit i: tensor i is written. Set by the op's plan. */
    uint32_t writes;
    /* Bit i: tensor i may lie exactly where a written tensor lies. Set by the op's plan. */
    uint32_t in_place;
    /* BP_OP_*; starts as BP_OP_DETERMINISTIC | BP_OP_CAPTURABLE. */
    uint32_t flags;
    /* What each op command must bring; starts as 0. */
    uint64_t workspace_bytes;
    /* Least alignment of every binding and of the workspace in bytes; 0 is that of the elements. */
    uint32_t alignment, workspace_alignment;
    /* Whose code runs it, and what that code keeps; null is this backend's own. */
    const char *library;
    void *own;
    bp_cpu_attributes attributes;
    bp_cpu_tensor tensors[BP_MAX_OP_TENSORS];
} bp_cpu_plan;

typedef struct bp_cpu_run {
    const bp_cpu_plan *plan;
    /* The plan's tensors with their addresses. */
    const bp_cpu_tensor *tensors;
    unsigned char *workspace;
    /* For bp_native_fail. */
    bp_native_fault *fault;
    /* Index of the calling worker, below `workers`. */
    uint32_t worker;
    uint32_t workers;
} bp_cpu_run;

struct bp_cpu_op {
    uint32_t id;
    const char *name;
    /* sizeof the op's attributes. */
    uint32_t attribute_bytes;
    /* Number of tensors, optional ones included. */
    uint32_t tensors;
    /* Bit i: tensor i may be absent. */
    uint32_t optional;
    /* Accept or refuse (return bp_fail(...)); set writes, in_place, workspace_bytes, flags. */
    int32_t (*plan)(bp_cpu_plan *plan);
    /* Frees what `plan` put into plan->own, also after it refused; null when that is nothing. */
    void (*release)(bp_cpu_plan *plan);
    /* How many independent blocks this run has; called once per run, before `run`. */
    uint64_t (*blocks)(const bp_cpu_run *run);
    /* Do blocks [first, first + count). Called from several threads at once; writes only what
     * belongs to its blocks. 0 or bp_native_fail(run->fault, ...). */
    int32_t (*run)(const bp_cpu_run *run, uint64_t first, uint64_t count);
};

/* Every op this backend has; ops/table.c. */
extern const bp_cpu_op *const bp_cpu_op_table[];
extern const uint32_t bp_cpu_op_count;

/* Rows to do: the value of a `count` tensor, at most `most`; `most` when it is absent. */
static inline int64_t bp_cpu_rows(const bp_cpu_tensor *count, int64_t most) {
    if (!count->data)
        return most;
    uint32_t rows = *(const uint32_t *)(const void *)count->data;
    return (int64_t)rows < most ? (int64_t)rows : most;
}

/* Whether a tensor is an optional `count`: absent or u32 [1]. */
static inline int bp_cpu_is_count(const bp_cpu_tensor *tensor) {
    return tensor->dtype == 0 ||
           (tensor->dtype == BP_DTYPE_U32 && tensor->rank == 1 && tensor->shape[0] == 1);
}

static inline float bp_cpu_from_bf16(uint16_t bits) {
    union {
        uint32_t bits;
        float value;
    } both = {(uint32_t)bits << 16};
    return both.value;
}

/* Round to nearest, ties to even; NaN stays NaN. */
static inline uint16_t bp_cpu_to_bf16(float value) {
    union {
        float value;
        uint32_t bits;
    } both = {value};
    if ((both.bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)((both.bits >> 16) | 0x40u);
    return (uint16_t)((both.bits + 0x7fffu + ((both.bits >> 16) & 1u)) >> 16);
}

#endif
