/*
 * bp.tensor_map.1 by cuTensorMapEncodeTiled. Our arrays are outermost first and in elements, the
 * driver's innermost first, with strides in bytes that leave out the innermost. What the driver
 * alone knows (strides at multiples of 16 bytes, a swizzle against the box) it refuses itself.
 */
#include "tensor_map.h"

#include "../adopt.h"
#include "../chassis/memory.h"
#include "../cpu/plan.h"

#define MOST_BOX  256u
#define MOST_STEP 8u

typedef struct map_request {
    uint32_t rank, type, swizzle;
    uint32_t element_bytes;
    uint64_t size[BP_MAX_TENSOR_MAP_RANK], stride_bytes[BP_MAX_TENSOR_MAP_RANK];
    uint32_t box[BP_MAX_TENSOR_MAP_RANK], step[BP_MAX_TENSOR_MAP_RANK];
} map_request;

static int32_t type_of(uint32_t dtype, uint32_t *type) {
    static const uint32_t TYPES[][2] = {
        {BP_DTYPE_U8, BP_CU_TENSOR_MAP_UINT8},     {BP_DTYPE_I8, BP_CU_TENSOR_MAP_UINT8},
        {BP_DTYPE_U32, BP_CU_TENSOR_MAP_UINT32},   {BP_DTYPE_I32, BP_CU_TENSOR_MAP_INT32},
        {BP_DTYPE_U64, BP_CU_TENSOR_MAP_UINT64},   {BP_DTYPE_I64, BP_CU_TENSOR_MAP_INT64},
        {BP_DTYPE_F16, BP_CU_TENSOR_MAP_FLOAT16},  {BP_DTYPE_F32, BP_CU_TENSOR_MAP_FLOAT32},
        {BP_DTYPE_BF16, BP_CU_TENSOR_MAP_BFLOAT16}};
    for (uint32_t i = 0; i < sizeof(TYPES) / sizeof(TYPES[0]); i++)
        if (TYPES[i][0] == dtype) {
            *type = TYPES[i][1];
            return BP_OK;
        }
    return bp_fail(BP_UNSUPPORTED, "a tensor map of dtype 0x%x", dtype);
}

/* One dimension, `place` counted from the innermost. */
static int32_t read_dimension(const bp_tensor *tensor, const bp_tensor_map_info *info,
                              uint32_t place, uint64_t dense, map_request *request) {
    uint32_t axis = tensor->rank - 1 - place;
    int64_t stride = tensor->stride ? tensor->stride[axis] : (int64_t)dense;
    request->box[place] = info->tile[axis];
    request->step[place] = info->step ? info->step[axis] : 1;
    if (tensor->shape[axis] < 1 || stride < 1)
        return bp_fail(BP_INVALID_ARGUMENT, "dimension %u has %lld elements and the stride %lld",
                       axis, (long long)tensor->shape[axis], (long long)stride);
    if (place == 0 && stride != 1)
        return bp_fail(BP_UNSUPPORTED, "the last dimension has the stride %lld; it must be dense",
                       (long long)stride);
    if (request->box[place] < 1 || request->box[place] > MOST_BOX || request->step[place] < 1 ||
        request->step[place] > MOST_STEP)
        return bp_fail(BP_INVALID_ARGUMENT,
                       "a box of %u elements in steps of %u in dimension %u; at most %u and %u",
                       request->box[place], request->step[place], axis, MOST_BOX, MOST_STEP);
    request->size[place] = (uint64_t)tensor->shape[axis];
    if (__builtin_mul_overflow((uint64_t)stride, request->element_bytes,
                               &request->stride_bytes[place]))
        return bp_fail(BP_INVALID_ARGUMENT, "the stride %lld overflows", (long long)stride);
    return BP_OK;
}

/* Bytes from the first to the end of the last element. */
static int32_t extent(const map_request *request, uint64_t *bytes) {
    *bytes = request->element_bytes;
    for (uint32_t i = 0; i < request->rank; i++) {
        uint64_t reach;
        if (__builtin_mul_overflow(request->size[i] - 1, request->stride_bytes[i], &reach) ||
            __builtin_add_overflow(*bytes, reach, bytes))
            return bp_fail(BP_INVALID_ARGUMENT, "the extent of the tensor overflows");
    }
    return BP_OK;
}

