/* Modules from PTX text and cubins, and what their kernels may be asked. */
#ifndef BEDPLATE_HAL_CUDA_MODULE_H
#define BEDPLATE_HAL_CUDA_MODULE_H

#include "../chassis/launch.h"
#include "device.h"

/* Most parameters of a kernel whose layout is its own; others have as many as they like. */
#define BP_CUDA_MOST_PLACED 32u

typedef struct bp_cuda_kernel {
    bp_kernel_object base;
    bp_cu_function function;
    /* Bytes of its parameters as the HAL packs them. */
    uint32_t parameter_bytes;
    /* 0, or their number when the device lays them out in another way (a parameter aligned to 64
     * does not lie at 0: found on an H200); and where each one lies in what the HAL packs. */
    uint32_t placed;
    uint16_t places[BP_CUDA_MOST_PLACED];
    /* Most dynamic shared memory that it was allowed so far; the driver starts at 48 KiB. */
    uint32_t allowed_shared;
} bp_cuda_kernel;

typedef struct bp_cuda_module {
    bp_module_object base;
    bp_cu_module module;
    const bp_cuda_device *device;
} bp_cuda_module;

/* Most blocks of a cluster that every kernel may ask for; more needs a kernel's own consent. */
#define BP_CUDA_CLUSTER_BLOCKS 8u

/* What bp_batch_driver.launch wants: limits that only the kernel and this device know. Locked. */
int32_t bp_cuda_launch_check(bp_device *device, const bp_launch_node *node);

#endif
