/* The mem table and resolving; see memory.h. */
#include "memory.h"

#include "../adopt.h"
#include "visit.h"

#include <stdlib.h>

/* Bytes are taken from the account before they are allocated, so that callers who ask at once
 * cannot have more together than there is. */
static int32_t take_bytes(bp_device *device, uint64_t bytes) {
    pthread_mutex_lock(&device->lock);
    uint64_t left = device->memory_total - device->memory_used;
    if (bytes <= left)
        device->memory_used += bytes;
    pthread_mutex_unlock(&device->lock);
    if (bytes <= left)
        return BP_OK;
    return bp_fail(BP_OUT_OF_MEMORY, "%llu bytes were asked for, %llu of %llu are left",
                   (unsigned long long)bytes, (unsigned long long)left,
                   (unsigned long long)device->memory_total);
}

static void give_bytes_back(bp_device *device, uint64_t bytes) {
    pthread_mutex_lock(&device->lock);
    device->memory_used -= bytes;
    pthread_mutex_unlock(&device->lock);
}

void bp_memory_free(bp_device *device, bp_memory *memory) {
    if (!memory->pinned)
        device->memory_used -= memory->bytes;
    bp_memory_driver_own.release(device, memory);
    free(memory);
}

int32_t bp_memory_publish(bp_device *device, bp_memory *memory, uint64_t *out) {
    int32_t status = bp_device_give(device, &memory->object, BP_KIND_MEMORY, out);
    if (status) {
        pthread_mutex_lock(&device->lock);
        bp_memory_free(device, memory);
        pthread_mutex_unlock(&device->lock);
    }
    return status;
}

static int32_t check_wanted(const bp_memory_info *wanted) {
    if (wanted->bytes == 0)
        return bp_fail(BP_INVALID_ARGUMENT, "memory of 0 bytes was asked for");
    uint64_t most = bp_memory_driver_own.most_alignment;
    if (wanted->alignment & (wanted->alignment - 1) || wanted->alignment > most)
        return bp_fail(BP_INVALID_ARGUMENT, "alignment %llu is not a power of two up to %llu",
                       (unsigned long long)wanted->alignment, (unsigned long long)most);
    if (wanted->flags & ~(uint32_t)BP_MEMORY_EXPORTABLE || wanted->pad)
        return bp_fail(BP_INVALID_ARGUMENT, "memory flags 0x%x are unknown", wanted->flags);
    if (wanted->flags & ~bp_memory_driver_own.flags)
        return bp_fail(BP_UNSUPPORTED, "this backend has no memory with flags 0x%x", wanted->flags);
    return BP_OK;
}

bp_memory *bp_memory_make(void) {
    bp_memory *memory = calloc(1, bp_memory_driver_own.memory_bytes);
    if (!memory)
        bp_fail(BP_OUT_OF_MEMORY, "no host memory for a memory object");
    return memory;
}

static int32_t create_on(bp_device *device, const bp_memory_info *wanted, uint64_t *out) {
    bp_memory *memory = bp_memory_make();
    if (!memory)
        return BP_OUT_OF_MEMORY;
    int32_t status = take_bytes(device, wanted->bytes);
    if (status) {
        free(memory);
        return status;
    }
    uint64_t least = bp_memory_driver_own.default_alignment;
    memory->bytes = wanted->bytes;
    memory->flags = wanted->flags;
    memory->alignment = wanted->alignment > least ? wanted->alignment : least;
    status = bp_memory_driver_own.allocate(device, memory);
    if (status == BP_OK)
        return bp_memory_publish(device, memory, out);
    give_bytes_back(device, wanted->bytes);
    free(memory);
    return status;
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
    bp_device *device = bp_device_enter_alive(handle, &status);
    if (!device)
        return status;
    status = create_on(device, &wanted, out);
    bp_device_leave(device);
    return status;
}

static int32_t release(uint64_t device, uint64_t memory) {
    return bp_visit_retire(device, memory, BP_KIND_MEMORY);
}

static int32_t describe(uint64_t device, uint64_t handle, bp_memory_info *out) {
    bp_visit visit;
    int32_t status = bp_visit_begin(&visit, device, handle, BP_KIND_MEMORY);
    if (status)
        return status;
    const bp_memory *memory = visit.object;
    bp_memory_info own = {.head = {1, sizeof(own)},
                          .bytes = memory->bytes,
                          .alignment = memory->alignment,
                          .address = memory->address,
                          .host = memory->host};
    bp_visit_end(&visit);
    return bp_answer(out, &own, sizeof(own), "memory info");
}

static int32_t pin_on(bp_device *device, void *host, uint64_t bytes, uint64_t *out) {
    bp_memory *memory = bp_memory_make();
    if (!memory)
        return BP_OUT_OF_MEMORY;
    memory->pinned = 1;
    memory->host = host;
    memory->bytes = bytes;
    memory->alignment = (uintptr_t)host & -(uintptr_t)host;
    int32_t status = bp_memory_driver_own.pin(device, memory);
    if (status == BP_OK)
        return bp_memory_publish(device, memory, out);
    free(memory);
    return status;
}

static int32_t pin(uint64_t handle, void *host, uint64_t bytes, uint64_t *out) {
    if (!bp_memory_driver_own.pin)
        return bp_fail(BP_UNSUPPORTED, "this backend pins no host memory");
    if (!host || !out || bytes == 0 || (uintptr_t)host + bytes < (uintptr_t)host)
        return bp_fail(BP_INVALID_ARGUMENT, "mem.pin got %p with %llu bytes", host,
                       (unsigned long long)bytes);
    int32_t status = BP_OK;
    bp_device *device = bp_device_enter_alive(handle, &status);
    if (!device)
        return status;
    status = pin_on(device, host, bytes, out);
    bp_device_leave(device);
    return status;
}

int32_t bp_memory_refuse(bp_device *device, const bp_range *range, const char *what) {
    const bp_memory *memory = bp_object_find(range->memory, BP_KIND_MEMORY, device);
    if (!memory)
        return BP_INVALID_ARGUMENT;
    return bp_fail(BP_INVALID_ARGUMENT,
                   "%s: offset %llu + %llu bytes is past the end of %llu bytes", what,
                   (unsigned long long)range->offset, (unsigned long long)range->length,
                   (unsigned long long)memory->bytes);
}

int32_t bp_memory_resolve(bp_device *device, const bp_range *range, const char *what,
                          bp_span *span) {
    return bp_span_of(device, range, span) ? BP_OK : bp_memory_refuse(device, range, what);
}

uint64_t bp_span_place(const bp_span *span) {
    const bp_memory *memory = span->memory;
    return (memory->address ? memory->address : (uint64_t)(uintptr_t)memory->host) + span->offset;
}

int bp_span_overlap(const bp_span *one, const bp_span *other) {
    uint64_t a = one->offset, b = other->offset;
    if (one->memory != other->memory) {
        const bp_memory *left = one->memory, *right = other->memory;
        if (left->address && right->address) {
            a += left->address;
            b += right->address;
        } else if (left->host && right->host) {
            a += (uint64_t)(uintptr_t)left->host;
            b += (uint64_t)(uintptr_t)right->host;
        } else {
            return 0;
        }
    }
    return a < b + other->bytes && b < a + one->bytes;
}

const bp_mem bp_memory_table = {
    .head = {1, sizeof(bp_mem)},
    .create = create,
    .release = release,
    .describe = describe,
    .pin = pin,
};
