/*
 * convert: x [T,H], count?, out [T,H] between f32 and bf16, rows strided, elements dense. f32 to
 * bf16 rounds to nearest even in integers, so that the bits are those of the cpu; the reverse is
 * exact. A block is a row, and goes on with the row that lies the grid's width behind.
 */
#include "op.h"

enum { X, COUNT, OUT };

#define MOST_BLOCKS 65535
#define THREADS     256

#define PARAMETERS                                                                                 \
    "(.param .u64 out, .param .u64 x, .param .u64 count, .param .u64 rows, .param .u64 width,"     \
    " .param .u64 out_stride, .param .u64 x_stride)"
/* %d1 out, %d2 x, %d3 rows to do, %d4 width, %d5 and %d6 strides, %d7 row, %d8 column, %d9 and %d10
 * the row's first elements of x and out. */
#define HEAD(x_shift, out_shift)                                                                   \
    "{\n"                                                                                          \
    "    .reg .pred %p;\n"                                                                         \
    "    .reg .b16 %h;\n"                                                                          \
    "    .reg .b32 %r<8>;\n"                                                                       \
    "    .reg .b64 %d<16>;\n"                                                                      \
    "    ld.param.u64 %d1, [out];\n"                                                               \
    "    ld.param.u64 %d2, [x];\n"                                                                 \
    "    ld.param.u64 %d11, [count];\n"                                                            \
    "    ld.param.u64 %d3, [rows];\n"                                                              \
    "    ld.param.u64 %d4, [width];\n"                                                             \
    "    ld.param.u64 %d5, [out_stride];\n"                                                        \
    "    ld.param.u64 %d6, [x_stride];\n"                                                          \
    "    cvta.to.global.u64 %d1, %d1;\n"                                                           \
    "    cvta.to.global.u64 %d2, %d2;\n"                                                           \
    "    setp.eq.u64 %p, %d11, 0;\n"                                                               \
    "    @%p bra COUNTED;\n"                                                                       \
    "    cvta.to.global.u64 %d11, %d11;\n"                                                         \
    "    ld.global.u32 %r1, [%d11];\n"                                                             \
    "    cvt.u64.u32 %d11, %r1;\n"                                                                 \
    "    min.u64 %d3, %d3, %d11;\n"                                                                \
    "COUNTED:\n"                                                                                   \
    "    mov.u32 %r1, %ctaid.x;\n"                                                                 \
    "    cvt.u64.u32 %d7, %r1;\n"                                                                  \
    "    mov.u32 %r2, %nctaid.x;\n"                                                                \
    "    mov.u32 %r3, %ntid.x;\n"                                                                  \
    "ROW:\n"                                                                                       \
    "    setp.ge.u64 %p, %d7, %d3;\n"                                                              \
    "    @%p ret;\n"                                                                               \
    "    mul.lo.u64 %d9, %d7, %d6;\n"                                                              \
    "    shl.b64 %d9, %d9, " x_shift ";\n"                                                         \
    "    add.u64 %d9, %d2, %d9;\n"                                                                 \
    "    mul.lo.u64 %d10, %d7, %d5;\n"                                                             \
    "    shl.b64 %d10, %d10, " out_shift ";\n"                                                     \
    "    add.u64 %d10, %d1, %d10;\n"                                                               \
    "    mov.u32 %r1, %tid.x;\n"                                                                   \
    "    cvt.u64.u32 %d8, %r1;\n"                                                                  \
    "COLUMN:\n"                                                                                    \
    "    setp.ge.u64 %p, %d8, %d4;\n"                                                              \
    "    @%p bra NEXT;\n"                                                                          \
    "    shl.b64 %d12, %d8, " x_shift ";\n"                                                        \
    "    add.u64 %d12, %d9, %d12;\n"                                                               \
    "    shl.b64 %d13, %d8, " out_shift ";\n"                                                      \
    "    add.u64 %d13, %d10, %d13;\n"
#define TAIL                                                                                       \
    "    cvt.u64.u32 %d14, %r3;\n"                                                                 \
    "    add.u64 %d8, %d8, %d14;\n"                                                                \
    "    bra COLUMN;\n"                                                                            \
    "NEXT:\n"                                                                                      \
    "    cvt.u64.u32 %d14, %r2;\n"                                                                 \
    "    add.u64 %d7, %d7, %d14;\n"                                                                \
    "    bra ROW;\n"                                                                               \
    "}\n"

static const char CONVERT_PTX[] =
    ".version 7.0\n"
    ".target sm_52\n"
    ".address_size 64\n"
    ".visible .entry bedplate_narrow" PARAMETERS
    "\n" HEAD("2", "1") "    ld.global.u32 %r4, [%d12];\n"
                        "    and.b32 %r5, %r4, 0x7fffffff;\n"
                        "    shr.u32 %r6, %r4, 16;\n"
                        "    setp.gt.u32 %p, %r5, 0x7f800000;\n"
                        "    or.b32 %r7, %r6, 0x40;\n"
                        "    @%p bra STORE;\n"
                        "    and.b32 %r6, %r6, 1;\n"
                        "    add.u32 %r4, %r4, 0x7fff;\n"
                        "    add.u32 %r4, %r4, %r6;\n"
                        "    shr.u32 %r7, %r4, 16;\n"
                        "STORE:\n"
                        "    cvt.u16.u32 %h, %r7;\n"
                        "    st.global.u16 [%d13], %h;\n" TAIL
                        ".visible .entry bedplate_widen" PARAMETERS
                        "\n" HEAD("1", "2") "    ld.global.u16 %h, [%d12];\n"
                                            "    cvt.u32.u16 %r4, %h;\n"
                                            "    shl.b32 %r4, %r4, 16;\n"
                                            "    st.global.u32 [%d13], %r4;\n" TAIL;

