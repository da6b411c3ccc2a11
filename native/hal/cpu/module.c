/*
 * Loading a native module: an absolute path, one symbol, one query, then everything it said is
 * checked. The library stays open for the life of the process, because kernels of it may be known
 * to threads of its own; unload only makes handles stale.
 */
#include "module.h"

#include "../adopt.h"
#include "isa.h"
#include "retire.h"

#include <dlfcn.h>
#include <stdlib.h>

#define MOST_KERNELS 65536u

typedef int32_t (*query_function)(uint32_t, const bp_native_module **);

void bp_module_free(bp_module_object *module) {
    free(module->names);
    free(module->kernels);
    free(module);
}

static int32_t check_kernels(const bp_native_module *native, const char *path) {
    if (native->kernel_count > MOST_KERNELS || (native->kernel_count && !native->kernels))
        return bp_fail(BP_INVALID_ARGUMENT, "%s says it has %u kernels at %p", path,
                       native->kernel_count, (const void *)native->kernels);
    for (uint32_t i = 0; i < native->kernel_count; i++) {
        const bp_native_kernel *kernel = &native->kernels[i];
        if (!kernel->entry || !kernel->name.data || !kernel->name.length)
            return bp_fail(BP_INVALID_ARGUMENT, "kernel %u of %s has no name or no entry", i, path);
    }
    return BP_OK;
}

/* Opens and asks; fills `native` with a checked answer. */
static int32_t ask(const char *path, int isa, bp_native_module *native) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return bp_fail(BP_NOT_FOUND, "cannot open the module %s: %s", path, dlerror());
    query_function query = NULL;
    *(void **)&query = dlsym(library, "bedplate_native_module_query");
    if (!query)
        return bp_fail(BP_INVALID_ARGUMENT, "%s does not export bedplate_native_module_query",
                       path);
    const bp_native_module *answer = NULL;
    int32_t status = query(BP_ABI_MAJOR, &answer);
    if (status || !answer)
        return bp_fail(status ? status : BP_INVALID_ARGUMENT,
                       "%s refused the query for ABI major %u", path, BP_ABI_MAJOR);
    status = BP_ADOPT(answer, native, "the module's answer");
    if (status)
        return status;
    int level = bp_isa_level(native->isa.data ? native->isa.data : "", native->isa.length);
    if (level < 0)
        return bp_fail(BP_INVALID_ARGUMENT, "%s is built for an unknown instruction set", path);
    if (level > isa)
        return bp_fail(BP_UNAVAILABLE, "%s is built for %s, this device runs %s", path,
                       bp_isa_name(level), bp_isa_name(isa));
    return check_kernels(native, path);
}

static int32_t wrap(bp_device *device, const bp_native_module *native, uint64_t *out) {
    bp_module_object *module = calloc(1, sizeof(*module));
    uint32_t room = native->kernel_count ? native->kernel_count : 1;
    if (module) {
        module->names = calloc(room, sizeof(*module->names));
        module->kernels = calloc(room, sizeof(*module->kernels));
    }
    if (!module || !module->names || !module->kernels) {
        if (module)
            bp_module_free(module);
        return bp_fail(BP_OUT_OF_MEMORY, "no host memory for a module");
    }
    module->isa = native->isa;
    module->kernel_count = native->kernel_count;
    for (uint32_t i = 0; i < native->kernel_count; i++) {
        module->names[i] = native->kernels[i].name;
        module->kernels[i].name = native->kernels[i].name;
        module->kernels[i].entry = native->kernels[i].entry;
    }
    pthread_mutex_lock(&device->lock);
    int32_t status = bp_device_add(device, &module->object, BP_KIND_MODULE);
    if (status)
        bp_module_free(module);
    else
        *out = module->object.handle;
    pthread_mutex_unlock(&device->lock);
    return status;
}

static int32_t load_on(bp_device *device, const bp_module_source *source, uint64_t *out) {
    const bp_text *text = &source->path;
    if (source->kind != BP_MODULE_NATIVE)
        return bp_fail(BP_UNSUPPORTED, "module kind %u; this backend loads native modules only",
                       source->kind);
    if (!text->data || text->length == 0 || text->length > 4096 || text->data[0] != '/' ||
        memchr(text->data, 0, text->length))
        return bp_fail(BP_INVALID_ARGUMENT, "the path %.*s of a module is not absolute",
                       text->data ? (int)(text->length < 200 ? text->length : 200) : 0, text->data);
    char *path = strndup(text->data, text->length);
    if (!path)
        return bp_fail(BP_OUT_OF_MEMORY, "no host memory for a module");
    bp_native_module native;
    int32_t status = ask(path, device->isa, &native);
    if (status == BP_OK)
        status = wrap(device, &native, out);
    free(path);
    return status;
}

