/*
 * The part of OpenCL 1.2, and of 2.0's shared virtual memory, that this backend calls.
 *
 * Written from the specification, so that building needs no OpenCL header: opaque handles are
 * pointers, cl_bool and cl_uint are 32 bits, bit-fields 64. The functions are found in the ICD
 * loader when the backend first looks for devices; see icd.h.
 * Source: The OpenCL Specification 1.2 (rev 19) and 2.0 (rev 29), Khronos; numbers from their
 * appendix of constants.
 */
#ifndef BEDPLATE_HAL_OPENCL_CL_H
#define BEDPLATE_HAL_OPENCL_CL_H

#include <stddef.h>
#include <stdint.h>

typedef struct cl_platform *cl_platform_id;
typedef struct cl_device *cl_device_id;
typedef struct cl_context_object *cl_context;
typedef struct cl_queue_object *cl_command_queue;
typedef struct cl_memory_object *cl_mem;
typedef struct cl_program_object *cl_program;
typedef struct cl_kernel_object *cl_kernel;
typedef struct cl_event_object *cl_event;
typedef int32_t cl_int;
typedef uint32_t cl_uint;
typedef uint64_t cl_flags;

typedef struct cl_region {
    size_t origin, size;
} cl_region;

enum {
    CL_SUCCESS = 0,
    CL_PLATFORM_NOT_FOUND_KHR = -1001,

    CL_PLATFORM_VERSION = 0x0901,
    CL_PLATFORM_NAME = 0x0902,

    CL_DEVICE_TYPE = 0x1000,
    CL_DEVICE_MAX_WORK_ITEM_SIZES = 0x1005,
    CL_DEVICE_MAX_MEM_ALLOC_SIZE = 0x1010,
    CL_DEVICE_MEM_BASE_ADDR_ALIGN = 0x1019,
    CL_DEVICE_GLOBAL_MEM_SIZE = 0x101F,
    CL_DEVICE_LOCAL_MEM_SIZE = 0x1023,
    CL_DEVICE_AVAILABLE = 0x1027,
    CL_DEVICE_COMPILER_AVAILABLE = 0x1028,
    CL_DEVICE_QUEUE_PROPERTIES = 0x102A,
    CL_DEVICE_NAME = 0x102B,
    CL_DEVICE_VENDOR = 0x102C,
    CL_DRIVER_VERSION = 0x102D,
    CL_DEVICE_VERSION = 0x102F,
    CL_DEVICE_OPENCL_C_VERSION = 0x103D,
    CL_DEVICE_SVM_CAPABILITIES = 0x1053,

    CL_DEVICE_TYPE_CPU = 2,
    CL_DEVICE_TYPE_GPU = 4,
    CL_DEVICE_TYPE_ACCELERATOR = 8,

    CL_DEVICE_SVM_FINE_GRAIN_BUFFER = 2,
    CL_QUEUE_PROFILING_ENABLE = 2,

    CL_MEM_READ_WRITE = 1,
    CL_MEM_SVM_FINE_GRAIN_BUFFER = 1 << 10,
    CL_BUFFER_CREATE_TYPE_REGION = 0x1220,

    CL_PROGRAM_BUILD_LOG = 0x1183,
    CL_KERNEL_FUNCTION_NAME = 0x1190,
    CL_KERNEL_NUM_ARGS = 0x1191,
    CL_KERNEL_ARG_ADDRESS_QUALIFIER = 0x1196,
    CL_KERNEL_ARG_ADDRESS_GLOBAL = 0x119B,
    CL_KERNEL_ARG_ADDRESS_LOCAL = 0x119C,
    CL_KERNEL_ARG_ADDRESS_CONSTANT = 0x119D,
    CL_KERNEL_ARG_ADDRESS_PRIVATE = 0x119E,
    CL_KERNEL_WORK_GROUP_SIZE = 0x11B0,
    CL_KERNEL_COMPILE_WORK_GROUP_SIZE = 0x11B1,
    CL_KERNEL_LOCAL_MEM_SIZE = 0x11B2,

    CL_EVENT_COMMAND_EXECUTION_STATUS = 0x11D3,
    CL_COMPLETE = 0,
    CL_PROFILING_COMMAND_END = 0x1283,
};

#define CL_DEVICE_TYPE_ALL 0xFFFFFFFFull

