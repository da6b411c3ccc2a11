/* The module table; see module.h. */
#include "module.h"

#include "../adopt.h"
#include "visit.h"

#include <stdlib.h>

int32_t bp_module_room(bp_module_object *module, uint32_t count) {
    uint32_t room = count ? count : 1;
    module->names = calloc(room, sizeof(*module->names));
    module->kernels = calloc(room, bp_module_driver_own.kernel_bytes);
    if (!module->names || !module->kernels)
        return bp_fail(BP_OUT_OF_MEMORY, "no host memory for a module of %u kernels", count);
    module->kernel_count = count;
    return BP_OK;
}

bp_kernel_object *bp_module_kernel(const bp_module_object *module, uint32_t i) {
    unsigned char *place = module->kernels + (uint64_t)i * bp_module_driver_own.kernel_bytes;
    return (bp_kernel_object *)(void *)place;
}

void bp_module_free(bp_module_object *module) {
    bp_module_driver_own.release(module);
    free(module->names);
    free(module->kernels);
    free(module);
}

static int32_t load_on(bp_device *device, const bp_module_source *source, uint64_t *out) {
    bp_module_object *module = calloc(1, bp_module_driver_own.module_bytes);
    if (!module)
        return bp_fail(BP_OUT_OF_MEMORY, "no host memory for a module");
    int32_t status = bp_module_driver_own.load(device, source, module);
    if (status == BP_OK) {
        for (uint32_t i = 0; i < module->kernel_count; i++)
            module->names[i] = bp_module_kernel(module, i)->name;
        status = bp_device_give(device, &module->object, BP_KIND_MODULE, out);
    }
    if (status)
        bp_module_free(module);
    return status;
}

static int32_t load(uint64_t handle, const bp_module_source *given, uint64_t *out) {
    bp_module_source source;
    int32_t status = BP_ADOPT(given, &source, "module source");
    if (status == BP_OK && !out)
        status = bp_fail(BP_INVALID_ARGUMENT, "module.load got no place for its result");
    if (status)
        return status;
    bp_device *device = bp_device_enter_alive(handle, &status);
    if (!device)
        return status;
    status = load_on(device, &source, out);
    bp_device_leave(device);
    return status;
}

static int32_t info(uint64_t device, uint64_t handle, bp_module_info *out) {
    bp_visit visit;
    int32_t status = bp_visit_begin(&visit, device, handle, BP_KIND_MODULE);
    if (status)
        return status;
    const bp_module_object *module = visit.object;
    bp_module_info own = {.head = {1, sizeof(own)},
                          .isa = module->isa,
                          .kernels = module->names,
                          .kernel_count = module->kernel_count};
    bp_visit_end(&visit);
    return bp_answer(out, &own, sizeof(own), "module info");
}

static bp_kernel_object *named(bp_module_object *module, const bp_text *name) {
    for (uint32_t i = 0; i < module->kernel_count; i++) {
        bp_kernel_object *kernel = bp_module_kernel(module, i);
        if (kernel->name.length == name->length &&
            memcmp(kernel->name.data, name->data, name->length) == 0)
            return kernel;
    }
    bp_fail(BP_NOT_FOUND, "the module has no kernel %.*s",
            (int)(name->length < 200 ? name->length : 200), name->data);
    return NULL;
}

/* A kernel gets its handle when it is first asked for; it goes stale with its module. */
static int32_t kernel_of(bp_device *device, bp_module_object *module, const bp_text *name,
                         uint64_t *out) {
    bp_kernel_object *found = named(module, name);
    if (!found)
        return BP_NOT_FOUND;
    if (!found->object.handle) {
        int32_t status = bp_object_publish(&found->object, BP_KIND_KERNEL, device);
        if (status)
            return status;
        found->object.parts = module->object.parts;
        module->object.parts = &found->object;
    }
    *out = found->object.handle;
    return BP_OK;
}

static int32_t kernel(uint64_t device, uint64_t module, const bp_text *name, uint64_t *out) {
    if (!name || !name->data || !out)
        return bp_fail(BP_INVALID_ARGUMENT, "module.kernel got no name or no place for its result");
    bp_visit visit;
    int32_t status = bp_visit_begin(&visit, device, module, BP_KIND_MODULE);
    if (status == BP_OK) {
        status = kernel_of(visit.device, visit.object, name, out);
        bp_visit_end(&visit);
    }
    return status;
}

static int32_t kernel_info(uint64_t device, uint64_t handle, bp_kernel_info *out) {
    bp_visit visit;
    int32_t status = bp_visit_begin(&visit, device, handle, BP_KIND_KERNEL);
    if (status)
        return status;
    const bp_kernel_object *found = visit.object;
    bp_kernel_info own = {.head = {1, sizeof(own)},
                          .name = found->name,
                          .max_threads_per_block = found->max_threads_per_block,
                          .registers = found->registers,
                          .static_shared_bytes = found->static_shared_bytes};
    bp_visit_end(&visit);
    return bp_answer(out, &own, sizeof(own), "kernel info");
}

static int32_t unload(uint64_t device, uint64_t module) {
    return bp_visit_retire(device, module, BP_KIND_MODULE);
}

const bp_module bp_module_table = {
    .head = {1, sizeof(bp_module)},
    .load = load,
    .info = info,
    .kernel = kernel,
    .kernel_info = kernel_info,
    .unload = unload,
};