static int32_t load(uint64_t handle, const bp_module_source *given, uint64_t *out) {
    bp_module_source source;
    int32_t status = BP_ADOPT(given, &source, "module source");
    if (status == BP_OK && !out)
        status = bp_fail(BP_INVALID_ARGUMENT, "module.load got no place for its result");
    if (status)
        return status;
    bp_device *device = bp_device_enter(handle);
    if (!device)
        return BP_INVALID_ARGUMENT;
    status = bp_device_alive(device);
    if (status == BP_OK)
        status = load_on(device, &source, out);
    bp_device_leave(device);
    return status;
}

static int32_t info(uint64_t handle, uint64_t module_handle, bp_module_info *out) {
    bp_device *device = bp_device_enter(handle);
    if (!device)
        return BP_INVALID_ARGUMENT;
    bp_module_info own = {.head = {1, sizeof(own)}};
    pthread_mutex_lock(&device->lock);
    const bp_module_object *module = bp_object_find(module_handle, BP_KIND_MODULE, device);
    if (module) {
        own.isa = module->isa;
        own.kernels = module->names;
        own.kernel_count = module->kernel_count;
    }
    pthread_mutex_unlock(&device->lock);
    bp_device_leave(device);
    return module ? bp_answer(out, &own, sizeof(own), "module info") : BP_INVALID_ARGUMENT;
}

static bp_kernel_object *named(bp_module_object *module, const bp_text *name) {
    for (uint32_t i = 0; i < module->kernel_count; i++) {
        bp_kernel_object *kernel = &module->kernels[i];
        if (kernel->name.length == name->length &&
            memcmp(kernel->name.data, name->data, name->length) == 0)
            return kernel;
    }
    bp_fail(BP_NOT_FOUND, "the module has no kernel %.*s",
            (int)(name->length < 200 ? name->length : 200), name->data);
    return NULL;
}

static int32_t kernel(uint64_t handle, uint64_t module_handle, const bp_text *name, uint64_t *out) {
    if (!name || !name->data || !out)
        return bp_fail(BP_INVALID_ARGUMENT, "module.kernel got no name or no place for its result");
    bp_device *device = bp_device_enter(handle);
    if (!device)
        return BP_INVALID_ARGUMENT;
    int32_t status = BP_INVALID_ARGUMENT;
    pthread_mutex_lock(&device->lock);
    bp_module_object *module = bp_object_find(module_handle, BP_KIND_MODULE, device);
    if (module) {
        bp_kernel_object *found = named(module, name);
        status = found ? BP_OK : BP_NOT_FOUND;
        if (found && !found->object.handle)
            status = bp_object_publish(&found->object, BP_KIND_KERNEL, device);
        if (status == BP_OK)
            *out = found->object.handle;
    }
    pthread_mutex_unlock(&device->lock);
    bp_device_leave(device);
    return status;
}

static int32_t kernel_info(uint64_t handle, uint64_t kernel_handle, bp_kernel_info *out) {
    bp_device *device = bp_device_enter(handle);
    if (!device)
        return BP_INVALID_ARGUMENT;
    bp_kernel_info own = {.head = {1, sizeof(own)}};
    pthread_mutex_lock(&device->lock);
    const bp_kernel_object *found = bp_object_find(kernel_handle, BP_KIND_KERNEL, device);
    if (found) {
        own.name = found->name;
        own.max_threads_per_block = BP_MAX_THREADS_PER_BLOCK;
    }
    pthread_mutex_unlock(&device->lock);
    bp_device_leave(device);
    return found ? bp_answer(out, &own, sizeof(own), "kernel info") : BP_INVALID_ARGUMENT;
}

static int32_t unload(uint64_t handle, uint64_t module_handle) {
    bp_device *device = bp_device_enter(handle);
    if (!device)
        return BP_INVALID_ARGUMENT;
    int32_t status = BP_INVALID_ARGUMENT;
    pthread_mutex_lock(&device->lock);
    bp_module_object *module = bp_object_find(module_handle, BP_KIND_MODULE, device);
    if (module) {
        for (uint32_t i = 0; i < module->kernel_count; i++)
            if (module->kernels[i].object.handle)
                bp_object_withdraw(&module->kernels[i].object);
        bp_retire(device, &module->object);
        status = BP_OK;
    }
    pthread_mutex_unlock(&device->lock);
    bp_device_leave(device);
    return status;
}

const bp_module bp_module_table = {
    .head = {1, sizeof(bp_module)},
    .load = load,
    .info = info,
    .kernel = kernel,
    .kernel_info = kernel_info,
    .unload = unload,
};
