/*
 * Modules are the machine's: it compiles a source into native entries, which the queue's threads
 * then call as the cpu backend calls its own. Its code goes back when no batch can know it.
 */
#include "../cpu/module.h"
#include "../adopt.h"
#include "../cpu/device.h"
#include "provider.h"

#define MOST_KERNELS 65536u

typedef struct machine_module {
    bp_module_object module;
    uint64_t token;
    int loaded;
} machine_module;

static int32_t check_kernels(const bp_native_module *native) {
    if (native->kernel_count > MOST_KERNELS || (native->kernel_count && !native->kernels))
        return bp_fail(BP_INTERNAL, "the machine says it has %u kernels at %p",
                       native->kernel_count, (const void *)native->kernels);
    for (uint32_t i = 0; i < native->kernel_count; i++) {
        const bp_native_kernel *kernel = &native->kernels[i];
        if (!kernel->entry || !kernel->name.data || !kernel->name.length)
            return bp_fail(BP_INTERNAL, "kernel %u of the machine has no name or no entry", i);
    }
    return BP_OK;
}

static int32_t take_over(const bp_native_module *answer, bp_module_object *module) {
    bp_native_module native;
    int32_t status = BP_ADOPT(answer, &native, "the machine's module");
    if (status == BP_OK)
        status = check_kernels(&native);
    return status ? status : bp_cpu_module_fill(&native, module);
}

static int32_t load(bp_device *device, const bp_module_source *source, bp_module_object *module) {
    machine_module *own = (machine_module *)module;
    const bp_native_module *answer = NULL;
    bp_provider machine;
    bp_provider_settle();
    int32_t status = bp_provider_find(&machine);
    if (status)
        return status;
    status = machine.load(machine.user, device->index, source, &answer, &own->token);
    status = bp_provider_told(&machine, status, "the machine refused the module");
    if (status)
        return status;
    own->loaded = 1;
    return take_over(answer, module);
}

static void release(bp_module_object *module) {
    const machine_module *own = (const machine_module *)module;
    if (own->loaded)
        bp_provider_forget(own->token);
}

const bp_module_driver bp_module_driver_own = {
    .module_bytes = sizeof(machine_module),
    .kernel_bytes = sizeof(bp_cpu_kernel),
    .load = load,
    .release = release,
};
