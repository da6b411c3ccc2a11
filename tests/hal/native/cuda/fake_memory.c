/*
 * The fake's memory: a list of mapped regions, each with its host bytes. Device memory has a device
 * address that is no pointer; host memory of the driver is its own address. Virtual memory is an
 * address range and a shared file that is mapped into it.
 */
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

typedef enum fake_origin { OF_DEVICE, OF_HOST, OF_CALLER, OF_RESERVED, OF_MAPPED } fake_origin;

typedef struct region {
    struct region *next;
    bp_cu_context context;
    fake_origin origin;
    uint64_t address, bytes;
    unsigned char *host;
    int accessible;
} region;

typedef struct allocation {
    int file;
    uint64_t bytes;
    bp_cu_device device;
    int exportable;
} allocation;

#define GRANULARITY (2ull << 20)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static region *regions;
static uint64_t device_bytes;

static region *find(uint64_t address, uint64_t bytes, int exact) {
    for (region *one = regions; one; one = one->next) {
        if (one->origin == OF_RESERVED && !exact)
            continue;
        if (exact ? one->address == address
                  : address >= one->address && bytes <= one->bytes &&
                        address - one->address <= one->bytes - bytes)
            return one;
    }
    return NULL;
}

void *fake_host(bp_cu_context context, uint64_t address, uint64_t bytes) {
    unsigned char *host = NULL;
    pthread_mutex_lock(&lock);
    const region *one = find(address, bytes, 0);
    /* Portable host memory is everybody's; the rest is its context's. */
    if (one && one->accessible &&
        (one->context == context || one->origin == OF_HOST || one->origin == OF_CALLER))
        host = one->host + (address - one->address);
    pthread_mutex_unlock(&lock);
    return host;
}

__attribute__((visibility("default"))) void *fakeBytes(bp_cu_context context, uint64_t address,
                                                       uint64_t bytes) {
    return fake_host(context, address, bytes);
}

static bp_cu_result add(fake_origin origin, uint64_t address, void *host, uint64_t bytes) {
    region *one = malloc(sizeof(*one));
    if (!one)
        return BP_CU_OUT_OF_MEMORY;
    *one = (region){.context = fake_current,
                    .origin = origin,
                    .address = address,
                    .bytes = bytes,
                    .host = host,
                    .accessible = origin != OF_MAPPED && origin != OF_RESERVED};
    pthread_mutex_lock(&lock);
    one->next = regions;
    regions = one;
    pthread_mutex_unlock(&lock);
    return BP_CU_SUCCESS;
}

static void drop(region *one) {
    for (region **link = &regions; *link; link = &(*link)->next)
        if (*link == one) {
            *link = one->next;
            break;
        }
}

static void forget(region *one) {
    drop(one);
    if (one->origin == OF_DEVICE) {
        device_bytes -= one->bytes;
        munmap(one->host, one->bytes);
    } else if (one->origin == OF_HOST || one->origin == OF_MAPPED) {
        munmap(one->host, one->bytes);
    }
    free(one);
}

void fake_release(uint64_t address) {
    pthread_mutex_lock(&lock);
    region *one = find(address, 1, 1);
    if (one)
        forget(one);
    pthread_mutex_unlock(&lock);
}

void fake_release_all(bp_cu_context context) {
    pthread_mutex_lock(&lock);
    for (region *one = regions, *next; one; one = next) {
        next = one->next;
        if (one->context == context)
            forget(one);
    }
    pthread_mutex_unlock(&lock);
}

static void *pages(uint64_t bytes) {
    void *host = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return host == MAP_FAILED ? NULL : host;
}

