/*
 * Reserved address space: mem.reserve, map and unmap.
 *
 * A range that was reserved stays so until the device is closed, because the table has no way to
 * give it back. map takes whole physical memories only (memory.h); the mapping keeps their bytes
 * alive by itself. unmap waits for the device, so no batch can be looking.
 */
#include "memory.h"

#include <stdlib.h>

typedef struct bp_cuda_span {
    struct bp_cuda_span *next;
    uint64_t address, bytes;
    /* Mapped inside a reserved one. */
    int mapped;
} bp_cuda_span;

bp_cu_result bp_cuda_place(const bp_cuda_device *device, bp_cu_address address, uint64_t bytes,
                           bp_cu_allocation allocation) {
    bp_cu_access access = {.location = {BP_CU_MEM_LOCATION_TYPE_DEVICE, device->facts->device},
                           .flags = BP_CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    bp_cu_result result = bp_cu.address_map(address, bytes, 0, allocation, 0);
    if (result)
        return result;
    result = bp_cu.address_access(address, bytes, &access, 1);
    if (result)
        bp_cu.address_unmap(address, bytes);
    return result;
}

static int32_t keep(bp_cuda_device *device, uint64_t address, uint64_t bytes, int mapped) {
    bp_cuda_span *span = malloc(sizeof(*span));
    if (!span)
        return bp_fail(BP_OUT_OF_MEMORY, "no host memory for an address range");
    *span = (bp_cuda_span){device->spans, address, bytes, mapped};
    device->spans = span;
    return BP_OK;
}

/* The link to the span that holds a range, or to the mapped one that is exactly it. */
static bp_cuda_span **find(bp_cuda_device *device, uint64_t address, uint64_t bytes, int mapped) {
    for (bp_cuda_span **link = &device->spans; *link; link = &(*link)->next) {
        const bp_cuda_span *span = *link;
        if (span->mapped != mapped || address < span->address || bytes > span->bytes ||
            address - span->address > span->bytes - bytes)
            continue;
        if (!mapped || (span->address == address && span->bytes == bytes))
            return link;
    }
    return NULL;
}

/* Whether something is mapped in a range already. */
static int taken(const bp_cuda_device *device, uint64_t address, uint64_t bytes) {
    for (const bp_cuda_span *span = device->spans; span; span = span->next)
        if (span->mapped && address < span->address + span->bytes &&
            span->address < address + bytes)
            return 1;
    return 0;
}

int32_t bp_cuda_reserve(uint64_t handle, uint64_t bytes, uint64_t alignment, uint64_t *out) {
    const uint64_t unit = BP_CUDA_PHYSICAL_ALIGNMENT;
    if (!out || bytes == 0 || bytes % unit || alignment & (alignment - 1))
        return bp_fail(BP_INVALID_ARGUMENT,
                       "address space of %llu bytes aligned to %llu; it comes in pieces of %llu",
                       (unsigned long long)bytes, (unsigned long long)alignment,
                       (unsigned long long)unit);
    bp_cuda_device *device = bp_cuda_enter(handle);
    if (!device)
        return BP_INVALID_ARGUMENT;
    int32_t status = bp_device_alive(&device->base);
    if (status == BP_OK && !device->facts->virtual_memory)
        status = bp_fail(BP_UNSUPPORTED, "this device has no virtual memory of its own");
    bp_cu_address address = 0;
    if (status == BP_OK)
        status = bp_cuda_check(bp_cu.address_reserve(&address, bytes, alignment, 0, 0),
                               "address space was refused");
    if (status == BP_OK) {
        pthread_mutex_lock(&device->base.lock);
        status = keep(device, address, bytes, 0);
        pthread_mutex_unlock(&device->base.lock);
        if (status)
            bp_cu.address_free(address, bytes);
        else
            *out = address;
    }
    bp_device_leave(&device->base);
    return status;
}

/* Under the lock. */
static int32_t map_on(bp_cuda_device *device, uint64_t address, const bp_range *range) {
    bp_span span;
    int32_t status = bp_memory_resolve(&device->base, range, "the memory to map", &span);
    if (status)
        return status;
    const bp_cuda_memory *memory = (const bp_cuda_memory *)(const void *)span.memory;
    if (memory->origin != BP_CUDA_PHYSICAL || span.offset || span.bytes != span.memory->bytes ||
        span.bytes % BP_CUDA_PHYSICAL_ALIGNMENT)
        return bp_fail(BP_INVALID_ARGUMENT,
                       "%llu bytes at offset %llu of a memory aligned to %llu; only a whole memory "
                       "of size and alignment in units of %llu can be mapped",
                       (unsigned long long)span.bytes, (unsigned long long)span.offset,
                       (unsigned long long)span.memory->alignment, BP_CUDA_PHYSICAL_ALIGNMENT);
    if (address % BP_CUDA_PHYSICAL_ALIGNMENT || !find(device, address, span.bytes, 0))
        return bp_fail(BP_INVALID_ARGUMENT, "0x%llx with %llu bytes was not reserved",
                       (unsigned long long)address, (unsigned long long)span.bytes);
    if (taken(device, address, span.bytes))
        return bp_fail(BP_BUSY, "0x%llx is mapped already", (unsigned long long)address);
    bp_cu_result result = bp_cuda_place(device, address, span.bytes, memory->allocation);
    bp_cuda_notice(device, result);
    if (result)
        return bp_cuda_check(result, "the memory cannot be mapped");
    status = keep(device, address, span.bytes, 1);
    if (status)
        bp_cu.address_unmap(address, span.bytes);
    return status;
}

int32_t bp_cuda_map(uint64_t handle, uint64_t address, const bp_range *range) {
    if (!range)
        return bp_fail(BP_INVALID_ARGUMENT, "mem.map got no memory");
    bp_cuda_device *device = bp_cuda_enter(handle);
    if (!device)
        return BP_INVALID_ARGUMENT;
    int32_t status = bp_device_alive(&device->base);
    if (status == BP_OK && !device->facts->virtual_memory)
        status = bp_fail(BP_UNSUPPORTED, "this device has no virtual memory of its own");
    if (status == BP_OK) {
        pthread_mutex_lock(&device->base.lock);
        status = map_on(device, address, range);
        pthread_mutex_unlock(&device->base.lock);
        bp_cuda_settle(device);
    }
    bp_device_leave(&device->base);
    return status;
}

int32_t bp_cuda_unmap(uint64_t handle, uint64_t address, uint64_t bytes) {
    bp_cuda_device *device = bp_cuda_enter(handle);
    if (!device)
        return BP_INVALID_ARGUMENT;
    int32_t status = bp_device_alive(&device->base);
    if (status == BP_OK && !device->facts->virtual_memory)
        status = bp_fail(BP_UNSUPPORTED, "this device has no virtual memory of its own");
    if (status == BP_OK) {
        pthread_mutex_lock(&device->base.lock);
        bp_cuda_span **link = find(device, address, bytes, 1);
        bp_cu_result result = link ? bp_cu.context_synchronize() : BP_CU_SUCCESS;
        if (link && result == BP_CU_SUCCESS)
            result = bp_cu.address_unmap(address, bytes);
        bp_cuda_notice(device, result);
        status = bp_cuda_check(result, "the memory cannot be unmapped");
        if (!link)
            status = bp_fail(BP_INVALID_ARGUMENT, "0x%llx with %llu bytes is not mapped",
                             (unsigned long long)address, (unsigned long long)bytes);
        if (status == BP_OK) {
            bp_cuda_span *gone = *link;
            *link = gone->next;
            free(gone);
        }
        pthread_mutex_unlock(&device->base.lock);
        bp_cuda_settle(device);
    }
    bp_device_leave(&device->base);
    return status;
}

void bp_cuda_spans_free(bp_cuda_device *device) {
    for (int mapped = 1; mapped >= 0; mapped--)
        for (const bp_cuda_span *span = device->spans; span; span = span->next) {
            if (span->mapped == mapped && mapped)
                bp_cu.address_unmap(span->address, span->bytes);
            else if (span->mapped == mapped)
                bp_cu.address_free(span->address, span->bytes);
        }
    for (bp_cuda_span *span = device->spans, *next; span; span = next) {
        next = span->next;
        free(span);
    }
    device->spans = NULL;
}
