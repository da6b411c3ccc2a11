/*
 * matmul by cuBLASLt: a [M,K], b [K,N], bias? f32 [N], residual? f32 [M,N], out [M,N]; sums are f32
 * and stay f32 (no TF32). a and b are both f32, both bf16 or both f16; out is that or f32.
 *
 * cuBLASLt speaks of columns, so it is asked for the transposed product, out^T = b^T a^T, where our
 * rows are its columns. b may be dense in either direction (row-major weights, or a transposed view
 * of them); a, residual and out are dense in their rows. What it cannot do is BP_UNSUPPORTED:
 * count, which it would have to read on the device, bias or residual under an out that is not f32,
 * K of 0.
 *
 * The algorithm is chosen by plan for these shapes and for addresses at multiples of 16, to which
 * bindings are held, so that the same inputs give the same bits: reductions over parts of K lie in
 * the workspace and are added up in one order.
 */
#include "blas.h"
#include "op.h"

#include <stdlib.h>

enum { A, B, BIAS, RESIDUAL, COUNT, OUT };

/* What NVIDIA recommends for Hopper; a plan says how much of it its algorithm wants. */
#define MOST_WORKSPACE (32ull << 20)
#define ADDRESS_BYTES  16u
/* Documented for the workspace. */
#define WORKSPACE_ALIGNMENT 256u

typedef struct bp_cuda_product {
    bp_blas_description description;
    /* b^T, a^T, residual^T (or out^T), out^T. */
    bp_blas_layout b, a, c, d;
    bp_blas_algorithm algorithm;
} bp_cuda_product;

static int type_of(uint32_t dtype) {
    return dtype == BP_DTYPE_F32   ? BP_BLAS_R_32F
           : dtype == BP_DTYPE_F16 ? BP_BLAS_R_16F
                                   : BP_BLAS_R_16BF;
}

static int32_t check_dtypes(const bp_cpu_tensor *t) {
    uint32_t dtype = t[A].dtype;
    if (dtype != BP_DTYPE_F32 && dtype != BP_DTYPE_BF16 && dtype != BP_DTYPE_F16)
        return bp_fail(BP_UNSUPPORTED, "matmul does not take a of dtype 0x%x", dtype);
    if (t[B].dtype != dtype)
        return bp_fail(BP_UNSUPPORTED, "matmul does not take a of dtype 0x%x with b of 0x%x", dtype,
                       t[B].dtype);
    if (t[OUT].dtype != dtype && t[OUT].dtype != BP_DTYPE_F32)
        return bp_fail(BP_UNSUPPORTED, "matmul of dtype 0x%x does not give out of 0x%x", dtype,
                       t[OUT].dtype);
    if ((t[BIAS].dtype || t[RESIDUAL].dtype) && t[OUT].dtype != BP_DTYPE_F32)
        return bp_fail(BP_UNSUPPORTED, "matmul takes bias and residual with f32 out, not with 0x%x",
                       t[OUT].dtype);
    for (int i = BIAS; i <= RESIDUAL; i++)
        if (t[i].dtype && t[i].dtype != BP_DTYPE_F32)
            return bp_fail(BP_UNSUPPORTED, "matmul does not take %s of dtype 0x%x",
                           i == BIAS ? "bias" : "residual", t[i].dtype);
    return BP_OK;
}

static int32_t check_matrix(const bp_cpu_tensor *tensor, const char *name, int64_t rows,
                            int64_t columns) {
    if (tensor->rank != 2)
        return bp_fail(BP_INVALID_ARGUMENT, "matmul wants %s of rank 2, got %u", name,
                       tensor->rank);
    if ((rows >= 0 && tensor->shape[0] != rows) || (columns >= 0 && tensor->shape[1] != columns))
        return bp_fail(BP_INVALID_ARGUMENT, "matmul has %s [%lld,%lld], not [%lld,%lld]", name,
                       (long long)tensor->shape[0], (long long)tensor->shape[1], (long long)rows,
                       (long long)columns);
    return BP_OK;
}

