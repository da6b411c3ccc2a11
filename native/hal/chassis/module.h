/*
 * Modules and their kernels, and the module table: load, info, kernel, kernel_info, unload.
 *
 * The chassis checks the source, keeps the names and gives handles; the backend turns a source into
 * an image and kernels (bp_module_driver). Names and isa live as long as the library, because the
 * table promises that of texts; a backend whose names do not gives them to bp_text_keep (text.h).
 */
#ifndef BEDPLATE_HAL_CHASSIS_MODULE_H
#define BEDPLATE_HAL_CHASSIS_MODULE_H

#include "device.h"

/* First member of a backend's own kernel struct. */
typedef struct bp_kernel_object {
    bp_object object;
    bp_text name;
    /* For launches and kernel_info; 0 registers is unknown. */
    uint32_t max_threads_per_block, registers;
    uint64_t static_shared_bytes;
} bp_kernel_object;

/* First member of a backend's own module struct. */
typedef struct bp_module_object {
    bp_object object;
    bp_text isa;
    uint32_t kernel_count;
    /* kernel_count names, and as many backend kernels of kernel_bytes each. */
    bp_text *names;
    unsigned char *kernels;
} bp_module_object;

/* One in each backend, called bp_module_driver_own. */
typedef struct bp_module_driver {
    /* sizeof the backend's structs, whose first members are those above. */
    uint32_t module_bytes, kernel_bytes;
    /* Loads a source: fills a zeroed module, calls bp_module_room once and fills the kernels.
     * BP_OK, or a status with a sentence, BP_UNSUPPORTED for a kind that it does not know; then
     * `release` is called for what was filled. Not locked. */
    int32_t (*load)(bp_device *device, const bp_module_source *source, bp_module_object *module);
    /* Gives back what load took; the chassis frees names, kernels and the object. */
    void (*release)(bp_module_object *module);
} bp_module_driver;

extern const bp_module_driver bp_module_driver_own;
extern const bp_module bp_module_table;

/* Makes room for `count` kernels; BP_OUT_OF_MEMORY with a sentence. */
int32_t bp_module_room(bp_module_object *module, uint32_t count);

/* Kernel `i` of a module with room. */
bp_kernel_object *bp_module_kernel(const bp_module_object *module, uint32_t i);

void bp_module_free(bp_module_object *module);

#endif
