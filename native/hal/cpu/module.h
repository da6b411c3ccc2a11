/* Native modules: shared objects of kernels that run on this device. */
#ifndef BEDPLATE_HAL_CPU_MODULE_H
#define BEDPLATE_HAL_CPU_MODULE_H

#include "../chassis/launch.h"
#include "../chassis/module.h"

typedef struct bp_cpu_kernel {
    bp_kernel_object kernel;
    bp_native_entry entry;
    /* What it asks of launches; null when nothing is known. */
    const bp_native_facts *facts;
} bp_cpu_kernel;

/* Makes the kernels of a module that was asked, its isa and its facts; BP_OUT_OF_MEMORY or, for
 * facts that no launch can meet, BP_INVALID_ARGUMENT with a sentence. */
int32_t bp_cpu_module_fill(const bp_native_module *native, bp_module_object *module);

/* Whether a launch is one that its kernel takes; BP_INVALID_ARGUMENT with a sentence. */
int32_t bp_cpu_launch_check(bp_device *device, const bp_launch_node *node);

#define BP_MAX_THREADS_PER_BLOCK 1024u

#endif