/* Rows dense inside, and apart from each other. */
static int32_t check_rows(const bp_cpu_tensor *tensor, const char *name) {
    if ((tensor->shape[1] > 1 && tensor->stride[1] != 1) ||
        (tensor->shape[0] > 1 && tensor->stride[0] < tensor->shape[1]))
        return bp_fail(BP_UNSUPPORTED, "matmul wants dense rows of %s, got strides %lld and %lld",
                       name, (long long)tensor->stride[0], (long long)tensor->stride[1]);
    return BP_OK;
}

static int32_t check_shapes(const bp_cpu_tensor *t) {
    int32_t status = check_matrix(&t[A], "a", -1, -1);
    if (status == BP_OK)
        status = check_matrix(&t[B], "b", t[A].shape[1], -1);
    if (status == BP_OK)
        status = check_matrix(&t[OUT], "out", t[A].shape[0], t[B].shape[1]);
    if (status == BP_OK && t[RESIDUAL].dtype)
        status = check_matrix(&t[RESIDUAL], "residual", t[A].shape[0], t[B].shape[1]);
    if (status)
        return status;
    if (t[BIAS].dtype && (t[BIAS].rank != 1 || t[BIAS].shape[0] != t[OUT].shape[1]))
        return bp_fail(BP_INVALID_ARGUMENT, "matmul wants bias [%lld], got rank %u of %lld",
                       (long long)t[OUT].shape[1], t[BIAS].rank, (long long)t[BIAS].shape[0]);
    if (t[BIAS].dtype && t[BIAS].shape[0] > 1 && t[BIAS].stride[0] != 1)
        return bp_fail(BP_UNSUPPORTED, "matmul wants a dense bias, got stride %lld",
                       (long long)t[BIAS].stride[0]);
    if (t[COUNT].dtype)
        return bp_cpu_is_count(&t[COUNT])
                   ? bp_fail(BP_UNSUPPORTED, "matmul of cuBLASLt reads no count on the device")
                   : bp_fail(BP_INVALID_ARGUMENT, "count of matmul must be u32 [1]");
    return BP_OK;
}

static int32_t check_strides(const bp_cpu_tensor *t) {
    int32_t status = check_rows(&t[A], "a");
    if (status == BP_OK)
        status = check_rows(&t[OUT], "out");
    if (status == BP_OK && t[RESIDUAL].dtype)
        status = check_rows(&t[RESIDUAL], "residual");
    if (status == BP_OK && t[A].shape[1] == 0 && t[OUT].bytes)
        status = bp_fail(BP_UNSUPPORTED, "matmul of cuBLASLt wants a K of at least 1");
    return status;
}

/* The distance of rows; of a single row any that is wide enough. */
static int64_t leading(const bp_cpu_tensor *tensor) {
    return tensor->shape[0] > 1 ? tensor->stride[0] : tensor->shape[1];
}

static bp_blas_result make_rows(bp_blas_layout *layout, const bp_cpu_tensor *tensor) {
    return bp_blas.layout_create(layout, type_of(tensor->dtype), (uint64_t)tensor->shape[1],
                                 (uint64_t)tensor->shape[0], leading(tensor));
}

/* b by rows is b^T by columns; b by columns has to be transposed. */
static int32_t make_b(bp_cuda_product *product, const bp_cpu_tensor *b) {
    int64_t rows = b->shape[0], columns = b->shape[1];
    const int32_t transposed = BP_BLAS_OP_T;
    if ((columns <= 1 || b->stride[1] == 1) && (rows <= 1 || b->stride[0] >= columns))
        return bp_blas_check(make_rows(&product->b, b), "describing b");
    if ((rows > 1 && b->stride[0] != 1) || b->stride[1] < rows)
        return bp_fail(BP_UNSUPPORTED,
                       "matmul wants b dense in a dimension, got strides %lld and %lld",
                       (long long)b->stride[0], (long long)b->stride[1]);
    bp_blas_result result = bp_blas.layout_create(&product->b, type_of(b->dtype), (uint64_t)rows,
                                                  (uint64_t)columns, b->stride[1]);
    if (result == BP_BLAS_SUCCESS)
        result = bp_blas.description_set(product->description, BP_BLAS_DESC_TRANSA, &transposed,
                                         sizeof(transposed));
    return bp_blas_check(result, "describing b");
}

