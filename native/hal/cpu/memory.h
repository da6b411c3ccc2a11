/* The cpu's memory objects; their address is their host pointer. */
#ifndef BEDPLATE_HAL_CPU_MEMORY_H
#define BEDPLATE_HAL_CPU_MEMORY_H

#include "../chassis/memory.h"

typedef struct bp_cpu_memory {
    bp_memory memory;
    /* Bytes of the mapping; 0 for heap memory and for the caller's. */
    uint64_t mapped_bytes;
} bp_cpu_memory;

/* The bytes of a span. */
static inline unsigned char *bp_cpu_bytes(const bp_span *span) {
    return (unsigned char *)span->memory->host + span->offset;
}

#endif
