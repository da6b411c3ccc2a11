/* Modules from PTX text and cubins, and what their kernels may be asked. */
#ifndef BEDPLATE_HAL_CUDA_MODULE_H
#define BEDPLATE_HAL_CUDA_MODULE_H

#include "../chassis/launch.h"
#include "device.h"

typedef struct bp_cuda_kernel {
    bp_kernel_object base;
    bp_cu_function function;
    /* Bytes of its packed parameters, without padding behind the last. */
    uint32_t parameter_bytes;
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