static bp_blas_result set_bias(const bp_cuda_product *product, const void *address) {
    return bp_blas.description_set(product->description, BP_BLAS_DESC_BIAS_POINTER, &address,
                                   sizeof(address));
}

static int32_t describe(bp_cuda_product *product, const bp_cpu_tensor *t) {
    const uint32_t epilogue = BP_BLAS_EPILOGUE_BIAS;
    bp_blas_result result =
        bp_blas.description_create(&product->description, BP_BLAS_COMPUTE_32F, BP_BLAS_R_32F);
    if (result == BP_BLAS_SUCCESS && t[BIAS].dtype)
        result = bp_blas.description_set(product->description, BP_BLAS_DESC_EPILOGUE, &epilogue,
                                         sizeof(epilogue));
    /* Any address that is aligned as bindings are: the choice looks at nothing else of it. */
    if (result == BP_BLAS_SUCCESS && t[BIAS].dtype)
        result = set_bias(product, (const void *)(uintptr_t)ADDRESS_BYTES);
    if (result == BP_BLAS_SUCCESS)
        result = make_rows(&product->a, &t[A]);
    if (result == BP_BLAS_SUCCESS)
        result = make_rows(&product->c, t[RESIDUAL].dtype ? &t[RESIDUAL] : &t[OUT]);
    if (result == BP_BLAS_SUCCESS)
        result = make_rows(&product->d, &t[OUT]);
    return result ? bp_blas_check(result, "describing a matmul") : make_b(product, &t[B]);
}

static bp_blas_result prefer(bp_blas_preference preference) {
    const uint64_t most = MOST_WORKSPACE;
    const uint32_t alignment = ADDRESS_BYTES, schemes = BP_BLAS_REDUCTION_COMPUTE_TYPE;
    bp_blas_result result =
        bp_blas.preference_set(preference, BP_BLAS_PREF_MAX_WORKSPACE_BYTES, &most, sizeof(most));
    if (result == BP_BLAS_SUCCESS)
        result = bp_blas.preference_set(preference, BP_BLAS_PREF_REDUCTION_SCHEME_MASK, &schemes,
                                        sizeof(schemes));
    for (int i = BP_BLAS_PREF_MIN_ALIGNMENT_A_BYTES;
         i <= BP_BLAS_PREF_MIN_ALIGNMENT_D_BYTES && result == BP_BLAS_SUCCESS; i++)
        result = bp_blas.preference_set(preference, i, &alignment, sizeof(alignment));
    return result;
}

static int32_t choose(bp_blas_handle handle, bp_cuda_product *product, uint64_t *workspace_bytes) {
    bp_blas_preference preference = NULL;
    bp_blas_found found = {.state = BP_BLAS_NOT_SUPPORTED};
    int count = 0;
    bp_blas_result result = bp_blas.preference_create(&preference);
    if (result == BP_BLAS_SUCCESS)
        result = prefer(preference);
    if (result == BP_BLAS_SUCCESS)
        result = bp_blas.find(handle, product->description, product->b, product->a, product->c,
                              product->d, preference, 1, &found, &count);
    if (preference)
        bp_blas.preference_destroy(preference);
    if (result == BP_BLAS_SUCCESS)
        result = count ? found.state : BP_BLAS_NOT_SUPPORTED;
    product->algorithm = found.algorithm;
    *workspace_bytes = found.workspace_bytes;
    return bp_blas_check(result, "cuBLASLt has no matmul of these shapes");
}

