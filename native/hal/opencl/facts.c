/* See facts.h. */
#include "facts.h"

#include "../chassis/text.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_PLATFORMS 64u
#define MOST_DEVICES   256u
#define MOST_TEXT      1024u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bp_cl_facts *found;
static uint32_t found_count;

/* Text of a platform (device null) or of a device, without what surrounds it; "" when unknown. */
static bp_text text_of(cl_platform_id platform, cl_device_id device, cl_uint what) {
    char room[MOST_TEXT] = "";
    size_t length = 0;
    cl_int code = device ? cl.clGetDeviceInfo(device, what, sizeof(room) - 1, room, &length)
                         : cl.clGetPlatformInfo(platform, what, sizeof(room) - 1, room, &length);
    if (code)
        room[0] = 0;
    char *begin = room + strspn(room, " ");
    char *end = begin + strlen(begin);
    while (end > begin && (end[-1] == ' ' || end[-1] == '\n'))
        end--;
    return bp_text_keep(begin, (uint64_t)(end - begin));
}

/* A number of 4 or 8 bytes; `otherwise` when the device does not know the question. */
static uint64_t number_of(cl_device_id device, cl_uint what, uint64_t otherwise) {
    unsigned char room[8] = {0};
    size_t length = 0;
    uint64_t wide;
    uint32_t narrow;
    if (cl.clGetDeviceInfo(device, what, sizeof(room), room, &length))
        return otherwise;
    memcpy(&wide, room, sizeof(wide));
    memcpy(&narrow, room, sizeof(narrow));
    return length == 8 ? wide : length == 4 ? narrow : otherwise;
}

static bp_text plain(const char *words) {
    return bp_text_keep(words, strlen(words));
}

static const char *type_of(uint64_t type) {
    return type & CL_DEVICE_TYPE_GPU           ? "gpu"
           : type & CL_DEVICE_TYPE_ACCELERATOR ? "accelerator"
           : type & CL_DEVICE_TYPE_CPU         ? "cpu"
                                               : "other";
}

/* Platforms whose calls, found by running them from two threads, end the process: Oclgrind 21.10
 * aborts when two queues run. */
static int is_serial(const bp_text *platform) {
    static const char OCLGRIND[] = "Oclgrind";
    return platform->length == sizeof(OCLGRIND) - 1 &&
           memcmp(platform->data, OCLGRIND, platform->length) == 0;
}

static void describe(bp_cl_facts *facts, cl_platform_id platform) {
    char driver[3 * MOST_TEXT], alignment[32];
    bp_text name = text_of(platform, NULL, CL_PLATFORM_NAME);
    bp_text version = text_of(platform, NULL, CL_PLATFORM_VERSION);
    bp_text own = text_of(NULL, facts->id, CL_DRIVER_VERSION);
    snprintf(driver, sizeof(driver), "%s, %s, driver %s", name.data, version.data, own.data);
    snprintf(alignment, sizeof(alignment), "%llu", (unsigned long long)facts->base_alignment);
    facts->name = text_of(NULL, facts->id, CL_DEVICE_NAME);
    facts->driver = plain(driver);
    facts->serial = is_serial(&name);
    bp_property *next = facts->properties;
    *next++ = (bp_property){plain("opencl.platform"), name};
    *next++ = (bp_property){plain("opencl.vendor"), text_of(NULL, facts->id, CL_DEVICE_VENDOR)};
    *next++ = (bp_property){plain("opencl.version"), text_of(NULL, facts->id, CL_DEVICE_VERSION)};
    *next++ = (bp_property){plain("opencl.c_version"),
                            text_of(NULL, facts->id, CL_DEVICE_OPENCL_C_VERSION)};
    *next++ = (bp_property){plain("opencl.type"),
                            plain(type_of(number_of(facts->id, CL_DEVICE_TYPE, 0)))};
    *next++ = (bp_property){plain("opencl.memory"), plain(facts->shared ? "shared" : "buffers")};
    *next++ = (bp_property){plain("opencl.base_alignment_bytes"), plain(alignment)};
}