/* X(result, name, parameters): what every loader has. */
#define BP_CL_FUNCTIONS(X)                                                                         \
    X(cl_int, clGetPlatformIDs, (cl_uint, cl_platform_id *, cl_uint *))                            \
    X(cl_int, clGetPlatformInfo, (cl_platform_id, cl_uint, size_t, void *, size_t *))              \
    X(cl_int, clGetDeviceIDs, (cl_platform_id, cl_flags, cl_uint, cl_device_id *, cl_uint *))      \
    X(cl_int, clGetDeviceInfo, (cl_device_id, cl_uint, size_t, void *, size_t *))                  \
    X(cl_context, clCreateContext,                                                                 \
      (const intptr_t *, cl_uint, const cl_device_id *,                                            \
       void (*)(const char *, const void *, size_t, void *), void *, cl_int *))                    \
    X(cl_int, clReleaseContext, (cl_context))                                                      \
    X(cl_command_queue, clCreateCommandQueue, (cl_context, cl_device_id, cl_flags, cl_int *))      \
    X(cl_int, clReleaseCommandQueue, (cl_command_queue))                                           \
    X(cl_int, clFlush, (cl_command_queue))                                                         \
    X(cl_int, clFinish, (cl_command_queue))                                                        \
    X(cl_mem, clCreateBuffer, (cl_context, cl_flags, size_t, void *, cl_int *))                    \
    X(cl_mem, clCreateSubBuffer, (cl_mem, cl_flags, cl_uint, const void *, cl_int *))              \
    X(cl_int, clReleaseMemObject, (cl_mem))                                                        \
    X(cl_program, clCreateProgramWithSource,                                                       \
      (cl_context, cl_uint, const char **, const size_t *, cl_int *))                              \
    X(cl_int, clBuildProgram,                                                                      \
      (cl_program, cl_uint, const cl_device_id *, const char *, void (*)(cl_program, void *),      \
       void *))                                                                                    \
    X(cl_int, clGetProgramBuildInfo,                                                               \
      (cl_program, cl_device_id, cl_uint, size_t, void *, size_t *))                               \
    X(cl_int, clReleaseProgram, (cl_program))                                                      \
    X(cl_int, clCreateKernelsInProgram, (cl_program, cl_uint, cl_kernel *, cl_uint *))             \
    X(cl_int, clGetKernelInfo, (cl_kernel, cl_uint, size_t, void *, size_t *))                     \
    X(cl_int, clGetKernelArgInfo, (cl_kernel, cl_uint, cl_uint, size_t, void *, size_t *))         \
    X(cl_int, clGetKernelWorkGroupInfo,                                                            \
      (cl_kernel, cl_device_id, cl_uint, size_t, void *, size_t *))                                \
    X(cl_int, clSetKernelArg, (cl_kernel, cl_uint, size_t, const void *))                          \
    X(cl_int, clReleaseKernel, (cl_kernel))                                                        \
    X(cl_int, clEnqueueNDRangeKernel,                                                              \
      (cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *, const size_t *,       \
       cl_uint, const cl_event *, cl_event *))                                                     \
    X(cl_int, clEnqueueReadBuffer,                                                                 \
      (cl_command_queue, cl_mem, cl_uint, size_t, size_t, void *, cl_uint, const cl_event *,       \
       cl_event *))                                                                                \
    X(cl_int, clEnqueueWriteBuffer,                                                                \
      (cl_command_queue, cl_mem, cl_uint, size_t, size_t, const void *, cl_uint, const cl_event *, \
       cl_event *))                                                                                \
    X(cl_int, clEnqueueCopyBuffer,                                                                 \
      (cl_command_queue, cl_mem, cl_mem, size_t, size_t, size_t, cl_uint, const cl_event *,        \
       cl_event *))                                                                                \
    X(cl_int, clEnqueueFillBuffer,                                                                 \
      (cl_command_queue, cl_mem, const void *, size_t, size_t, size_t, cl_uint, const cl_event *,  \
       cl_event *))                                                                                \
    X(cl_int, clEnqueueMarkerWithWaitList,                                                         \
      (cl_command_queue, cl_uint, const cl_event *, cl_event *))                                   \
    X(cl_int, clWaitForEvents, (cl_uint, const cl_event *))                                        \
    X(cl_int, clGetEventInfo, (cl_event, cl_uint, size_t, void *, size_t *))                       \
    X(cl_int, clSetEventCallback, (cl_event, cl_int, void (*)(cl_event, cl_int, void *), void *))  \
    X(cl_int, clGetEventProfilingInfo, (cl_event, cl_uint, size_t, void *, size_t *))              \
    X(cl_int, clReleaseEvent, (cl_event))

/* Since 2.0; called only on devices that report shared virtual memory. */
#define BP_CL_SHARED_FUNCTIONS(X)                                                                  \
    X(void *, clSVMAlloc, (cl_context, cl_flags, size_t, cl_uint))                                 \
    X(void, clSVMFree, (cl_context, void *))                                                       \
    X(cl_int, clSetKernelArgSVMPointer, (cl_kernel, cl_uint, const void *))                        \
    X(cl_int, clEnqueueSVMMemcpy,                                                                  \
      (cl_command_queue, cl_uint, void *, const void *, size_t, cl_uint, const cl_event *,         \
       cl_event *))                                                                                \
    X(cl_int, clEnqueueSVMMemFill,                                                                 \
      (cl_command_queue, void *, const void *, size_t, size_t, cl_uint, const cl_event *,          \
       cl_event *))

#endif
