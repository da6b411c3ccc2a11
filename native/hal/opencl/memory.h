/*
 * Memory of an OpenCL device: fine-grained shared virtual memory where the device has it, which
 * the host sees; else buffers, which it does not. Pinned memory is the caller's pointer and no
 * OpenCL object: copies read and write it, kernels do not take it.
 */
#ifndef BEDPLATE_HAL_OPENCL_MEMORY_H
#define BEDPLATE_HAL_OPENCL_MEMORY_H

#include "../chassis/memory.h"
#include "cl.h"

typedef struct bp_cl_memory {
    bp_memory memory;
    /* One of both; neither for pinned memory. */
    cl_mem buffer;
    void *shared;
} bp_cl_memory;

static inline bp_cl_memory *bp_cl_memory_of(const bp_span *span) {
    return (bp_cl_memory *)span->memory;
}

/* Where the host sees a span of pinned or shared memory. */
static inline unsigned char *bp_cl_bytes(const bp_span *span) {
    return (unsigned char *)span->memory->host + span->offset;
}

#endif
