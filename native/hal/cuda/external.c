/*
 * Memory that crosses: mem.export_memory and mem.import_memory, by POSIX file descriptor.
 *
 * The descriptor stands for the physical allocation. Importing it maps the same bytes for another
 * open, another process or another device of this one; on another device a copy between the two
 * memories is then a peer copy, which the driver routes itself (addresses say where bytes lie).
 * Whether a device can reach another's bytes is asked first: cuDeviceCanAccessPeer.
 */
#include "../adopt.h"
#include "../chassis/visit.h"
#include "memory.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define MOST_DESCRIPTOR 0x7fffffffull

int32_t bp_cuda_export(uint64_t handle, uint64_t memory_handle, bp_external *out) {
    bp_visit visit;
    bp_external own = {.head = {1, sizeof(own)}, .kind = BP_EXTERNAL_FILE_DESCRIPTOR};
    int32_t status = bp_visit_begin_alive(&visit, handle, memory_handle, BP_KIND_MEMORY);
    if (status)
        return status;
    bp_cuda_device *device = bp_cuda_device_of(visit.device);
    const bp_cuda_memory *memory = visit.object;
    int descriptor = -1;
    if (!device->facts->external) {
        status = bp_fail(BP_UNSUPPORTED, "this device has no memory that can be exported");
    } else if (!(memory->base.flags & BP_MEMORY_EXPORTABLE)) {
        status = bp_fail(BP_INVALID_ARGUMENT,
                         "memory of %llu bytes was not made with BP_MEMORY_EXPORTABLE",
                         (unsigned long long)memory->base.bytes);
    } else {
        bp_cuda_current(device);
        bp_cu_result result = bp_cu.allocation_export(
            &descriptor, memory->allocation, BP_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
        bp_cuda_notice(device, result);
        status = bp_cuda_check(result, "the memory cannot be exported");
    }
    own.value = (uint64_t)descriptor;
    own.bytes = memory->base.bytes;
    bp_visit_end(&visit);
    bp_cuda_settle(device);
    if (status)
        return status;
    status = bp_answer(out, &own, sizeof(own), "external memory");
    if (status)
        close(descriptor);
    return status;
}

static int32_t no_memory(const bp_external *given) {
    return bp_fail(BP_INVALID_ARGUMENT,
                   "descriptor %llu is of no memory of this driver with %llu bytes",
                   (unsigned long long)given->value, (unsigned long long)given->bytes);
}

/* Whether the device can reach an allocation, which may lie on another. */
static int32_t check_reach(const bp_cuda_device *device, const bp_external *given,
                           bp_cu_allocation allocation) {
    bp_cu_allocation_wish wish = {0};
    int can = 1;
    if (!bp_cu.allocation_properties || !bp_cu.peer_access)
        return BP_OK;
    if (bp_cu.allocation_properties(&wish, allocation))
        return no_memory(given);
    if (wish.location.id == device->facts->device)
        return BP_OK;
    bp_cu_result result = bp_cu.peer_access(&can, device->facts->device, wish.location.id);
    if (result || !can)
        return bp_fail(BP_UNSUPPORTED, "device %d cannot reach the memory of device %d",
                       device->facts->device, wish.location.id);
    return BP_OK;
}

/* The driver's results are not noticed here: of a wrong descriptor it says what it says of a lost
 * device (999, at the import or at the next call), so the device is asked itself. */
static int32_t place(bp_cuda_device *device, const bp_external *given, bp_cuda_memory *memory) {
    bp_cu_allocation allocation = 0;
    if (bp_cu.allocation_import(&allocation, (void *)(uintptr_t)given->value,
                                BP_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
        return no_memory(given);
    int32_t status = check_reach(device, given, allocation);
    if (status == BP_OK) {
        bp_cu_result result = bp_cuda_adopt(device, memory, allocation);
        if (result)
            status = result == BP_CU_OUT_OF_MEMORY
                         ? bp_cuda_check(result, "the memory cannot be imported")
                         : no_memory(given);
    }
    if (status)
        bp_cu.allocation_release(allocation);
    return status;
}

static int32_t import_on(bp_cuda_device *device, const bp_external *given, uint64_t *out) {
    bp_cuda_memory *memory = (bp_cuda_memory *)bp_memory_make();
    if (!memory)
        return BP_OUT_OF_MEMORY;
    memory->base.pinned = 1;
    memory->base.bytes = given->bytes;
    memory->base.alignment = BP_CUDA_PHYSICAL_ALIGNMENT;
    memory->base.flags = BP_MEMORY_EXPORTABLE;
    bp_cuda_current(device);
    int32_t status = place(device, given, memory);
    if (status) {
        free(memory);
        bp_cuda_notice(device, bp_cu.stream_query(device->stream));
        return status;
    }
    memory->base.address = memory->start;
    return bp_memory_publish(&device->base, &memory->base, out);
}

int32_t bp_cuda_import(uint64_t handle, const bp_external *external, uint64_t *out) {
    bp_external given;
    int32_t status = BP_ADOPT(external, &given, "external memory");
    if (status == BP_OK && !out)
        status = bp_fail(BP_INVALID_ARGUMENT, "mem.import_memory got no place for its result");
    if (status)
        return status;
    if (given.kind != BP_EXTERNAL_FILE_DESCRIPTOR)
        return bp_fail(BP_UNSUPPORTED, "external memory of kind %u; descriptors are known",
                       given.kind);
    if (given.value > MOST_DESCRIPTOR || given.bytes == 0 || fcntl((int)given.value, F_GETFD) < 0)
        return bp_fail(BP_INVALID_ARGUMENT,
                       "external memory of %llu bytes at descriptor %llu, which must be open",
                       (unsigned long long)given.bytes, (unsigned long long)given.value);
    bp_cuda_device *device = bp_cuda_enter(handle);
    if (!device)
        return BP_INVALID_ARGUMENT;
    status = bp_device_alive(&device->base);
    if (status == BP_OK && !device->facts->external)
        status = bp_fail(BP_UNSUPPORTED, "this device imports no memory");
    if (status == BP_OK)
        status = import_on(device, &given, out);
    bp_cuda_settle(device);
    bp_device_leave(&device->base);
    return status;
}
