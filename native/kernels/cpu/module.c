/* The one export of each level's library: which instruction set it was built for, and its kernels.
 */
#include "launch.h"

#define BP_TEXT(literal) {literal, sizeof(literal) - 1}

#define BP_KERNELS(each)                                                                           \
    each(block_copy) each(convert) each(embedding) each(kv_write) each(matmul) each(pack_blocks)   \
        each(pack_floats) each(paged_attention) each(quantize_rows) each(quantized_matmul_float)   \
            each(quantized_matmul_int8) each(rmsnorm) each(rope) each(sample) each(silu_mul)

#define BP_DECLARE(name) BP_KERNEL(name);
#define BP_ENTRY(name)   {BP_TEXT(#name), bp_kernel_##name},

BP_KERNELS(BP_DECLARE)

static const bp_native_kernel kernels[] = {BP_KERNELS(BP_ENTRY)};

static const bp_native_module module = {
    .head = {1, sizeof(bp_native_module)},
    .isa = BP_TEXT(BP_ISA),
    .kernel_count = sizeof(kernels) / sizeof(kernels[0]),
    .kernels = kernels,
};

__attribute__((visibility("default"))) int32_t
bedplate_native_module_query(uint32_t wanted_major, const bp_native_module **out) {
    if (wanted_major != BP_ABI_MAJOR)
        return BP_VERSION;
    *out = &module;
    return BP_OK;
}
