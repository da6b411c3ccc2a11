/*
 * Compares abi.h with a real cuda.h, where there is one; compiled by `make device` and by nothing
 * else (`g++ -std=c++17 -fsyntax-only -I<folder of cuda.h> check.cpp`). A mismatch does not
 * compile.
 *
 * Signatures are compared by number, size and pointerness of their parameters, because the names of
 * the types are ours.
 */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#undef __CUDA_API_VERSION_INTERNAL

#define _Alignas(bytes) alignas(bytes)
#include "abi.h"

#include <type_traits>

template <typename Function> struct Shape;
template <typename Result, typename... Parameters> struct Shape<Result (*)(Parameters...)> {
    static constexpr int count = sizeof...(Parameters);
    static constexpr int sizes[] = {sizeof(Parameters)..., 0};
    static constexpr bool pointers[] = {std::is_pointer_v<Parameters>..., false};
};

template <typename Ours, typename Theirs> constexpr bool same_shape() {
    if (Shape<Ours>::count != Shape<Theirs>::count)
        return false;
    for (int i = 0; i < Shape<Ours>::count; i++)
        if (Shape<Ours>::sizes[i] != Shape<Theirs>::sizes[i] ||
            Shape<Ours>::pointers[i] != Shape<Theirs>::pointers[i])
            return false;
    return true;
}

