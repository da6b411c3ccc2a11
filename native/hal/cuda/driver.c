/* Opening libcuda.so.1; see driver.h. */
#include "driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

bp_cuda_driver bp_cu;

static int32_t opened;
static char reason[BP_ERROR_BYTES];

static void refuse(const char *words, const char *detail) {
    opened = BP_UNAVAILABLE;
    snprintf(reason, sizeof(reason), "%.300s%.180s", words, detail);
}

/* Fills the table; the name of the first function that is missing and needed, or null. */
static const char *fill(void *library) {
    const char *missing = NULL;
#define BP_CUDA_FIND(need, field, symbol, parameters)                                              \
    *(void **)&bp_cu.field = dlsym(library, #symbol);                                              \
    if ((need) && !bp_cu.field && !missing)                                                        \
        missing = #symbol;
    BP_CUDA_FUNCTIONS(BP_CUDA_FIND)
#undef BP_CUDA_FIND
    return missing;
}

/* The interface's version, and before it the kernel module's where it can be read: a certificate is
 * of a driver, and drivers of one interface differ. */
static void name_version(void) {
    char module[24] = "";
    FILE *file = fopen("/sys/module/nvidia/version", "r");
    if (file) {
        if (fscanf(file, "%15s", module) == 1)
            strcat(module, " ");
        fclose(file);
    }
    snprintf(bp_cu.version_text, sizeof(bp_cu.version_text), "%.17scuda-%d.%d", module,
             bp_cu.version / 1000, bp_cu.version % 1000 / 10);
}

static void open_once(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        refuse("there is no NVIDIA driver here: ", dlerror());
        return;
    }
    const char *missing = fill(library);
    if (missing) {
        refuse("the NVIDIA driver is older than CUDA 12.4: it lacks ", missing);
        return;
    }
    char words[160];
    bp_cu_result result = bp_cu.init(0);
    if (result == BP_CU_SUCCESS)
        result = bp_cu.driver_version(&bp_cu.version);
    if (result == BP_CU_SUCCESS)
        result = bp_cu.device_count(&bp_cu.devices);
    if (result == BP_CU_SUCCESS && bp_cu.devices <= 0)
        result = BP_CU_NO_DEVICE;
    if (result != BP_CU_SUCCESS) {
        bp_cuda_words(result, words, sizeof(words));
        refuse("the NVIDIA driver gives no device: ", words);
        return;
    }
    name_version();
}

int32_t bp_cuda_driver_open(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_once);
    return opened ? bp_fail(opened, "%s", reason) : BP_OK;
}

int bp_cuda_sticky(bp_cu_result result) {
    switch (result) {
    case BP_CU_ECC_UNCORRECTABLE:
    case BP_CU_NVLINK_UNCORRECTABLE:
    case BP_CU_CONTAINED:
    case BP_CU_ILLEGAL_ADDRESS:
    case BP_CU_LAUNCH_TIMEOUT:
    case BP_CU_CONTEXT_IS_DESTROYED:
    case BP_CU_ASSERT:
    case BP_CU_HARDWARE_STACK_ERROR:
    case BP_CU_ILLEGAL_INSTRUCTION:
    case BP_CU_MISALIGNED_ADDRESS:
    case BP_CU_INVALID_ADDRESS_SPACE:
    case BP_CU_INVALID_PC:
    case BP_CU_LAUNCH_FAILED:
    case BP_CU_DEINITIALIZED:
    case BP_CU_UNKNOWN:
        return 1;
    default:
        return 0;
    }
}

int32_t bp_cuda_status(bp_cu_result result) {
    if (bp_cuda_sticky(result))
        return BP_DEVICE_LOST;
    switch (result) {
    case BP_CU_SUCCESS:
        return BP_OK;
    case BP_CU_OUT_OF_MEMORY:
        return BP_OUT_OF_MEMORY;
    case BP_CU_INVALID_VALUE:
    case BP_CU_INVALID_HANDLE:
    case BP_CU_INVALID_IMAGE:
    case BP_CU_INVALID_PTX:
    case BP_CU_LAUNCH_OUT_OF_RESOURCES:
    case BP_CU_HOST_MEMORY_ALREADY_REGISTERED:
        return BP_INVALID_ARGUMENT;
    case BP_CU_NO_BINARY_FOR_GPU:
    case BP_CU_UNSUPPORTED_PTX_VERSION:
        return BP_UNAVAILABLE;
    case BP_CU_NOT_FOUND:
        return BP_NOT_FOUND;
    case BP_CU_NOT_SUPPORTED:
    case BP_CU_NOT_PERMITTED:
        return BP_UNSUPPORTED;
    default:
        return BP_INTERNAL;
    }
}

void bp_cuda_words(bp_cu_result result, char *text, size_t room) {
    const char *name = NULL, *said = NULL;
    if (bp_cu.error_name)
        bp_cu.error_name(result, &name);
    if (bp_cu.error_text)
        bp_cu.error_text(result, &said);
    snprintf(text, room, "%s (%d): %s", name ? name : "unknown result", result, said ? said : "");
}

int32_t bp_cuda_check(bp_cu_result result, const char *what) {
    char words[200];
    if (result == BP_CU_SUCCESS)
        return BP_OK;
    bp_cuda_words(result, words, sizeof(words));
    return bp_fail(bp_cuda_status(result), "%s: %s", what, words);
}