static int32_t read_request(const bp_tensor_map_info *info, const bp_tensor *tensor,
                            map_request *request) {
    uint32_t group = 1;
    if (tensor->rank < 1 || tensor->rank > BP_MAX_TENSOR_MAP_RANK || !tensor->shape || !info->tile)
        return bp_fail(BP_INVALID_ARGUMENT,
                       "a tensor map of rank %u; 1 to %u are known, with a shape and a box",
                       tensor->rank, BP_MAX_TENSOR_MAP_RANK);
    if (info->swizzle > BP_TENSOR_MAP_SWIZZLE_128 || info->pad)
        return bp_fail(BP_INVALID_ARGUMENT, "the swizzle %u is unknown", info->swizzle);
    int32_t status = type_of(tensor->dtype, &request->type);
    if (status)
        return status;
    request->rank = tensor->rank;
    request->swizzle = info->swizzle;
    request->element_bytes = bp_dtype_bytes(tensor->dtype, &group);
    uint64_t dense = 1;
    for (uint32_t place = 0; place < tensor->rank; place++) {
        status = read_dimension(tensor, info, place, dense, request);
        if (status)
            return status;
        if (__builtin_mul_overflow(dense, request->size[place], &dense) || dense >> 62)
            return bp_fail(BP_INVALID_ARGUMENT, "the shape of the tensor overflows");
    }
    return BP_OK;
}

/* Under the lock. */
static int32_t encode_on(bp_cuda_device *device, const map_request *request, const bp_range *range,
                         void *map) {
    uint64_t bytes = 0;
    bp_span span;
    bp_cu_tensor_map made;
    int32_t status = extent(request, &bytes);
    if (status == BP_OK)
        status = bp_memory_resolve(&device->base, range, "the tensor", &span);
    if (status)
        return status;
    if (span.bytes < bytes)
        return bp_fail(BP_INVALID_ARGUMENT,
                       "the tensor's range has %llu bytes, it reaches over %llu",
                       (unsigned long long)span.bytes, (unsigned long long)bytes);
    bp_cu_result result = bp_cu.tensor_map_encode(
        &made, request->type, request->rank, (void *)(uintptr_t)bp_span_place(&span), request->size,
        request->stride_bytes + 1, request->box, request->step, BP_CU_TENSOR_MAP_INTERLEAVE_NONE,
        request->swizzle, BP_CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        BP_CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    bp_cuda_notice(device, result);
    if (result == BP_CU_SUCCESS)
        memcpy(map, &made, sizeof(made));
    return bp_cuda_check(result, "the tensor map was refused");
}

static int32_t encode(uint64_t handle, const bp_tensor_map_info *given, void *map) {
    bp_tensor_map_info info;
    bp_tensor tensor;
    map_request request = {0};
    int32_t status = BP_ADOPT(given, &info, "tensor map info");
    if (status == BP_OK)
        status = BP_ADOPT(info.tensor, &tensor, "the tensor of a tensor map");
    if (status == BP_OK && (!map || (uintptr_t)map % 64))
        status = bp_fail(BP_INVALID_ARGUMENT, "a tensor map at %p; it is aligned to 64 bytes", map);
    if (status == BP_OK)
        status = read_request(&info, &tensor, &request);
    if (status)
        return status;
    bp_cuda_device *device = bp_cuda_enter(handle);
    if (!device)
        return BP_INVALID_ARGUMENT;
    status = bp_device_alive(&device->base);
    if (status == BP_OK && !device->facts->tensor_maps)
        status = bp_fail(BP_UNSUPPORTED, "this device has no tensor maps");
    if (status == BP_OK) {
        pthread_mutex_lock(&device->base.lock);
        status = encode_on(device, &request, &tensor.range, map);
        pthread_mutex_unlock(&device->base.lock);
        bp_cuda_settle(device);
    }
    bp_device_leave(&device->base);
    return status;
}

const bp_tensor_maps bp_cuda_tensor_maps_table = {
    .head = {1, sizeof(bp_tensor_maps)},
    .encode = encode,
};
