/*
 * Memory of a CUDA device, which the host does not see.
 *
 * Up to an alignment of 256 bytes it comes from the driver's pool, which keeps what was given back;
 * memory that asks for 2 MiB or more is a physical allocation of its own, and only that can be put
 * behind reserved addresses (mem.map). Pinned memory is the caller's, registered with the driver.
 */
#ifndef BEDPLATE_HAL_CUDA_MEMORY_H
#define BEDPLATE_HAL_CUDA_MEMORY_H

#include "../chassis/memory.h"
#include "device.h"
#include "pinned.h"

/* Where storage came from, and so how it goes back. */
typedef enum bp_cuda_origin {
    BP_CUDA_POOL,
    BP_CUDA_PLAIN,
    BP_CUDA_PHYSICAL,
    /* The caller's. */
    BP_CUDA_REGISTERED,
} bp_cuda_origin;

typedef struct bp_cuda_memory {
    bp_memory base;
    bp_cuda_origin origin;
    /* The driver's address; base.address is aligned as asked. */
    bp_cu_address start;
    bp_cu_allocation allocation;
    bp_cuda_pinned *pinned;
    uint64_t whole_bytes;
} bp_cuda_memory;

/* From this alignment on memory is physical. The driver's granularity on every known device. */
#define BP_CUDA_PHYSICAL_ALIGNMENT (2ull << 20)

/* address.c: reserved address space. */
int32_t bp_cuda_reserve(uint64_t device, uint64_t bytes, uint64_t alignment, uint64_t *address);
int32_t bp_cuda_map(uint64_t device, uint64_t address, const bp_range *range);
int32_t bp_cuda_unmap(uint64_t device, uint64_t address, uint64_t bytes);

/* external.c: memory that crosses by file descriptor, and from device to device. */
int32_t bp_cuda_export(uint64_t device, uint64_t memory, bp_external *out);
int32_t bp_cuda_import(uint64_t device, const bp_external *external, uint64_t *memory);

/* Puts an allocation behind addresses of the memory's alignment: sets start, origin and
 * whole_bytes; on failure nothing is kept but the allocation. */
bp_cu_result bp_cuda_adopt(const bp_cuda_device *device, bp_cuda_memory *memory,
                           bp_cu_allocation allocation);

/* Gives all reserved ranges back. */
void bp_cuda_spans_free(bp_cuda_device *device);

/* Maps an allocation at an address for the device, readable and writable. */
bp_cu_result bp_cuda_place(const bp_cuda_device *device, bp_cu_address address, uint64_t bytes,
                           bp_cu_allocation allocation);

#endif