static void examine(bp_cl_facts *facts, cl_platform_id platform, cl_device_id id) {
    size_t sizes[8] = {1, 1, 1}, length = 0;
    const char *allowed = getenv("BEDPLATE_HAL_OPENCL_SVM");
    facts->id = id;
    facts->memory_bytes = number_of(id, CL_DEVICE_GLOBAL_MEM_SIZE, 0);
    facts->most_alloc_bytes = number_of(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, 0);
    /* The specification counts it in bits. */
    facts->base_alignment = number_of(id, CL_DEVICE_MEM_BASE_ADDR_ALIGN, 1024) / 8;
    if (!facts->base_alignment)
        facts->base_alignment = 1;
    facts->local_bytes = number_of(id, CL_DEVICE_LOCAL_MEM_SIZE, 0);
    facts->compiler = number_of(id, CL_DEVICE_COMPILER_AVAILABLE, 0) != 0;
    facts->profiling =
        (number_of(id, CL_DEVICE_QUEUE_PROPERTIES, 0) & CL_QUEUE_PROFILING_ENABLE) != 0;
    uint64_t svm = number_of(id, CL_DEVICE_SVM_CAPABILITIES, 0);
    facts->shared = (svm & CL_DEVICE_SVM_FINE_GRAIN_BUFFER) && bp_cl_has_shared() &&
                    !(allowed && strcmp(allowed, "0") == 0);
    cl.clGetDeviceInfo(id, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof(sizes), sizes, &length);
    for (int axis = 0; axis < 3; axis++)
        facts->most_items[axis] = sizes[axis];
    describe(facts, platform);
}

/* Fills `facts` with at most MOST_DEVICES; their number. */
static uint32_t collect(const cl_platform_id *platforms, cl_uint platform_count,
                        bp_cl_facts *facts) {
    uint32_t count = 0;
    for (cl_uint i = 0; i < platform_count && i < MOST_PLATFORMS; i++) {
        cl_device_id ids[MOST_DEVICES];
        cl_uint here = 0;
        if (cl.clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, MOST_DEVICES, ids, &here))
            continue;
        for (cl_uint j = 0; j < here && j < MOST_DEVICES && count < MOST_DEVICES; j++)
            examine(&facts[count++], platforms[i], ids[j]);
    }
    return count;
}

static int32_t look(void) {
    const char *vendors = getenv("OCL_ICD_VENDORS");
    cl_platform_id platforms[MOST_PLATFORMS];
    cl_uint count = 0;
    int32_t status = bp_cl_load();
    if (status)
        return status;
    cl_int code = cl.clGetPlatformIDs(MOST_PLATFORMS, platforms, &count);
    if (code || count == 0)
        return bp_fail(BP_UNAVAILABLE, "the OpenCL loader finds no platform%s%.300s (%s, %d)",
                       vendors ? " by OCL_ICD_VENDORS=" : "", vendors ? vendors : "",
                       bp_cl_name(code), code);
    bp_cl_facts *facts = calloc(MOST_DEVICES, sizeof(*facts));
    if (!facts)
        return bp_fail(BP_OUT_OF_MEMORY, "no host memory for the facts of devices");
    uint32_t devices = collect(platforms, count, facts);
    if (devices) {
        found = facts;
        found_count = devices;
        return BP_OK;
    }
    free(facts);
    return bp_fail(BP_UNAVAILABLE, "%u OpenCL platforms have no device", count);
}

static pthread_mutex_t serial = PTHREAD_MUTEX_INITIALIZER;

void bp_cl_enter(const bp_cl_facts *facts) {
    if (facts->serial)
        pthread_mutex_lock(&serial);
}

void bp_cl_leave(const bp_cl_facts *facts) {
    if (facts->serial)
        pthread_mutex_unlock(&serial);
}

int32_t bp_cl_count(uint32_t *count) {
    int32_t status = BP_OK;
    pthread_mutex_lock(&lock);
    if (!found)
        status = look();
    *count = found_count;
    pthread_mutex_unlock(&lock);
    return status;
}

const bp_cl_facts *bp_cl_facts_of(uint32_t index) {
    pthread_mutex_lock(&lock);
    const bp_cl_facts *facts = &found[index];
    pthread_mutex_unlock(&lock);
    return facts;
}