#define SAME_FUNCTION(need, field, symbol, parameters)                                             \
    static_assert(same_shape<bp_cu_result(*) parameters, decltype(&::symbol)>(), #symbol);
BP_CUDA_FUNCTIONS(SAME_FUNCTION)

#define SAME(ours, theirs) static_assert((long)(ours) == (long)(theirs), #theirs)
#define SAME_RESULT(name)  SAME(BP_CU_##name, CUDA_ERROR_##name)
SAME_RESULT(INVALID_VALUE);
SAME_RESULT(OUT_OF_MEMORY);
SAME_RESULT(NOT_INITIALIZED);
SAME_RESULT(DEINITIALIZED);
SAME_RESULT(NO_DEVICE);
SAME_RESULT(INVALID_IMAGE);
SAME_RESULT(INVALID_CONTEXT);
SAME_RESULT(NO_BINARY_FOR_GPU);
SAME_RESULT(ECC_UNCORRECTABLE);
SAME_RESULT(INVALID_PTX);
SAME_RESULT(NVLINK_UNCORRECTABLE);
SAME_RESULT(UNSUPPORTED_PTX_VERSION);
SAME_RESULT(CONTAINED);
SAME_RESULT(INVALID_HANDLE);
SAME_RESULT(NOT_FOUND);
SAME_RESULT(NOT_READY);
SAME_RESULT(ILLEGAL_ADDRESS);
SAME_RESULT(LAUNCH_OUT_OF_RESOURCES);
SAME_RESULT(LAUNCH_TIMEOUT);
SAME_RESULT(CONTEXT_IS_DESTROYED);
SAME_RESULT(ASSERT);
SAME_RESULT(HOST_MEMORY_ALREADY_REGISTERED);
SAME_RESULT(HARDWARE_STACK_ERROR);
SAME_RESULT(ILLEGAL_INSTRUCTION);
SAME_RESULT(MISALIGNED_ADDRESS);
SAME_RESULT(INVALID_ADDRESS_SPACE);
SAME_RESULT(INVALID_PC);
SAME_RESULT(LAUNCH_FAILED);
SAME_RESULT(NOT_PERMITTED);
SAME_RESULT(NOT_SUPPORTED);
SAME_RESULT(STREAM_CAPTURE_UNSUPPORTED);
SAME_RESULT(STREAM_CAPTURE_INVALIDATED);
SAME_RESULT(FUNCTION_NOT_LOADED);
SAME_RESULT(UNKNOWN);

#define SAME_ATTRIBUTE(name) SAME(BP_CU_ATTRIBUTE_##name, CU_DEVICE_ATTRIBUTE_##name)
SAME_ATTRIBUTE(MAX_THREADS_PER_BLOCK);
SAME_ATTRIBUTE(MAX_BLOCK_DIM_X);
SAME_ATTRIBUTE(MAX_GRID_DIM_X);
SAME_ATTRIBUTE(MULTIPROCESSOR_COUNT);
SAME_ATTRIBUTE(PCI_BUS_ID);
SAME_ATTRIBUTE(L2_CACHE_SIZE);
SAME_ATTRIBUTE(COMPUTE_CAPABILITY_MAJOR);
SAME_ATTRIBUTE(COMPUTE_CAPABILITY_MINOR);
SAME_ATTRIBUTE(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
SAME_ATTRIBUTE(HOST_REGISTER_SUPPORTED);
SAME_ATTRIBUTE(VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
SAME_ATTRIBUTE(HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
SAME_ATTRIBUTE(MEMORY_POOLS_SUPPORTED);
SAME_ATTRIBUTE(CLUSTER_LAUNCH);
SAME_ATTRIBUTE(CAN_USE_64_BIT_STREAM_MEM_OPS);
SAME_ATTRIBUTE(TENSOR_MAP_ACCESS_SUPPORTED);

#define SAME_NUMBER(name) SAME(BP_CU_##name, CU_##name)
SAME_NUMBER(STREAM_NON_BLOCKING);
SAME_NUMBER(STREAM_WAIT_VALUE_GEQ);
SAME_NUMBER(STREAM_WRITE_VALUE_DEFAULT);
SAME_NUMBER(STREAM_CAPTURE_MODE_RELAXED);
SAME_NUMBER(EVENT_DISABLE_TIMING);
SAME_NUMBER(MEMHOSTALLOC_PORTABLE);
SAME_NUMBER(MEMHOSTALLOC_DEVICEMAP);
SAME_NUMBER(MEMHOSTREGISTER_PORTABLE);
SAME_NUMBER(MEMHOSTREGISTER_DEVICEMAP);
SAME_NUMBER(JIT_ERROR_LOG_BUFFER);
SAME_NUMBER(JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
SAME_NUMBER(LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
SAME_NUMBER(MEMPOOL_ATTR_RELEASE_THRESHOLD);
SAME_NUMBER(MEM_ALLOCATION_TYPE_PINNED);
SAME_NUMBER(MEM_LOCATION_TYPE_DEVICE);
SAME_NUMBER(MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
SAME_NUMBER(MEM_ACCESS_FLAGS_PROT_READWRITE);
SAME_NUMBER(MEM_ALLOC_GRANULARITY_MINIMUM);
SAME(BP_CU_FUNC_MAX_THREADS_PER_BLOCK, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME(BP_CU_FUNC_SHARED_SIZE_BYTES, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
SAME(BP_CU_FUNC_NUM_REGS, CU_FUNC_ATTRIBUTE_NUM_REGS);
SAME(BP_CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME(BP_CU_FUNC_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
     CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);

#define SAME_FIELD(ours, field, theirs, their_field)                                               \
    static_assert(offsetof(ours, field) == offsetof(theirs, their_field), #their_field)
#define SAME_SIZE(ours, theirs) static_assert(sizeof(ours) == sizeof(theirs), #theirs)
SAME_SIZE(bp_cu_uuid, CUuuid);
SAME_SIZE(bp_cu_location, CUmemLocation);
SAME_SIZE(bp_cu_allocation_wish, CUmemAllocationProp);
SAME_FIELD(bp_cu_allocation_wish, type, CUmemAllocationProp, type);
SAME_FIELD(bp_cu_allocation_wish, handle_types, CUmemAllocationProp, requestedHandleTypes);
SAME_FIELD(bp_cu_allocation_wish, location, CUmemAllocationProp, location);
SAME_SIZE(bp_cu_access, CUmemAccessDesc);
SAME_FIELD(bp_cu_access, flags, CUmemAccessDesc, flags);
SAME_SIZE(bp_cu_launch_attribute, CUlaunchAttribute);
SAME_FIELD(bp_cu_launch_attribute, value, CUlaunchAttribute, value);
SAME_SIZE(bp_cu_launch_config, CUlaunchConfig);
SAME_FIELD(bp_cu_launch_config, block, CUlaunchConfig, blockDimX);
SAME_FIELD(bp_cu_launch_config, shared_bytes, CUlaunchConfig, sharedMemBytes);
SAME_FIELD(bp_cu_launch_config, stream, CUlaunchConfig, hStream);
SAME_FIELD(bp_cu_launch_config, attributes, CUlaunchConfig, attrs);
SAME_FIELD(bp_cu_launch_config, attribute_count, CUlaunchConfig, numAttrs);
SAME_SIZE(bp_cu_tensor_map, CUtensorMap);
