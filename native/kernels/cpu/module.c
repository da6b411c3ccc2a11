/* The one export of each level's library: which instruction set it was built for, and its kernels.
 */
#include "launch.h"

#define BP_KERNELS(each)                                                                           \
    each(block_copy) each(convert) each(embedding) each(kv_write) each(matmul) each(pack_blocks)   \
        each(pack_floats) each(paged_attention) each(quantize_rows) each(quantized_matmul_float)   \
            each(quantized_matmul_int8) each(rmsnorm) each(rope) each(sample) each(silu_mul)

#define BP_DECLARE(name) BP_KERNEL(name);
#define BP_ENTRY(name)   {{#name, sizeof(#name) - 1}, bp_kernel_##name},

BP_KERNELS(BP_DECLARE)

static const bp_native_kernel kernels[] = {BP_KERNELS(BP_ENTRY)};

BP_NATIVE_MODULE(kernels, BP_ISA);