FAKE_API cuMemAlloc_v2(bp_cu_address *address, size_t bytes) {
    bp_cu_result result = fake_ready();
    if (result || bytes == 0)
        return result ? result : BP_CU_INVALID_VALUE;
    size_t total = (size_t)fake_setting("memory_mb", 1024) << 20;
    pthread_mutex_lock(&lock);
    int fits = bytes <= total && device_bytes <= total - bytes;
    if (fits)
        device_bytes += bytes;
    pthread_mutex_unlock(&lock);
    void *host = fits ? pages(bytes) : NULL;
    if (!host)
        return BP_CU_OUT_OF_MEMORY;
    *address = (uint64_t)(uintptr_t)host | FAKE_DEVICE_BIT;
    return add(OF_DEVICE, *address, host, bytes);
}

FAKE_API cuMemFree_v2(bp_cu_address address) {
    bp_cu_result result = fake_ready();
    if (result)
        return result;
    fake_wait_all(fake_current);
    pthread_mutex_lock(&lock);
    region *one = find(address, 1, 1);
    int known = one && one->origin == OF_DEVICE;
    if (known)
        forget(one);
    pthread_mutex_unlock(&lock);
    return known ? BP_CU_SUCCESS : BP_CU_INVALID_VALUE;
}

FAKE_API cuDeviceGetDefaultMemPool(bp_cu_pool *pool, bp_cu_device device) {
    (void)device;
    *pool = (bp_cu_pool)(uintptr_t)16;
    return BP_CU_SUCCESS;
}

FAKE_API cuMemPoolSetAttribute(bp_cu_pool pool, int attribute, void *value) {
    return pool && value && attribute == BP_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD ? BP_CU_SUCCESS
                                                                              : BP_CU_INVALID_VALUE;
}

FAKE_API cuMemAllocAsync(bp_cu_address *address, size_t bytes, bp_cu_stream stream) {
    (void)stream;
    return cuMemAlloc_v2(address, bytes);
}

FAKE_API cuMemFreeAsync(bp_cu_address address, bp_cu_stream stream) {
    return fake_enqueue(stream, &(fake_op){.kind = FAKE_FREE, .to = address});
}

FAKE_API cuMemHostAlloc(void **host, size_t bytes, unsigned flags) {
    bp_cu_result result = fake_ready();
    (void)flags;
    if (result)
        return result;
    *host = pages(bytes);
    return *host ? add(OF_HOST, (uint64_t)(uintptr_t)*host, *host, bytes) : BP_CU_OUT_OF_MEMORY;
}

FAKE_API cuMemFreeHost(void *host) {
    fake_release((uint64_t)(uintptr_t)host);
    return fake_ready();
}

FAKE_API cuMemHostGetDevicePointer_v2(bp_cu_address *address, void *host, unsigned flags) {
    bp_cu_result result = fake_ready();
    (void)flags;
    *address = (uint64_t)(uintptr_t)host;
    pthread_mutex_lock(&lock);
    const region *known = find(*address, 1, 0);
    pthread_mutex_unlock(&lock);
    return result ? result : known ? BP_CU_SUCCESS : BP_CU_INVALID_VALUE;
}

FAKE_API cuMemHostRegister_v2(void *host, size_t bytes, unsigned flags) {
    bp_cu_result result = fake_ready();
    (void)flags;
    if (result)
        return result;
    pthread_mutex_lock(&lock);
    uint64_t start = (uint64_t)(uintptr_t)host;
    const region *known = regions;
    while (known && (known->origin == OF_RESERVED || start >= known->address + known->bytes ||
                     known->address >= start + bytes))
        known = known->next;
    int registered = known && known->origin == OF_CALLER;
    pthread_mutex_unlock(&lock);
    if (!host || !bytes || known)
        return registered ? BP_CU_HOST_MEMORY_ALREADY_REGISTERED : BP_CU_INVALID_VALUE;
    return add(OF_CALLER, (uint64_t)(uintptr_t)host, host, bytes);
}

FAKE_API cuMemHostUnregister(void *host) {
    bp_cu_result result = fake_ready();
    if (result == BP_CU_SUCCESS)
        fake_wait_all(fake_current);
    fake_release((uint64_t)(uintptr_t)host);
    return result;
}

