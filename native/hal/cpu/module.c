/*
 * Loading a native module: an absolute path, one symbol, one query, then everything it said is
 * checked. The library stays open for the life of the process, because kernels of it may be known
 * to threads of its own; unload only makes handles stale.
 */
#include "module.h"

#include "../adopt.h"
#include "device.h"
#include "isa.h"

#include <dlfcn.h>
#include <stdlib.h>

#define MOST_KERNELS 65536u

typedef int32_t (*query_function)(uint32_t, const bp_native_module **);

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

static int32_t load(bp_device *device, const bp_module_source *source, bp_module_object *module) {
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
    int32_t status = ask(path, bp_cpu_device_of(device)->isa, &native);
    if (status == BP_OK)
        status = bp_cpu_module_fill(&native, module);
    free(path);
    return status;
}

static void release(bp_module_object *module) {
    (void)module;
}

const bp_module_driver bp_module_driver_own = {
    .module_bytes = sizeof(bp_module_object),
    .kernel_bytes = sizeof(bp_cpu_kernel),
    .load = load,
    .release = release,
};
