/*
 * Reserved address space: mem.reserve, map and unmap.
 *
 * A range that was reserved stays so until the device is closed, because the table has no way to
 * give it back. map takes whole physical memories only (memory.h); the mapping keeps their bytes
 * alive by itself. unmap waits for the device, so no batch can be looking.
 *
 * What is mapped is kept as a table of units in each reservation, 4 bytes for 2 MiB of addresses,
 * so that map and unmap do not depend on how much is mapped; the host gives pages of the table
 * when they are first written.
 */
#include "memory.h"

#include <stdlib.h>
#include <string.h>

#define UNIT    BP_CUDA_PHYSICAL_ALIGNMENT
#define COVERED UINT32_MAX

typedef struct bp_cuda_span {
    struct bp_cuda_span *next;
    uint64_t address, bytes;
    /* Of each unit: the units of the mapping that begins there, COVERED by an earlier one, or 0. */
    uint32_t mapped[];
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

/* The reservation that holds a range, and where in its table the range begins. */
static bp_cuda_span *find(const bp_cuda_device *device, uint64_t address, uint64_t bytes,
                          uint32_t **units) {
    for (bp_cuda_span *span = device->spans; span; span = span->next)
        if (address % UNIT == 0 && address >= span->address && bytes <= span->bytes &&
            address - span->address <= span->bytes - bytes) {
            *units = span->mapped + (address - span->address) / UNIT;
            return span;
        }
    return NULL;
}

/* Whether something is mapped in the units already. */
static int taken(const uint32_t *units, uint64_t count) {
    for (uint64_t i = 0; i < count; i++)
        if (units[i])
            return 1;
    return 0;
}

static void enter(uint32_t *units, uint64_t count) {
    units[0] = (uint32_t)count;
    for (uint64_t i = 1; i < count; i++)
        units[i] = COVERED;
}

int32_t bp_cuda_reserve(uint64_t handle, uint64_t bytes, uint64_t alignment, uint64_t *out) {
    if (!out || bytes == 0 || bytes % UNIT || alignment & (alignment - 1))
        return bp_fail(BP_INVALID_ARGUMENT,
                       "address space of %llu bytes aligned to %llu; it comes in pieces of %llu",
                       (unsigned long long)bytes, (unsigned long long)alignment,
                       (unsigned long long)UNIT);
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
        bp_cuda_span *span =
            calloc(1, sizeof(*span) + (size_t)(bytes / UNIT) * sizeof(span->mapped[0]));
        if (span) {
            pthread_mutex_lock(&device->base.lock);
            span->next = device->spans;
            span->address = address;
            span->bytes = bytes;
            device->spans = span;
            pthread_mutex_unlock(&device->base.lock);
            *out = address;
        } else {
            bp_cu.address_free(address, bytes);
            status = bp_fail(BP_OUT_OF_MEMORY, "no host memory for an address range");
        }
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
    uint32_t *units;
    if (!find(device, address, span.bytes, &units))
        return bp_fail(BP_INVALID_ARGUMENT, "0x%llx with %llu bytes was not reserved",
                       (unsigned long long)address, (unsigned long long)span.bytes);
    if (taken(units, span.bytes / UNIT))
        return bp_fail(BP_BUSY, "0x%llx is mapped already", (unsigned long long)address);
    bp_cu_result result = bp_cuda_place(device, address, span.bytes, memory->allocation);
    bp_cuda_notice(device, result);
    if (result)
        return bp_cuda_check(result, "the memory cannot be mapped");
    enter(units, span.bytes / UNIT);
    return BP_OK;
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
        uint32_t *units = NULL;
        int mapped = bytes && bytes % UNIT == 0 && find(device, address, bytes, &units) &&
                     units[0] == bytes / UNIT;
        bp_cu_result result = mapped ? bp_cu.context_synchronize() : BP_CU_SUCCESS;
        if (mapped && result == BP_CU_SUCCESS)
            result = bp_cu.address_unmap(address, bytes);
        bp_cuda_notice(device, result);
        status = bp_cuda_check(result, "the memory cannot be unmapped");
        if (!mapped)
            status = bp_fail(BP_INVALID_ARGUMENT, "0x%llx with %llu bytes is not mapped",
                             (unsigned long long)address, (unsigned long long)bytes);
        else if (status == BP_OK)
            memset(units, 0, (size_t)(bytes / UNIT) * sizeof(*units));
        pthread_mutex_unlock(&device->base.lock);
        bp_cuda_settle(device);
    }
    bp_device_leave(&device->base);
    return status;
}

void bp_cuda_spans_free(bp_cuda_device *device) {
    for (bp_cuda_span *span = device->spans, *next; span; span = next) {
        next = span->next;
        for (uint64_t i = 0; i < span->bytes / UNIT; i++)
            if (span->mapped[i] && span->mapped[i] != COVERED)
                bp_cu.address_unmap(span->address + i * UNIT, span->mapped[i] * UNIT);
        bp_cu.address_free(span->address, span->bytes);
        free(span);
    }
    device->spans = NULL;
}
