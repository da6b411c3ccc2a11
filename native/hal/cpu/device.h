/* The cpu's device: an instruction set level and a worker pool, both chosen at open. */
#ifndef BEDPLATE_HAL_CPU_DEVICE_H
#define BEDPLATE_HAL_CPU_DEVICE_H

#include "../chassis/device.h"

struct bp_pool;
struct bp_windows;

typedef struct bp_cpu_device {
    bp_device device;
    int isa;
    uint32_t threads;
    struct bp_pool *pool;
    /* What launches are told of memory; null where they are not held to it. */
    struct bp_windows *windows;
} bp_cpu_device;

static inline bp_cpu_device *bp_cpu_device_of(bp_device *device) {
    return (bp_cpu_device *)device;
}

#define BP_MAX_SHARED_BYTES (1u << 20)

#endif