FAKE_API cuMemcpyAsync(bp_cu_address to, bp_cu_address from, size_t bytes, bp_cu_stream stream) {
    return fake_enqueue(stream,
                        &(fake_op){.kind = FAKE_COPY, .to = to, .from = from, .bytes = bytes});
}

static bp_cu_result fill(bp_cu_address to, unsigned value, unsigned width, size_t count,
                         bp_cu_stream stream) {
    if (to % width)
        return BP_CU_INVALID_VALUE;
    return fake_enqueue(
        stream,
        &(fake_op){
            .kind = FAKE_FILL, .to = to, .value = value, .width = width, .bytes = width * count});
}

FAKE_API cuMemsetD8Async(bp_cu_address to, unsigned char value, size_t count, bp_cu_stream stream) {
    return fill(to, value, 1, count, stream);
}

FAKE_API cuMemsetD16Async(bp_cu_address to, unsigned short value, size_t count,
                          bp_cu_stream stream) {
    return fill(to, value, 2, count, stream);
}

FAKE_API cuMemsetD32Async(bp_cu_address to, unsigned value, size_t count, bp_cu_stream stream) {
    return fill(to, value, 4, count, stream);
}

FAKE_API cuMemAddressReserve(bp_cu_address *address, size_t bytes, size_t alignment,
                             bp_cu_address wish, unsigned long long flags) {
    bp_cu_result result = fake_ready();
    (void)wish;
    if (result || flags || bytes == 0 || bytes % GRANULARITY)
        return result ? result : BP_CU_INVALID_VALUE;
    if (alignment < GRANULARITY)
        alignment = GRANULARITY;
    unsigned char *wide = mmap(NULL, bytes + alignment, PROT_NONE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (wide == MAP_FAILED)
        return BP_CU_OUT_OF_MEMORY;
    *address = ((uint64_t)(uintptr_t)wide + alignment - 1) / alignment * alignment;
    void *host = (void *)(uintptr_t)*address;
    *address |= FAKE_DEVICE_BIT;
    return add(OF_RESERVED, *address, host, bytes);
}

FAKE_API cuMemAddressFree(bp_cu_address address, size_t bytes) {
    (void)bytes;
    fake_release(address);
    return fake_ready();
}

FAKE_API cuMemGetAllocationGranularity(size_t *bytes, const bp_cu_allocation_wish *wish,
                                       int option) {
    (void)wish;
    (void)option;
    *bytes = GRANULARITY;
    return BP_CU_SUCCESS;
}

FAKE_API cuMemCreate(bp_cu_allocation *out, size_t bytes, const bp_cu_allocation_wish *wish,
                     unsigned long long flags) {
    bp_cu_result result = fake_ready();
    if (result || flags || bytes == 0 || bytes % GRANULARITY ||
        wish->type != BP_CU_MEM_ALLOCATION_TYPE_PINNED)
        return result ? result : BP_CU_INVALID_VALUE;
    if (bytes > (size_t)fake_setting("memory_mb", 1024) << 20)
        return BP_CU_OUT_OF_MEMORY;
    allocation *made = malloc(sizeof(*made));
    if (!made)
        return BP_CU_OUT_OF_MEMORY;
    char name[32];
    snprintf(name, sizeof(name), "fake-cuda-%d", wish->location.id);
    *made = (allocation){memfd_create(name, MFD_CLOEXEC), bytes, wish->location.id,
                         wish->handle_types == BP_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR};
    if (made->file < 0 || ftruncate(made->file, (off_t)bytes)) {
        free(made);
        return BP_CU_OUT_OF_MEMORY;
    }
    *out = (bp_cu_allocation)(uintptr_t)made;
    return BP_CU_SUCCESS;
}

/* Mappings keep the file's bytes alive after this, as the driver's do. */
FAKE_API cuMemRelease(bp_cu_allocation handle) {
    allocation *made = (allocation *)(uintptr_t)handle;
    close(made->file);
    free(made);
    return BP_CU_SUCCESS;
}

FAKE_API cuMemMap(bp_cu_address address, size_t bytes, size_t offset, bp_cu_allocation handle,
                  unsigned long long flags) {
    bp_cu_result result = fake_ready();
    const allocation *made = (const allocation *)(uintptr_t)handle;
    if (result || flags || offset || bytes % GRANULARITY)
        return result ? result : BP_CU_INVALID_VALUE;
    if (bytes > made->bytes)
        return BP_CU_NOT_SUPPORTED;
    void *host = (void *)(uintptr_t)(address & ~FAKE_DEVICE_BIT);
    host = mmap(host, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, made->file, 0);
    return host == MAP_FAILED ? BP_CU_INVALID_VALUE : add(OF_MAPPED, address, host, bytes);
}

FAKE_API cuMemUnmap(bp_cu_address address, size_t bytes) {
    bp_cu_result result = fake_ready();
    pthread_mutex_lock(&lock);
    region *one = NULL;
    for (region *at = regions; at; at = at->next)
        if (at->origin == OF_MAPPED && at->address == address && at->bytes == bytes)
            one = at;
    const int found = one != NULL;
    if (found) {
        /* The range stays reserved: never for a moment free for others. */
        drop(one);
        mmap(one->host, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
             -1, 0);
        free(one);
    }
    pthread_mutex_unlock(&lock);
    return result ? result : found ? BP_CU_SUCCESS : BP_CU_INVALID_VALUE;
}

FAKE_API cuMemSetAccess(bp_cu_address address, size_t bytes, const bp_cu_access *access,
                        size_t count) {
    bp_cu_result result = fake_ready();
    int found = 0;
    pthread_mutex_lock(&lock);
    for (region *at = regions; at; at = at->next)
        if (at->origin == OF_MAPPED && at->address >= address &&
            at->address + at->bytes <= address + bytes) {
            at->accessible = count && access->flags == BP_CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
            found = 1;
        }
    pthread_mutex_unlock(&lock);
    return result ? result : found ? BP_CU_SUCCESS : BP_CU_INVALID_VALUE;
}

FAKE_API cuMemExportToShareableHandle(void *out, bp_cu_allocation handle, uint32_t type,
                                      unsigned long long flags) {
    const allocation *made = (const allocation *)(uintptr_t)handle;
    if (type != BP_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || flags || !made->exportable)
        return BP_CU_INVALID_VALUE;
    *(int *)out = dup(made->file);
    return fake_ready();
}

/* The file's name says whose it is. A descriptor that is not open, and a mapping of more bytes than
 * there are, get the codes that an H200 with driver 580 gave. */
FAKE_API cuMemImportFromShareableHandle(bp_cu_allocation *out, void *handle, uint32_t type) {
    char path[48], name[64] = "";
    snprintf(path, sizeof(path), "/proc/self/fd/%d", (int)(intptr_t)handle);
    int device = 0, named = readlink(path, name, sizeof(name) - 1) > 0 &&
                            sscanf(name, "/memfd:fake-cuda-%d", &device) == 1;
    if (type != BP_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || !named)
        return name[0] ? BP_CU_INVALID_VALUE : BP_CU_UNKNOWN;
    int file = dup((int)(intptr_t)handle);
    allocation *made = malloc(sizeof(*made));
    if (!made)
        return BP_CU_OUT_OF_MEMORY;
    *made = (allocation){file, (uint64_t)lseek(file, 0, SEEK_END), device, 1};
    *out = (bp_cu_allocation)(uintptr_t)made;
    return fake_ready();
}

FAKE_API cuMemGetAllocationPropertiesFromHandle(bp_cu_allocation_wish *wish,
                                                bp_cu_allocation handle) {
    const allocation *made = (const allocation *)(uintptr_t)handle;
    memset(wish, 0, sizeof(*wish));
    wish->type = BP_CU_MEM_ALLOCATION_TYPE_PINNED;
    wish->location = (bp_cu_location){BP_CU_MEM_LOCATION_TYPE_DEVICE, made->device};
    return fake_ready();
}
