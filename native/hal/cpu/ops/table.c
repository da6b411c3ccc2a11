/* The list of portable ops. A new op is a file beside this one and a line here. */
#include "../ops.h"

extern const bp_cpu_op bp_cpu_op_block_copy;
extern const bp_cpu_op bp_cpu_op_convert;
extern const bp_cpu_op bp_cpu_op_embedding;
extern const bp_cpu_op bp_cpu_op_kv_write;
extern const bp_cpu_op bp_cpu_op_matmul;
extern const bp_cpu_op bp_cpu_op_paged_attention;
extern const bp_cpu_op bp_cpu_op_quantized_matmul;
extern const bp_cpu_op bp_cpu_op_reduce;
extern const bp_cpu_op bp_cpu_op_rmsnorm;
extern const bp_cpu_op bp_cpu_op_rope;
extern const bp_cpu_op bp_cpu_op_sample;
extern const bp_cpu_op bp_cpu_op_silu_mul;
extern const bp_cpu_op bp_cpu_op_softmax;

const bp_cpu_op *const bp_cpu_op_table[] = {
    &bp_cpu_op_block_copy, &bp_cpu_op_convert, &bp_cpu_op_embedding,
    &bp_cpu_op_kv_write,   &bp_cpu_op_matmul,  &bp_cpu_op_paged_attention,
    &bp_cpu_op_reduce,     &bp_cpu_op_rmsnorm, &bp_cpu_op_quantized_matmul,
    &bp_cpu_op_rope,       &bp_cpu_op_sample,  &bp_cpu_op_silu_mul,
    &bp_cpu_op_softmax,
};

const uint32_t bp_cpu_op_count = sizeof(bp_cpu_op_table) / sizeof(bp_cpu_op_table[0]);
