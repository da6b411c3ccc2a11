/* Memory of a CUDA device; see memory.h. */
#include "memory.h"

#include "../chassis/retire.h"
#include "queue.h"

#define POOL_ALIGNMENT  256ull
#define JUNK_NEW        0xA5
#define JUNK_RELEASED   0xDD
#define ROUND_UP(x, to) (((x) + (to) - 1) / (to) * (to))

static bp_cuda_memory *own_of(bp_memory *memory) {
    return (bp_cuda_memory *)memory;
}

bp_cu_result bp_cuda_adopt(const bp_cuda_device *device, bp_cuda_memory *memory,
                           bp_cu_allocation allocation) {
    uint64_t bytes = ROUND_UP(memory->base.bytes, BP_CUDA_PHYSICAL_ALIGNMENT);
    bp_cu_result result =
        bp_cu.address_reserve(&memory->start, bytes, memory->base.alignment, 0, 0);
    if (result)
        return result;
    result = bp_cuda_place(device, memory->start, bytes, allocation);
    if (result) {
        bp_cu.address_free(memory->start, bytes);
        return result;
    }
    memory->allocation = allocation;
    memory->origin = BP_CUDA_PHYSICAL;
    memory->whole_bytes = bytes;
    return BP_CU_SUCCESS;
}

static bp_cu_result take_physical(const bp_cuda_device *device, bp_cuda_memory *memory) {
    int crosses = (memory->base.flags & BP_MEMORY_EXPORTABLE) != 0;
    bp_cu_allocation_wish wish = {
        .type = BP_CU_MEM_ALLOCATION_TYPE_PINNED,
        .handle_types = crosses ? BP_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : 0,
        .location = {BP_CU_MEM_LOCATION_TYPE_DEVICE, device->facts->device}};
    bp_cu_allocation allocation = 0;
    uint64_t bytes = ROUND_UP(memory->base.bytes, BP_CUDA_PHYSICAL_ALIGNMENT);
    bp_cu_result result = bp_cu.allocation_create(&allocation, bytes, &wish, 0);
    if (result)
        return result;
    result = bp_cuda_adopt(device, memory, allocation);
    if (result)
        bp_cu.allocation_release(allocation);
    return result;
}

/* The pool works in the order of a stream; waiting for that makes the memory everybody's. */
static bp_cu_result take_pool(const bp_cuda_device *device, bp_cuda_memory *memory) {
    memory->origin = BP_CUDA_POOL;
    bp_cu_result result = bp_cu.pool_alloc(&memory->start, memory->whole_bytes, device->stream);
    return result ? result : bp_cu.stream_synchronize(device->stream);
}

static bp_cu_result take(const bp_cuda_device *device, bp_cuda_memory *memory) {
    uint64_t alignment = memory->base.alignment;
    if ((alignment >= BP_CUDA_PHYSICAL_ALIGNMENT || memory->base.flags) &&
        device->facts->virtual_memory)
        return take_physical(device, memory);
    uint64_t slack = alignment > POOL_ALIGNMENT ? alignment - POOL_ALIGNMENT : 0;
    memory->whole_bytes = memory->base.bytes + slack;
    if (device->facts->pools)
        return take_pool(device, memory);
    memory->origin = BP_CUDA_PLAIN;
    return bp_cu.memory_alloc(&memory->start, memory->whole_bytes);
}

/* Poison, for BEDPLATE_CHECK=1. */
static void junk(const bp_cuda_device *device, const bp_cuda_memory *memory, unsigned char value) {
    bp_cu.fill_8(memory->base.address, value, memory->base.bytes, device->stream);
    bp_cu.stream_synchronize(device->stream);
}

