/* Memory objects: host memory that the device addresses directly. */
#ifndef BEDPLATE_HAL_CPU_MEMORY_H
#define BEDPLATE_HAL_CPU_MEMORY_H

#include "device.h"

typedef struct bp_memory {
    bp_object object;
    unsigned char *data;
    uint64_t bytes, alignment;
    /* Bytes of the mapping, 0 for heap memory; pinned memory is the caller's. */
    uint64_t mapped_bytes;
    int pinned;
} bp_memory;

extern const bp_mem bp_memory_table;

/* Resolves a range to an address, or null with a sentence. Memory 0 is refused. Holds the lock. */
unsigned char *bp_memory_resolve(bp_device *device, const bp_range *range, const char *what);

void bp_memory_free(bp_device *device, bp_memory *memory);

#endif