/* Loads the kernels with the first plan; locked, so that two threads do not. */
static int32_t load(bp_cuda_device *device) {
    bp_cu_result result = BP_CU_SUCCESS;
    bp_cuda_current(device);
    pthread_mutex_lock(&device->base.lock);
    if (!device->convert_module)
        result = bp_cu.module_load(&device->convert_module, CONVERT_PTX, 0, NULL, NULL);
    if (result == BP_CU_SUCCESS && !device->narrow)
        result = bp_cu.module_function(&device->narrow, device->convert_module, "bedplate_narrow");
    if (result == BP_CU_SUCCESS && !device->widen)
        result = bp_cu.module_function(&device->widen, device->convert_module, "bedplate_widen");
    /* Loading is lazy, and would else happen inside a launch. */
    if (result == BP_CU_SUCCESS)
        result = bp_cu.function_load(device->narrow);
    if (result == BP_CU_SUCCESS)
        result = bp_cu.function_load(device->widen);
    pthread_mutex_unlock(&device->base.lock);
    bp_cuda_notice(device, result);
    return bp_cuda_check(result, "loading the kernels of convert");
}

static int32_t plan(bp_cpu_plan *plan) {
    const bp_cpu_tensor *x = &plan->tensors[X], *out = &plan->tensors[OUT];
    if (x->rank != 2 || out->rank != 2)
        return bp_fail(BP_INVALID_ARGUMENT, "convert wants matrices, got rank %u and %u", x->rank,
                       out->rank);
    if (x->shape[0] != out->shape[0] || x->shape[1] != out->shape[1])
        return bp_fail(BP_INVALID_ARGUMENT, "convert has x [%lld,%lld] but out [%lld,%lld]",
                       (long long)x->shape[0], (long long)x->shape[1], (long long)out->shape[0],
                       (long long)out->shape[1]);
    int widens = x->dtype == BP_DTYPE_BF16 && out->dtype == BP_DTYPE_F32;
    int narrows = x->dtype == BP_DTYPE_F32 && out->dtype == BP_DTYPE_BF16;
    if (!widens && !narrows)
        return bp_fail(BP_UNSUPPORTED, "convert goes between f32 and bf16, got dtype 0x%x to 0x%x",
                       x->dtype, out->dtype);
    if (x->stride[1] != 1 || out->stride[1] != 1)
        return bp_fail(BP_UNSUPPORTED,
                       "convert wants dense rows, got element strides %lld and %lld",
                       (long long)x->stride[1], (long long)out->stride[1]);
    if (!bp_cpu_is_count(&plan->tensors[COUNT]))
        return bp_fail(BP_INVALID_ARGUMENT, "count of convert must be u32 [1]");
    plan->writes = 1u << OUT;
    plan->library = "bedplate PTX";
    return load(bp_cuda_device_of(plan->device));
}

static int32_t issue(bp_cuda_device *device, bp_cu_stream stream, const bp_cpu_binding *binding) {
    const bp_cpu_tensor *x = &binding->plan->tensors[X], *out = &binding->plan->tensors[OUT];
    if (x->bytes == 0)
        return BP_OK;
    uint64_t given[] = {(uintptr_t)binding->addresses[OUT],
                        (uintptr_t)binding->addresses[X],
                        (uintptr_t)binding->addresses[COUNT],
                        (uint64_t)x->shape[0],
                        (uint64_t)x->shape[1],
                        (uint64_t)out->stride[0],
                        (uint64_t)x->stride[0]};
    size_t bytes = sizeof(given);
    void *extra[] = {BP_CU_LAUNCH_PARAM_BUFFER_POINTER, given, BP_CU_LAUNCH_PARAM_BUFFER_SIZE,
                     &bytes, BP_CU_LAUNCH_PARAM_END};
    bp_cu_function function = x->dtype == BP_DTYPE_F32 ? device->narrow : device->widen;
    unsigned blocks = x->shape[0] < MOST_BLOCKS ? (unsigned)x->shape[0] : MOST_BLOCKS;
    bp_cu_result result =
        bp_cu.launch(function, blocks, 1, 1, THREADS, 1, 1, 0, stream, NULL, extra);
    bp_cuda_notice(device, result);
    return bp_cuda_check(result, "convert was refused");
}

const bp_cuda_op bp_cuda_convert = {
    .base = {.id = BP_OP_CONVERT,
             .name = "convert",
             .attribute_bytes = sizeof(bp_convert_attributes),
             .tensors = 3,
             .optional = 1u << COUNT,
             .plan = plan},
    .issue = issue,
};
