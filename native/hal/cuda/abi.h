/*
 * Facts of the CUDA driver's ABI: the types, numbers and functions that this backend uses, and no
 * more. Written here so that no toolkit is needed to build; `cuda/check.c` compares every line with
 * a real cuda.h where one is there (`make device`).
 *
 * BP_CUDA_FUNCTIONS(F) lists every function once: F(need, field, symbol, parameters), where
 * `symbol` carries the version suffix of the binary and `need` is 1 when the backend cannot do
 * without it. Source: cuda.h of CUDA 13.0; the newest of the needed ones exist since 12.4.
 */
#ifndef BEDPLATE_HAL_CUDA_ABI_H
#define BEDPLATE_HAL_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef int32_t bp_cu_result;
typedef int32_t bp_cu_device;
typedef uint64_t bp_cu_address;
typedef uint64_t bp_cu_allocation;
typedef struct bp_cu_context_s *bp_cu_context;
typedef struct bp_cu_stream_s *bp_cu_stream;
typedef struct bp_cu_event_s *bp_cu_event;
typedef struct bp_cu_module_s *bp_cu_module;
typedef struct bp_cu_function_s *bp_cu_function;
typedef struct bp_cu_graph_s *bp_cu_graph;
typedef struct bp_cu_graph_exec_s *bp_cu_graph_exec;
typedef struct bp_cu_pool_s *bp_cu_pool;

typedef struct bp_cu_uuid {
    unsigned char bytes[16];
} bp_cu_uuid;

typedef struct bp_cu_location {
    uint32_t type;
    int32_t id;
} bp_cu_location;

typedef struct bp_cu_allocation_wish {
    uint32_t type;
    uint32_t handle_types;
    bp_cu_location location;
    void *win32_meta;
    unsigned char compression, rdma_capable;
    uint16_t usage;
    unsigned char reserved[4];
} bp_cu_allocation_wish;

typedef struct bp_cu_access {
    bp_cu_location location;
    uint32_t flags;
} bp_cu_access;

typedef struct bp_cu_launch_attribute {
    uint32_t id, pad;
    union {
        char bytes[64];
        uint32_t cluster[3];
    } value;
} bp_cu_launch_attribute;

typedef struct bp_cu_launch_config {
    uint32_t grid[3], block[3];
    uint32_t shared_bytes;
    bp_cu_stream stream;
    bp_cu_launch_attribute *attributes;
    uint32_t attribute_count;
} bp_cu_launch_config;

typedef struct bp_cu_tensor_map {
    _Alignas(64) uint64_t opaque[16];
} bp_cu_tensor_map;

enum {
    BP_CU_SUCCESS = 0,
    BP_CU_INVALID_VALUE = 1,
    BP_CU_OUT_OF_MEMORY = 2,
    BP_CU_NOT_INITIALIZED = 3,
    BP_CU_DEINITIALIZED = 4,
    BP_CU_NO_DEVICE = 100,
    BP_CU_INVALID_IMAGE = 200,
    BP_CU_INVALID_CONTEXT = 201,
    BP_CU_NO_BINARY_FOR_GPU = 209,
    BP_CU_ECC_UNCORRECTABLE = 214,
    BP_CU_INVALID_PTX = 218,
    BP_CU_NVLINK_UNCORRECTABLE = 220,
    BP_CU_UNSUPPORTED_PTX_VERSION = 222,
    BP_CU_CONTAINED = 226,
    BP_CU_INVALID_HANDLE = 400,
    BP_CU_NOT_FOUND = 500,
    BP_CU_NOT_READY = 600,
    BP_CU_ILLEGAL_ADDRESS = 700,
    BP_CU_LAUNCH_OUT_OF_RESOURCES = 701,
    BP_CU_LAUNCH_TIMEOUT = 702,
    BP_CU_CONTEXT_IS_DESTROYED = 709,
    BP_CU_ASSERT = 710,
    BP_CU_HOST_MEMORY_ALREADY_REGISTERED = 712,
    BP_CU_HARDWARE_STACK_ERROR = 714,
    BP_CU_ILLEGAL_INSTRUCTION = 715,
    BP_CU_MISALIGNED_ADDRESS = 716,
    BP_CU_INVALID_ADDRESS_SPACE = 717,
    BP_CU_INVALID_PC = 718,
    BP_CU_LAUNCH_FAILED = 719,
    BP_CU_NOT_PERMITTED = 800,
    BP_CU_NOT_SUPPORTED = 801,
    BP_CU_STREAM_CAPTURE_UNSUPPORTED = 900,
    BP_CU_STREAM_CAPTURE_INVALIDATED = 901,
    BP_CU_FUNCTION_NOT_LOADED = 913,
    BP_CU_UNKNOWN = 999,
};

