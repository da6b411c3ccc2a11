/* See memory.h. */
#include "memory.h"

#include "device.h"

/* What clSVMAlloc aligns to when it is not asked: the largest type, a long16. */
#define SHARED_ALIGNMENT 128ull

static int32_t allocate_shared(bp_cl_device *device, bp_cl_memory *own) {
    bp_memory *memory = &own->memory;
    uint64_t extra = memory->alignment > SHARED_ALIGNMENT ? memory->alignment : 0;
    own->shared = cl.clSVMAlloc(device->context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER,
                                memory->bytes + extra, 0);
    if (!own->shared)
        return bp_fail(BP_OUT_OF_MEMORY, "clSVMAlloc refused %llu bytes",
                       (unsigned long long)(memory->bytes + extra));
    uint64_t at = (uint64_t)(uintptr_t)own->shared, mask = memory->alignment - 1;
    memory->host = extra ? (void *)(uintptr_t)((at + mask) & ~mask) : own->shared;
    return BP_OK;
}

static int32_t allocate(bp_device *device, bp_memory *memory) {
    bp_cl_device *own = bp_cl_device_of(device);
    const bp_cl_facts *facts = own->facts;
    if (memory->bytes > facts->most_alloc_bytes)
        return bp_fail(BP_OUT_OF_MEMORY, "%llu bytes in one piece; this device gives at most %llu",
                       (unsigned long long)memory->bytes,
                       (unsigned long long)facts->most_alloc_bytes);
    if (facts->shared)
        return allocate_shared(own, (bp_cl_memory *)memory);
    if (memory->alignment > facts->base_alignment)
        return bp_fail(BP_UNSUPPORTED, "an alignment of %llu; this device aligns memory to %llu",
                       (unsigned long long)memory->alignment,
                       (unsigned long long)facts->base_alignment);
    cl_int code = CL_SUCCESS;
    bp_cl_enter(facts);
    ((bp_cl_memory *)memory)->buffer =
        cl.clCreateBuffer(own->context, CL_MEM_READ_WRITE, memory->bytes, NULL, &code);
    bp_cl_leave(facts);
    return code ? bp_cl_fail(code, "clCreateBuffer") : BP_OK;
}

static int32_t pin(bp_device *device, bp_memory *memory) {
    (void)device;
    (void)memory;
    return BP_OK;
}

static void release(bp_device *device, bp_memory *memory) {
    bp_cl_memory *own = (bp_cl_memory *)memory;
    const bp_cl_facts *facts = bp_cl_device_of(device)->facts;
    bp_cl_enter(facts);
    if (own->buffer)
        cl.clReleaseMemObject(own->buffer);
    if (own->shared)
        cl.clSVMFree(bp_cl_device_of(device)->context, own->shared);
    bp_cl_leave(facts);
}

const bp_memory_driver bp_memory_driver_own = {
    .memory_bytes = sizeof(bp_cl_memory),
    .default_alignment = 64,
    .most_alignment = 2ull << 20,
    .allocate = allocate,
    .pin = pin,
    .release = release,
};
