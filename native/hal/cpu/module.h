/* Native modules: shared objects of kernels that run on this device. */
#ifndef BEDPLATE_HAL_CPU_MODULE_H
#define BEDPLATE_HAL_CPU_MODULE_H

#include "../chassis/module.h"

typedef struct bp_cpu_kernel {
    bp_kernel_object kernel;
    bp_native_entry entry;
} bp_cpu_kernel;

#define BP_MAX_THREADS_PER_BLOCK 1024u

#endif