enum {
    BP_CU_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
    BP_CU_ATTRIBUTE_MAX_BLOCK_DIM_X = 2,
    BP_CU_ATTRIBUTE_MAX_GRID_DIM_X = 5,
    BP_CU_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    BP_CU_ATTRIBUTE_PCI_BUS_ID = 33,
    BP_CU_ATTRIBUTE_L2_CACHE_SIZE = 38,
    BP_CU_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    BP_CU_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    BP_CU_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
    BP_CU_ATTRIBUTE_HOST_REGISTER_SUPPORTED = 99,
    BP_CU_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102,
    BP_CU_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED = 103,
    BP_CU_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115,
    BP_CU_ATTRIBUTE_CLUSTER_LAUNCH = 120,
    BP_CU_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS = 122,
    BP_CU_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED = 127,
};

enum {
    BP_CU_STREAM_NON_BLOCKING = 1,
    BP_CU_STREAM_WAIT_VALUE_GEQ = 0,
    BP_CU_STREAM_WRITE_VALUE_DEFAULT = 0,
    BP_CU_STREAM_CAPTURE_MODE_RELAXED = 2,
    BP_CU_EVENT_DISABLE_TIMING = 2,
    BP_CU_MEMHOSTALLOC_PORTABLE = 1,
    BP_CU_MEMHOSTALLOC_DEVICEMAP = 2,
    BP_CU_MEMHOSTREGISTER_PORTABLE = 1,
    BP_CU_MEMHOSTREGISTER_DEVICEMAP = 2,
    BP_CU_FUNC_MAX_THREADS_PER_BLOCK = 0,
    BP_CU_FUNC_SHARED_SIZE_BYTES = 1,
    BP_CU_FUNC_NUM_REGS = 4,
    BP_CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
    BP_CU_FUNC_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14,
    BP_CU_JIT_ERROR_LOG_BUFFER = 5,
    BP_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
    BP_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4,
    BP_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4,
    BP_CU_MEM_ALLOCATION_TYPE_PINNED = 1,
    BP_CU_MEM_LOCATION_TYPE_DEVICE = 1,
    BP_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1,
    BP_CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3,
    BP_CU_MEM_ALLOC_GRANULARITY_MINIMUM = 0,
};

enum {
    BP_CU_TENSOR_MAP_UINT8 = 0,
    BP_CU_TENSOR_MAP_UINT32 = 2,
    BP_CU_TENSOR_MAP_INT32 = 3,
    BP_CU_TENSOR_MAP_UINT64 = 4,
    BP_CU_TENSOR_MAP_INT64 = 5,
    BP_CU_TENSOR_MAP_FLOAT16 = 6,
    BP_CU_TENSOR_MAP_FLOAT32 = 7,
    BP_CU_TENSOR_MAP_BFLOAT16 = 9,
    BP_CU_TENSOR_MAP_INTERLEAVE_NONE = 0,
    BP_CU_TENSOR_MAP_SWIZZLE_NONE = 0,
    BP_CU_TENSOR_MAP_SWIZZLE_32B = 1,
    BP_CU_TENSOR_MAP_SWIZZLE_64B = 2,
    BP_CU_TENSOR_MAP_SWIZZLE_128B = 3,
    BP_CU_TENSOR_MAP_L2_PROMOTION_L2_128B = 2,
    BP_CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE = 0,
};

/* Keys of the `extra` list of a launch. */
#define BP_CU_LAUNCH_PARAM_END            ((void *)0)
#define BP_CU_LAUNCH_PARAM_BUFFER_POINTER ((void *)1)
#define BP_CU_LAUNCH_PARAM_BUFFER_SIZE    ((void *)2)

