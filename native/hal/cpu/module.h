/* Native modules: shared objects of kernels that run on this device. */
#ifndef BEDPLATE_HAL_CPU_MODULE_H
#define BEDPLATE_HAL_CPU_MODULE_H

#include "device.h"

typedef struct bp_kernel_object {
    bp_object object;
    bp_text name;
    bp_native_entry entry;
} bp_kernel_object;

typedef struct bp_module_object {
    bp_object object;
    bp_text isa;
    uint32_t kernel_count;
    bp_text *names;
    bp_kernel_object *kernels;
} bp_module_object;

#define BP_MAX_THREADS_PER_BLOCK 1024u

extern const bp_module bp_module_table;

void bp_module_free(bp_module_object *module);

#endif