/* Frees what was released and still waits for batches in flight. */
static void settle_released(bp_device *base) {
    bp_cu.context_synchronize();
    pthread_mutex_lock(&base->lock);
    bp_retire_sweep(base);
    /* Batches that are kept hold everything released after them; what they do not name can go. */
    for (bp_object *object = base->retired; object; object = object->next) {
        bp_cuda_memory *memory = (bp_cuda_memory *)object;
        if (object->kind != BP_KIND_MEMORY || !memory->pinned ||
            bp_cuda_queues_name(bp_cuda_device_of(base), &memory->base))
            continue;
        bp_cuda_unpin(memory->pinned);
        memory->pinned = NULL;
    }
    pthread_mutex_unlock(&base->lock);
}

static int32_t allocate(bp_device *base, bp_memory *given) {
    bp_cuda_device *device = bp_cuda_device_of(base);
    bp_cuda_memory *memory = own_of(given);
    if (given->flags & BP_MEMORY_EXPORTABLE && !device->facts->external)
        return bp_fail(BP_UNSUPPORTED, "this device has no memory that can be exported");
    bp_cuda_current(device);
    bp_cu_result result = take(device, memory);
    if (result == BP_CU_OUT_OF_MEMORY) {
        settle_released(base);
        result = take(device, memory);
    }
    if (result == BP_CU_OUT_OF_MEMORY)
        return bp_fail(BP_OUT_OF_MEMORY, "the device has no %llu bytes left",
                       (unsigned long long)given->bytes);
    bp_cuda_notice(device, result);
    bp_cuda_settle(device);
    if (result)
        return bp_cuda_check(result, "memory was refused");
    given->address = ROUND_UP(memory->start, given->alignment);
    if (base->check)
        junk(device, memory, JUNK_NEW);
    return BP_OK;
}

static int32_t pin(bp_device *base, bp_memory *given) {
    bp_cuda_device *device = bp_cuda_device_of(base);
    bp_cuda_memory *memory = own_of(given);
    bp_cuda_current(device);
    memory->origin = BP_CUDA_REGISTERED;
    bp_cu_result result = bp_cuda_pin(given->host, given->bytes, &memory->pinned);
    if (result == BP_CU_HOST_MEMORY_ALREADY_REGISTERED) {
        settle_released(base);
        result = bp_cuda_pin(given->host, given->bytes, &memory->pinned);
    }
    if (result == BP_CU_SUCCESS) {
        result = bp_cu.host_address(&given->address, given->host, 0);
        if (result)
            bp_cuda_unpin(memory->pinned);
    }
    bp_cuda_notice(device, result);
    bp_cuda_settle(device);
    return bp_cuda_check(result, "the memory cannot be pinned");
}

static void release(bp_device *base, bp_memory *given) {
    bp_cuda_device *device = bp_cuda_device_of(base);
    bp_cuda_memory *memory = own_of(given);
    bp_cuda_current(device);
    /* What was exported may be somebody else's still. */
    if (base->check && !given->pinned && !(given->flags & BP_MEMORY_EXPORTABLE))
        junk(device, memory, JUNK_RELEASED);
    switch (memory->origin) {
    case BP_CUDA_POOL:
        bp_cu.pool_free(memory->start, device->stream);
        break;
    case BP_CUDA_PLAIN:
        bp_cu.memory_free(memory->start);
        break;
    case BP_CUDA_PHYSICAL:
        bp_cu.address_unmap(memory->start, memory->whole_bytes);
        bp_cu.address_free(memory->start, memory->whole_bytes);
        bp_cu.allocation_release(memory->allocation);
        break;
    case BP_CUDA_REGISTERED:
        bp_cuda_unpin(memory->pinned);
        break;
    }
}

const bp_memory_driver bp_memory_driver_own = {
    .memory_bytes = sizeof(bp_cuda_memory),
    .default_alignment = POOL_ALIGNMENT,
    .most_alignment = BP_CUDA_PHYSICAL_ALIGNMENT,
    .flags = BP_MEMORY_EXPORTABLE,
    .allocate = allocate,
    .pin = pin,
    .release = release,
};