/* clang-format off */
#define BP_CUDA_FUNCTIONS(F)                                                                       \
    F(1, init, cuInit, (unsigned flags))                                                           \
    F(1, driver_version, cuDriverGetVersion, (int *version))                                       \
    F(1, device_get, cuDeviceGet, (bp_cu_device *device, int ordinal))                             \
    F(1, device_count, cuDeviceGetCount, (int *count))                                             \
    F(1, device_name, cuDeviceGetName, (char *name, int room, bp_cu_device device))                \
    F(1, device_uuid, cuDeviceGetUuid_v2, (bp_cu_uuid *uuid, bp_cu_device device))                 \
    F(1, device_memory, cuDeviceTotalMem_v2, (size_t *bytes, bp_cu_device device))                 \
    F(1, device_attribute, cuDeviceGetAttribute, (int *value, int attribute, bp_cu_device device)) \
    F(1, context_retain, cuDevicePrimaryCtxRetain, (bp_cu_context *context, bp_cu_device device))  \
    F(1, context_release, cuDevicePrimaryCtxRelease_v2, (bp_cu_device device))                     \
    F(1, context_current, cuCtxGetCurrent, (bp_cu_context *context))                               \
    F(1, context_set, cuCtxSetCurrent, (bp_cu_context context))                                    \
    F(1, context_synchronize, cuCtxSynchronize, (void))                                            \
    F(1, stream_priorities, cuCtxGetStreamPriorityRange, (int *least, int *greatest))              \
    F(1, stream_create, cuStreamCreateWithPriority, (bp_cu_stream *stream, unsigned flags,         \
                                                     int priority))                                \
    F(1, stream_destroy, cuStreamDestroy_v2, (bp_cu_stream stream))                                \
    F(1, stream_query, cuStreamQuery, (bp_cu_stream stream))                                       \
    F(1, stream_synchronize, cuStreamSynchronize, (bp_cu_stream stream))                           \
    F(1, stream_wait_event, cuStreamWaitEvent, (bp_cu_stream stream, bp_cu_event event,            \
                                                unsigned flags))                                   \
    F(0, stream_wait_value, cuStreamWaitValue64_v2, (bp_cu_stream stream, bp_cu_address address,   \
                                                     uint64_t value, unsigned flags))              \
    F(0, stream_write_value, cuStreamWriteValue64_v2, (bp_cu_stream stream, bp_cu_address address, \
                                                       uint64_t value, unsigned flags))            \
    F(0, stream_capturing, cuStreamIsCapturing, (bp_cu_stream stream, int *status))                \
    F(0, capture_begin, cuStreamBeginCapture_v2, (bp_cu_stream stream, unsigned mode))             \
    F(0, capture_end, cuStreamEndCapture, (bp_cu_stream stream, bp_cu_graph *graph))               \
    F(0, graph_instantiate, cuGraphInstantiateWithFlags, (bp_cu_graph_exec *exec,                  \
                                                          bp_cu_graph graph,                       \
                                                          unsigned long long flags))               \
    F(0, graph_upload, cuGraphUpload, (bp_cu_graph_exec exec, bp_cu_stream stream))                \
    F(0, graph_launch, cuGraphLaunch, (bp_cu_graph_exec exec, bp_cu_stream stream))                \
    F(0, graph_exec_destroy, cuGraphExecDestroy, (bp_cu_graph_exec exec))                          \
    F(0, graph_destroy, cuGraphDestroy, (bp_cu_graph graph))                                       \
    F(1, event_create, cuEventCreate, (bp_cu_event *event, unsigned flags))                        \
    F(1, event_destroy, cuEventDestroy_v2, (bp_cu_event event))                                    \
    F(1, event_record, cuEventRecord, (bp_cu_event event, bp_cu_stream stream))                    \
    F(1, event_query, cuEventQuery, (bp_cu_event event))                                           \
    F(1, memory_alloc, cuMemAlloc_v2, (bp_cu_address *address, size_t bytes))                      \
    F(1, memory_free, cuMemFree_v2, (bp_cu_address address))                                       \
    F(1, host_alloc, cuMemHostAlloc, (void **host, size_t bytes, unsigned flags))                  \
    F(1, host_free, cuMemFreeHost, (void *host))                                                   \
    F(1, host_address, cuMemHostGetDevicePointer_v2, (bp_cu_address *address, void *host,          \
                                                      unsigned flags))                             \
    F(1, host_register, cuMemHostRegister_v2, (void *host, size_t bytes, unsigned flags))          \
    F(1, host_unregister, cuMemHostUnregister, (void *host))                                       \
    F(1, copy, cuMemcpyAsync, (bp_cu_address to, bp_cu_address from, size_t bytes,                 \
                               bp_cu_stream stream))                                               \
    F(1, fill_8, cuMemsetD8Async, (bp_cu_address to, unsigned char value, size_t count,            \
                                   bp_cu_stream stream))                                           \
    F(1, fill_16, cuMemsetD16Async, (bp_cu_address to, unsigned short value, size_t count,         \
                                     bp_cu_stream stream))                                         \
    F(1, fill_32, cuMemsetD32Async, (bp_cu_address to, unsigned value, size_t count,               \
                                     bp_cu_stream stream))                                         \
    F(0, pool_default, cuDeviceGetDefaultMemPool, (bp_cu_pool *pool, bp_cu_device device))         \
    F(0, pool_set, cuMemPoolSetAttribute, (bp_cu_pool pool, int attribute, void *value))           \
    F(0, pool_alloc, cuMemAllocAsync, (bp_cu_address *address, size_t bytes, bp_cu_stream stream)) \
    F(0, pool_free, cuMemFreeAsync, (bp_cu_address address, bp_cu_stream stream))                  \
    F(0, address_reserve, cuMemAddressReserve, (bp_cu_address *address, size_t bytes,              \
                                                size_t alignment, bp_cu_address wish,              \
                                                unsigned long long flags))                         \
    F(0, address_free, cuMemAddressFree, (bp_cu_address address, size_t bytes))                    \
    F(0, allocation_create, cuMemCreate, (bp_cu_allocation *allocation, size_t bytes,              \
                                          const bp_cu_allocation_wish *wish,                       \
                                          unsigned long long flags))                               \
    F(0, allocation_release, cuMemRelease, (bp_cu_allocation allocation))                          \
    F(0, allocation_granularity, cuMemGetAllocationGranularity,                                    \
      (size_t *bytes, const bp_cu_allocation_wish *wish, int option))                              \
    F(0, address_map, cuMemMap, (bp_cu_address address, size_t bytes, size_t offset,               \
                                 bp_cu_allocation allocation, unsigned long long flags))           \
    F(0, address_unmap, cuMemUnmap, (bp_cu_address address, size_t bytes))                         \
    F(0, address_access, cuMemSetAccess, (bp_cu_address address, size_t bytes,                     \
                                          const bp_cu_access *access, size_t count))               \
    F(0, allocation_export, cuMemExportToShareableHandle, (void *out, bp_cu_allocation allocation, \
                                                           uint32_t type,                          \
                                                           unsigned long long flags))              \
    F(0, allocation_import, cuMemImportFromShareableHandle, (bp_cu_allocation *allocation,         \
                                                             void *handle, uint32_t type))         \
    F(0, allocation_properties, cuMemGetAllocationPropertiesFromHandle,                            \
      (bp_cu_allocation_wish *wish, bp_cu_allocation allocation))                                  \
    F(0, peer_access, cuDeviceCanAccessPeer, (int *can, bp_cu_device device, bp_cu_device peer))   \
    F(1, module_load, cuModuleLoadDataEx, (bp_cu_module *module, const void *image,                \
                                           unsigned option_count, int *options, void **values))    \
    F(1, module_unload, cuModuleUnload, (bp_cu_module module))                                     \
    F(1, module_function, cuModuleGetFunction, (bp_cu_function *function, bp_cu_module module,     \
                                                const char *name))                                 \
    F(1, module_function_count, cuModuleGetFunctionCount, (unsigned *count, bp_cu_module module))  \
    F(1, module_functions, cuModuleEnumerateFunctions, (bp_cu_function *functions, unsigned room,  \
                                                        bp_cu_module module))                      \
    F(1, function_load, cuFuncLoad, (bp_cu_function function))                                     \
    F(1, function_name, cuFuncGetName, (const char **name, bp_cu_function function))               \
    F(1, function_parameter, cuFuncGetParamInfo, (bp_cu_function function, size_t index,           \
                                                  size_t *offset, size_t *bytes))                  \
    F(1, function_attribute, cuFuncGetAttribute, (int *value, int attribute,                       \
                                                  bp_cu_function function))                        \
    F(1, function_set, cuFuncSetAttribute, (bp_cu_function function, int attribute, int value))    \
    F(1, launch, cuLaunchKernel, (bp_cu_function function, unsigned grid_x, unsigned grid_y,       \
                                  unsigned grid_z, unsigned block_x, unsigned block_y,             \
                                  unsigned block_z, unsigned shared_bytes, bp_cu_stream stream,    \
                                  void **parameters, void **extra))                                \
    F(1, launch_ex, cuLaunchKernelEx, (const bp_cu_launch_config *config, bp_cu_function function, \
                                       void **parameters, void **extra))                           \
    F(0, tensor_map_encode, cuTensorMapEncodeTiled,                                                \
      (bp_cu_tensor_map *map, uint32_t type, uint32_t rank, void *address, const uint64_t *size,   \
       const uint64_t *stride, const uint32_t *box, const uint32_t *step, uint32_t interleave,     \
       uint32_t swizzle, uint32_t promotion, uint32_t out_of_bounds))                              \
    F(1, error_name, cuGetErrorName, (bp_cu_result result, const char **text))                     \
    F(1, error_text, cuGetErrorString, (bp_cu_result result, const char **text))
/* clang-format on */

#endif