/* The device's handle, made by its first plan. */
static int32_t handle_of(bp_cuda_device *device, bp_blas_handle *handle) {
    int32_t status = bp_blas_open();
    if (status)
        return status;
    bp_cuda_current(device);
    pthread_mutex_lock(&device->base.lock);
    bp_blas_result result = device->blas ? BP_BLAS_SUCCESS : bp_blas.create(&device->blas);
    *handle = device->blas;
    pthread_mutex_unlock(&device->base.lock);
    return bp_blas_check(result, "cuBLASLt does not start");
}

static int32_t plan(bp_cpu_plan *plan) {
    bp_blas_handle handle = NULL;
    const bp_cpu_tensor *t = plan->tensors;
    int32_t status = check_shapes(t);
    if (status == BP_OK)
        status = check_dtypes(t);
    if (status == BP_OK)
        status = check_strides(t);
    if (status == BP_OK)
        status = handle_of(bp_cuda_device_of(plan->device), &handle);
    if (status)
        return status;
    plan->writes = 1u << OUT;
    plan->library = bp_blas.name;
    plan->alignment = ADDRESS_BYTES;
    plan->workspace_alignment = WORKSPACE_ALIGNMENT;
    if (t[RESIDUAL].dtype && leading(&t[RESIDUAL]) == leading(&t[OUT]))
        plan->in_place = 1u << RESIDUAL;
    if (t[OUT].bytes == 0)
        return BP_OK;
    bp_cuda_product *product = plan->own = calloc(1, sizeof(*product));
    if (!product)
        return bp_fail(BP_OUT_OF_MEMORY, "no host memory for a plan");
    status = describe(product, t);
    return status ? status : choose(handle, product, &plan->workspace_bytes);
}

static void release(bp_cpu_plan *plan) {
    bp_cuda_product *product = plan->own;
    if (!product)
        return;
    bp_blas_layout layouts[] = {product->a, product->b, product->c, product->d};
    for (int i = 0; i < 4; i++)
        if (layouts[i])
            bp_blas.layout_destroy(layouts[i]);
    if (product->description)
        bp_blas.description_destroy(product->description);
    free(product);
}

static int32_t issue(bp_cuda_device *device, bp_cu_stream stream, const bp_cpu_binding *binding) {
    static const float ONE = 1.0f, ZERO = 0.0f;
    const bp_cuda_product *product = binding->plan->own;
    unsigned char *const *at = binding->addresses;
    bp_blas_result result = BP_BLAS_SUCCESS;
    if (!product)
        return BP_OK;
    /* Under the device's lock, and read by the call that follows. */
    if (at[BIAS])
        result = set_bias(product, at[BIAS]);
    const unsigned char *c = at[RESIDUAL] ? at[RESIDUAL] : at[OUT];
    if (result == BP_BLAS_SUCCESS)
        result = bp_blas.matmul(device->blas, product->description, &ONE, at[B], product->b, at[A],
                                product->a, at[RESIDUAL] ? &ONE : &ZERO, c, product->c, at[OUT],
                                product->d, &product->algorithm, binding->workspace,
                                binding->plan->workspace_bytes, stream);
    if (result)
        bp_cuda_notice(device, bp_cu.stream_query(device->stream));
    return bp_blas_check(result, "matmul was refused");
}

void bp_cuda_ops_close(bp_cuda_device *device) {
    if (device->blas)
        bp_blas.destroy(device->blas);
    if (device->convert_module)
        bp_cu.module_unload(device->convert_module);
}

const bp_cuda_op bp_cuda_matmul = {
    .base = {.id = BP_OP_MATMUL,
             .name = "matmul",
             .attribute_bytes = sizeof(bp_matmul_attributes),
             .tensors = 6,
             .optional = 1u << BIAS | 1u << RESIDUAL | 1u << COUNT,
             .plan = plan,
             .release = release},
    .issue = issue,
};

const bp_cpu_op *const bp_cpu_op_table[] = {&bp_cuda_matmul.base, &bp_cuda_convert.base};
const uint32_t bp_cpu_op_count = sizeof(bp_cpu_op_table) / sizeof(bp_cpu_op_table[0]);
