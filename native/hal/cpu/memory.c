/*
 * Large memory is mapped and asks for huge pages: weights are read end to end, and a page walk per
 * 4 KiB costs more than the rounding. Small memory comes from the heap, so ASan sees its ends.
 */
#define _GNU_SOURCE
#include "memory.h"

#include "../adopt.h"
#include "retire.h"

#include <stdlib.h>
#include <sys/mman.h>

#define MAPPED_FROM     (1ull << 20)
#define HUGE_PAGE       (2ull << 20)
#define DEFAULT_ALIGN   64ull
#define MOST_ALIGN      HUGE_PAGE
#define JUNK_NEW        0xA5
#define JUNK_RELEASED   0xDD
#define ROUND_UP(x, to) (((x) + (to) - 1) / (to) * (to))

static int32_t allocate(bp_memory *memory) {
    if (memory->bytes < MAPPED_FROM) {
        uint64_t whole = ROUND_UP(memory->bytes, memory->alignment);
        memory->data = aligned_alloc(memory->alignment, whole);
        return memory->data ? BP_OK : BP_OUT_OF_MEMORY;
    }
    uint64_t whole = ROUND_UP(memory->bytes, HUGE_PAGE);
    unsigned char *wide = mmap(NULL, whole + HUGE_PAGE, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (wide == MAP_FAILED)
        return BP_OUT_OF_MEMORY;
    unsigned char *data = (unsigned char *)ROUND_UP((uintptr_t)wide, HUGE_PAGE);
    if (data > wide)
        munmap(wide, (size_t)(data - wide));
    munmap(data + whole, (size_t)(wide + HUGE_PAGE - data));
    madvise(data, whole, MADV_HUGEPAGE);
    memory->data = data;
    memory->mapped_bytes = whole;
    return BP_OK;
}

void bp_memory_free(bp_device *device, bp_memory *memory) {
    if (!memory->pinned)
        device->memory_used -= memory->bytes;
    if (memory->mapped_bytes) {
        munmap(memory->data, memory->mapped_bytes);
    } else if (!memory->pinned) {
        if (device->check)
            memset(memory->data, JUNK_RELEASED, memory->bytes);
        free(memory->data);
    }
    free(memory);
}

/* Publishes new memory under the lock, or frees it. */
static int32_t publish(bp_device *device, bp_memory *memory, uint64_t *out) {
    pthread_mutex_lock(&device->lock);
    if (!memory->pinned)
        device->memory_used += memory->bytes;
    int32_t status = bp_device_add(device, &memory->object, BP_KIND_MEMORY);
    if (status)
        bp_memory_free(device, memory);
    else
        *out = memory->object.handle;
    pthread_mutex_unlock(&device->lock);
    return status;
}

static int32_t check_wanted(const bp_memory_info *wanted) {
    if (wanted->bytes == 0)
        return bp_fail(BP_INVALID_ARGUMENT, "memory of 0 bytes was asked for");
    if (wanted->alignment & (wanted->alignment - 1) || wanted->alignment > MOST_ALIGN)
        return bp_fail(BP_INVALID_ARGUMENT, "alignment %llu is not a power of two up to %llu",
                       (unsigned long long)wanted->alignment, MOST_ALIGN);
    return BP_OK;
}

static int32_t create_on(bp_device *device, const bp_memory_info *wanted, uint64_t *out) {
    pthread_mutex_lock(&device->lock);
    uint64_t left = device->memory_total - device->memory_used;
    pthread_mutex_unlock(&device->lock);
    if (wanted->bytes > left)
        return bp_fail(BP_OUT_OF_MEMORY, "%llu bytes were asked for, %llu of %llu are left",
                       (unsigned long long)wanted->bytes, (unsigned long long)left,
                       (unsigned long long)device->memory_total);
    bp_memory *memory = calloc(1, sizeof(*memory));
    if (!memory)
        return bp_fail(BP_OUT_OF_MEMORY, "no host memory for a memory object");
    memory->bytes = wanted->bytes;
    memory->alignment = wanted->alignment > DEFAULT_ALIGN ? wanted->alignment : DEFAULT_ALIGN;
    if (allocate(memory)) {
        free(memory);
        return bp_fail(BP_OUT_OF_MEMORY, "the system refused %llu bytes",
                       (unsigned long long)wanted->bytes);
    }
    if (device->check)
        memset(memory->data, JUNK_NEW, memory->bytes);
    return publish(device, memory, out);
}

static int32_t create(uint64_t handle, const bp_memory_info *given, uint64_t *out) {
    bp_memory_info wanted;
    int32_t status = BP_ADOPT(given, &wanted, "memory info");
    if (status == BP_OK && !out)
        status = bp_fail(BP_INVALID_ARGUMENT, "mem.create got no place for its result");
    if (status == BP_OK)
        status = check_wanted(&wanted);
    if (status)
        return status;
    bp_device *device = bp_device_enter(handle);
    if (!device)
        return BP_INVALID_ARGUMENT;
    status = bp_device_alive(device);
    if (status == BP_OK)
        status = create_on(device, &wanted, out);
    bp_device_leave(device);
    return status;
}

static int32_t release(uint64_t handle, uint64_t memory_handle) {
    bp_device *device = bp_device_enter(handle);
    if (!device)
        return BP_INVALID_ARGUMENT;
    pthread_mutex_lock(&device->lock);
    bp_memory *memory = bp_object_find(memory_handle, BP_KIND_MEMORY, device);
    if (memory)
        bp_retire(device, &memory->object);
    pthread_mutex_unlock(&device->lock);
    bp_device_leave(device);
    return memory ? BP_OK : BP_INVALID_ARGUMENT;
}

static int32_t describe(uint64_t handle, uint64_t memory_handle, bp_memory_info *out) {
    bp_device *device = bp_device_enter(handle);
    if (!device)
        return BP_INVALID_ARGUMENT;
    bp_memory_info own = {.head = {1, sizeof(own)}};
    pthread_mutex_lock(&device->lock);
    const bp_memory *memory = bp_object_find(memory_handle, BP_KIND_MEMORY, device);
    if (memory) {
        own.bytes = memory->bytes;
        own.alignment = memory->alignment;
        own.address = (uint64_t)(uintptr_t)memory->data;
        own.host = memory->data;
    }
    pthread_mutex_unlock(&device->lock);
    bp_device_leave(device);
    return memory ? bp_answer(out, &own, sizeof(own), "memory info") : BP_INVALID_ARGUMENT;
}

static int32_t pin_on(bp_device *device, void *host, uint64_t bytes, uint64_t *out) {
    bp_memory *memory = calloc(1, sizeof(*memory));
    if (!memory)
        return bp_fail(BP_OUT_OF_MEMORY, "no host memory for a memory object");
    memory->pinned = 1;
    memory->data = host;
    memory->bytes = bytes;
    memory->alignment = (uintptr_t)host & -(uintptr_t)host;
    return publish(device, memory, out);
}

static int32_t pin(uint64_t handle, void *host, uint64_t bytes, uint64_t *out) {
    if (!host || !out || bytes == 0 || (uintptr_t)host + bytes < (uintptr_t)host)
        return bp_fail(BP_INVALID_ARGUMENT, "mem.pin got %p with %llu bytes", host,
                       (unsigned long long)bytes);
    bp_device *device = bp_device_enter(handle);
    if (!device)
        return BP_INVALID_ARGUMENT;
    int32_t status = bp_device_alive(device);
    if (status == BP_OK)
        status = pin_on(device, host, bytes, out);
    bp_device_leave(device);
    return status;
}

unsigned char *bp_memory_resolve(bp_device *device, const bp_range *range, const char *what) {
    const bp_memory *memory = bp_object_find(range->memory, BP_KIND_MEMORY, device);
    if (!memory)
        return NULL;
    if (range->offset > memory->bytes || range->length > memory->bytes - range->offset) {
        bp_fail(BP_INVALID_ARGUMENT, "%s: offset %llu + %llu bytes is past the end of %llu bytes",
                what, (unsigned long long)range->offset, (unsigned long long)range->length,
                (unsigned long long)memory->bytes);
        return NULL;
    }
    return memory->data + range->offset;
}

const bp_mem bp_memory_table = {
    .head = {1, sizeof(bp_mem)},
    .create = create,
    .release = release,
    .describe = describe,
    .pin = pin,
};
