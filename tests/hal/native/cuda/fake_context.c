/* The fake's library, devices and contexts; see fake.h. */
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>

_Thread_local bp_cu_context fake_current;
static _Atomic int initialised;

long fake_setting(const char *key, long otherwise) {
    const char *all = getenv("BEDPLATE_FAKE_CUDA");
    size_t length = strlen(key);
    for (const char *at = all; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, key, length) == 0 && at[length] == '=')
            return strtol(at + length + 1, NULL, 10);
    return otherwise;
}

bp_cu_result fake_ready(void) {
    if (!initialised)
        return BP_CU_NOT_INITIALIZED;
    if (!fake_current)
        return BP_CU_INVALID_CONTEXT;
    return fake_dead ? fake_dead : fake_current->gone ? BP_CU_CONTEXT_IS_DESTROYED : BP_CU_SUCCESS;
}

FAKE_API cuInit(unsigned flags) {
    if (flags)
        return BP_CU_INVALID_VALUE;
    initialised = 1;
    return fake_setting("devices", 1) > 0 ? BP_CU_SUCCESS : BP_CU_NO_DEVICE;
}

FAKE_API cuDriverGetVersion(int *version) {
    *version = 13000;
    return BP_CU_SUCCESS;
}

FAKE_API cuDeviceGetCount(int *count) {
    *count = (int)fake_setting("devices", 1);
    return initialised ? BP_CU_SUCCESS : BP_CU_NOT_INITIALIZED;
}

static bp_cu_result known(bp_cu_device device) {
    if (!initialised)
        return BP_CU_NOT_INITIALIZED;
    return device >= 0 && device < fake_setting("devices", 1) ? BP_CU_SUCCESS : 101;
}

FAKE_API cuDeviceGet(bp_cu_device *device, int ordinal) {
    *device = ordinal;
    return known(ordinal);
}

FAKE_API cuDeviceGetName(char *name, int room, bp_cu_device device) {
    snprintf(name, (size_t)room, "Fake CUDA device");
    return known(device);
}

FAKE_API cuDeviceGetUuid_v2(bp_cu_uuid *uuid, bp_cu_device device) {
    memset(uuid, 0xfa, sizeof(*uuid));
    uuid->bytes[15] = (unsigned char)device;
    return known(device);
}

FAKE_API cuDeviceTotalMem_v2(size_t *bytes, bp_cu_device device) {
    *bytes = (size_t)fake_setting("memory_mb", 1024) << 20;
    return known(device);
}

/* A device as the backend wants it; every number may be overridden. */
FAKE_API cuDeviceGetAttribute(int *value, int attribute, bp_cu_device device) {
    static const struct {
        int attribute, value;
    } KNOWN[] = {
        {BP_CU_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
        {BP_CU_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
        {BP_CU_ATTRIBUTE_MAX_BLOCK_DIM_X + 1, 1024},
        {BP_CU_ATTRIBUTE_MAX_BLOCK_DIM_X + 2, 64},
        {BP_CU_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
        {BP_CU_ATTRIBUTE_MAX_GRID_DIM_X + 1, 65535},
        {BP_CU_ATTRIBUTE_MAX_GRID_DIM_X + 2, 65535},
        {BP_CU_ATTRIBUTE_MULTIPROCESSOR_COUNT, 4},
        {BP_CU_ATTRIBUTE_PCI_BUS_ID, 1},
        {BP_CU_ATTRIBUTE_L2_CACHE_SIZE, 1 << 20},
        {BP_CU_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
        {BP_CU_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
        {BP_CU_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448},
        {BP_CU_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
        {BP_CU_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
        {BP_CU_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
        {BP_CU_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
        {BP_CU_ATTRIBUTE_CLUSTER_LAUNCH, 1},
        {BP_CU_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 1},
        {BP_CU_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED, 1},
    };
    char key[32];
    *value = 0;
    for (size_t i = 0; i < sizeof(KNOWN) / sizeof(KNOWN[0]); i++)
        if (KNOWN[i].attribute == attribute)
            *value = KNOWN[i].value;
    snprintf(key, sizeof(key), "attribute.%d", attribute);
    *value = (int)fake_setting(key, *value);
    return known(device);
}

FAKE_API cuDeviceCanAccessPeer(int *can, bp_cu_device device, bp_cu_device peer) {
    *can = device != peer && fake_setting("peers", 1);
    return known(device) ? known(device) : known(peer);
}

static struct bp_cu_context_s primary[8];
static int references[8];
static pthread_mutex_t primary_lock = PTHREAD_MUTEX_INITIALIZER;
_Atomic bp_cu_result fake_dead;

/* After a fault the process gets no context any more, as with the real one. */
FAKE_API cuDevicePrimaryCtxRetain(bp_cu_context *context, bp_cu_device device) {
    bp_cu_result result = known(device);
    if (result == BP_CU_SUCCESS)
        result = fake_dead;
    if (result)
        return result;
    pthread_mutex_lock(&primary_lock);
    *context = &primary[device];
    if (references[device]++ == 0) {
        memset(*context, 0, sizeof(**context));
        (*context)->device = device;
        pthread_mutex_init(&(*context)->lock, NULL);
    }
    pthread_mutex_unlock(&primary_lock);
    return BP_CU_SUCCESS;
}

/* The struct stays: another thread may still have it current, and then gets an error. */
FAKE_API cuDevicePrimaryCtxRelease_v2(bp_cu_device device) {
    pthread_mutex_lock(&primary_lock);
    bp_cu_context context = &primary[device];
    int last = references[device] == 1;
    if (references[device] > 0)
        references[device]--;
    pthread_mutex_unlock(&primary_lock);
    if (!last)
        return BP_CU_SUCCESS;
    if (!fake_dead)
        fake_wait_all(context);
    context->gone = 1;
    fake_end_streams(context);
    fake_release_all(context);
    if (fake_current == context)
        fake_current = NULL;
    return BP_CU_SUCCESS;
}

FAKE_API cuCtxGetCurrent(bp_cu_context *context) {
    *context = fake_current;
    return initialised ? BP_CU_SUCCESS : BP_CU_NOT_INITIALIZED;
}

FAKE_API cuCtxSetCurrent(bp_cu_context context) {
    fake_current = context;
    return initialised ? BP_CU_SUCCESS : BP_CU_NOT_INITIALIZED;
}

FAKE_API cuCtxSynchronize(void) {
    bp_cu_result result = fake_ready();
    return result ? result : fake_wait_all(fake_current);
}

FAKE_API cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    *least = 0;
    *greatest = -5;
    return fake_ready();
}

static const struct {
    bp_cu_result result;
    const char *name, *text;
} WORDS[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
};

FAKE_API cuGetErrorName(bp_cu_result result, const char **text) {
    for (size_t i = 0; i < sizeof(WORDS) / sizeof(WORDS[0]); i++)
        if (WORDS[i].result == result) {
            *text = WORDS[i].name;
            return BP_CU_SUCCESS;
        }
    *text = NULL;
    return BP_CU_INVALID_VALUE;
}

FAKE_API cuGetErrorString(bp_cu_result result, const char **text) {
    for (size_t i = 0; i < sizeof(WORDS) / sizeof(WORDS[0]); i++)
        if (WORDS[i].result == result) {
            *text = WORDS[i].text;
            return BP_CU_SUCCESS;
        }
    *text = NULL;
    return BP_CU_INVALID_VALUE;
}
