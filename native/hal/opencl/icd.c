/* See icd.h. */
#include "icd.h"

#include <dlfcn.h>
#include <pthread.h>

bp_cl_calls cl;

static int32_t find_all(void *library) {
#define FIND(result, name, parameters)                                                             \
    *(void **)&cl.name = dlsym(library, #name);                                                    \
    if (!cl.name)                                                                                  \
        return bp_fail(BP_UNAVAILABLE, "libOpenCL.so.1 has no %s, which OpenCL 1.2 has", #name);
    BP_CL_FUNCTIONS(FIND)
#undef FIND
#define FIND(result, name, parameters) *(void **)&cl.name = dlsym(library, #name);
    BP_CL_SHARED_FUNCTIONS(FIND)
#undef FIND
    return BP_OK;
}

int32_t bp_cl_load(void) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static int loaded;
    int32_t status = BP_OK;
    pthread_mutex_lock(&lock);
    if (!loaded) {
        void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
        status = library ? find_all(library)
                         : bp_fail(BP_UNAVAILABLE, "no OpenCL loader here: %.400s", dlerror());
        loaded = status == BP_OK;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

int bp_cl_has_shared(void) {
    return cl.clSVMAlloc && cl.clSVMFree && cl.clSetKernelArgSVMPointer && cl.clEnqueueSVMMemcpy &&
           cl.clEnqueueSVMMemFill;
}

/* By -code; the numbers between are not used by OpenCL 1.2 to 3.0. */
static const char *const NAMES[] = {
    [0] = "CL_SUCCESS",
    [1] = "CL_DEVICE_NOT_FOUND",
    [2] = "CL_DEVICE_NOT_AVAILABLE",
    [3] = "CL_COMPILER_NOT_AVAILABLE",
    [4] = "CL_MEM_OBJECT_ALLOCATION_FAILURE",
    [5] = "CL_OUT_OF_RESOURCES",
    [6] = "CL_OUT_OF_HOST_MEMORY",
    [7] = "CL_PROFILING_INFO_NOT_AVAILABLE",
    [8] = "CL_MEM_COPY_OVERLAP",
    [9] = "CL_IMAGE_FORMAT_MISMATCH",
    [10] = "CL_IMAGE_FORMAT_NOT_SUPPORTED",
    [11] = "CL_BUILD_PROGRAM_FAILURE",
    [12] = "CL_MAP_FAILURE",
    [13] = "CL_MISALIGNED_SUB_BUFFER_OFFSET",
    [14] = "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST",
    [15] = "CL_COMPILE_PROGRAM_FAILURE",
    [16] = "CL_LINKER_NOT_AVAILABLE",
    [17] = "CL_LINK_PROGRAM_FAILURE",
    [18] = "CL_DEVICE_PARTITION_FAILED",
    [19] = "CL_KERNEL_ARG_INFO_NOT_AVAILABLE",
    [30] = "CL_INVALID_VALUE",
    [31] = "CL_INVALID_DEVICE_TYPE",
    [32] = "CL_INVALID_PLATFORM",
    [33] = "CL_INVALID_DEVICE",
    [34] = "CL_INVALID_CONTEXT",
    [35] = "CL_INVALID_QUEUE_PROPERTIES",
    [36] = "CL_INVALID_COMMAND_QUEUE",
    [37] = "CL_INVALID_HOST_PTR",
    [38] = "CL_INVALID_MEM_OBJECT",
    [39] = "CL_INVALID_IMAGE_FORMAT_DESCRIPTOR",
    [40] = "CL_INVALID_IMAGE_SIZE",
    [41] = "CL_INVALID_SAMPLER",
    [42] = "CL_INVALID_BINARY",
    [43] = "CL_INVALID_BUILD_OPTIONS",
    [44] = "CL_INVALID_PROGRAM",
    [45] = "CL_INVALID_PROGRAM_EXECUTABLE",
    [46] = "CL_INVALID_KERNEL_NAME",
    [47] = "CL_INVALID_KERNEL_DEFINITION",
    [48] = "CL_INVALID_KERNEL",
    [49] = "CL_INVALID_ARG_INDEX",
    [50] = "CL_INVALID_ARG_VALUE",
    [51] = "CL_INVALID_ARG_SIZE",
    [52] = "CL_INVALID_KERNEL_ARGS",
    [53] = "CL_INVALID_WORK_DIMENSION",
    [54] = "CL_INVALID_WORK_GROUP_SIZE",
    [55] = "CL_INVALID_WORK_ITEM_SIZE",
    [56] = "CL_INVALID_GLOBAL_OFFSET",
    [57] = "CL_INVALID_EVENT_WAIT_LIST",
    [58] = "CL_INVALID_EVENT",
    [59] = "CL_INVALID_OPERATION",
    [60] = "CL_INVALID_GL_OBJECT",
    [61] = "CL_INVALID_BUFFER_SIZE",
    [62] = "CL_INVALID_MIP_LEVEL",
    [63] = "CL_INVALID_GLOBAL_WORK_SIZE",
    [64] = "CL_INVALID_PROPERTY",
    [65] = "CL_INVALID_IMAGE_DESCRIPTOR",
    [66] = "CL_INVALID_COMPILER_OPTIONS",
    [67] = "CL_INVALID_LINKER_OPTIONS",
    [68] = "CL_INVALID_DEVICE_PARTITION_COUNT",
    [69] = "CL_INVALID_PIPE_SIZE",
    [70] = "CL_INVALID_DEVICE_QUEUE",
    [71] = "CL_INVALID_SPEC_ID",
    [72] = "CL_MAX_SIZE_RESTRICTION_EXCEEDED",
};

const char *bp_cl_name(cl_int code) {
    if (code == CL_PLATFORM_NOT_FOUND_KHR)
        return "CL_PLATFORM_NOT_FOUND_KHR";
    int64_t at = -(int64_t)code;
    int known = at >= 0 && at < (int64_t)(sizeof(NAMES) / sizeof(NAMES[0])) && NAMES[at];
    return known ? NAMES[at] : "OpenCL error";
}

int32_t bp_cl_status(cl_int code) {
    switch (code) {
    case CL_SUCCESS:
        return BP_OK;
    case -2:
        return BP_DEVICE_LOST;
    case -3:
        return BP_UNSUPPORTED;
    case -4:
    case -6:
    case -61:
        return BP_OUT_OF_MEMORY;
    case -11:
    case -15:
    case -17:
        return BP_INVALID_ARGUMENT;
    default:
        return BP_LAUNCH_FAULT;
    }
}

int32_t bp_cl_fail(cl_int code, const char *what) {
    return bp_fail(bp_cl_status(code), "%s: %s (%d)", what, bp_cl_name(code), code);
}
