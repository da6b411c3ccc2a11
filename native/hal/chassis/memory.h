/*
 * Memory objects and the mem table: create, release, describe, pin.
 *
 * The chassis checks sizes and alignment, keeps the account of bytes and resolves ranges; the
 * backend allocates (bp_memory_driver). A span is a resolved range: it stays valid until the batch
 * it is part of is done, because retire.h keeps the memory.
 */
#ifndef BEDPLATE_HAL_CHASSIS_MEMORY_H
#define BEDPLATE_HAL_CHASSIS_MEMORY_H

#include "device.h"

/* First member of a backend's own memory struct. */
typedef struct bp_memory {
    bp_object object;
    uint64_t bytes, alignment;
    /* Device address; 0 where the device has none. */
    uint64_t address;
    /* Where the host sees the bytes; null where it does not. Pinned memory: the caller's pointer.
     */
    void *host;
    /* Not ours: the caller's memory behind mem.pin, or another owner's behind mem.import_memory. */
    int pinned;
    /* BP_MEMORY_*. */
    uint32_t flags;
} bp_memory;

typedef struct bp_span {
    bp_memory *memory;
    uint64_t offset;
    uint64_t bytes;
} bp_span;

/* One in each backend, called bp_memory_driver_own. */
typedef struct bp_memory_driver {
    /* sizeof the backend's memory struct, whose first member is bp_memory. */
    uint32_t memory_bytes;
    /* Alignment when none is asked for, and the most that may be; powers of two. */
    uint64_t default_alignment, most_alignment;
    /* BP_MEMORY_* that `allocate` knows; what one device lacks it refuses itself. */
    uint32_t flags;
    /* Gives storage to a zeroed object with bytes and alignment set; sets address and host. BP_OK,
     * or a status with a sentence. Not locked. */
    int32_t (*allocate)(bp_device *device, bp_memory *memory);
    /* The same over the caller's bytes at memory->host; null where the device cannot. */
    int32_t (*pin)(bp_device *device, bp_memory *memory);
    /* Gives storage back, of either kind; the object itself is freed by the chassis. Locked. */
    void (*release)(bp_device *device, bp_memory *memory);
} bp_memory_driver;

extern const bp_memory_driver bp_memory_driver_own;
extern const bp_mem bp_memory_table;

/* Resolves a range; 0 without a sentence, which bp_memory_refuse then makes. Holds the lock. */
static inline int bp_span_of(bp_device *device, const bp_range *range, bp_span *span) {
    bp_memory *memory = bp_object_peek(range->memory, BP_KIND_MEMORY, device);
    if (!memory)
        return 0;
    uint64_t offset = range->offset, bytes = range->length;
    *span = (bp_span){memory, offset, bytes};
    return offset <= memory->bytes && bytes <= memory->bytes - offset;
}

int32_t bp_memory_refuse(bp_device *device, const bp_range *range, const char *what)
    __attribute__((cold));

/* Resolves a range; BP_INVALID_ARGUMENT with a sentence. Memory 0 is refused. Holds the lock. */
int32_t bp_memory_resolve(bp_device *device, const bp_range *range, const char *what,
                          bp_span *span);

/* Where a span begins, for checks of alignment: its device address, else what is known of it. */
uint64_t bp_span_place(const bp_span *span);

/* Whether two spans share a byte, through two handles over the same bytes too. */
int bp_span_overlap(const bp_span *one, const bp_span *other);

/* For a backend's own way to memory: a zeroed object of its size, or null with a sentence; and
 * giving one with storage its handle, or freeing it. Such memory is `pinned`: only mem.create
 * counts bytes. Not locked. */
bp_memory *bp_memory_make(void);
int32_t bp_memory_publish(bp_device *device, bp_memory *memory, uint64_t *out);

/* Frees storage and object. Holds the lock. */
void bp_memory_free(bp_device *device, bp_memory *memory);

#endif
