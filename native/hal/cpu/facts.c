/* Kernels of native modules, and what they ask of launches; see module.h. */
#include "module.h"

static int32_t check_facts(const bp_native_facts *facts, const bp_native_kernel *kernel) {
    if (facts->max_threads_per_block && facts->max_threads_per_block <= BP_MAX_THREADS_PER_BLOCK)
        return BP_OK;
    return bp_fail(BP_INVALID_ARGUMENT, "the kernel %.*s says it takes %u threads a block",
                   (int)(kernel->name.length < 200 ? kernel->name.length : 200), kernel->name.data,
                   facts->max_threads_per_block);
}

int32_t bp_cpu_module_fill(const bp_native_module *native, bp_module_object *module) {
    int32_t status = bp_module_room(module, native->kernel_count);
    module->isa = native->isa;
    for (uint32_t i = 0; status == BP_OK && i < native->kernel_count; i++) {
        bp_cpu_kernel *own = (bp_cpu_kernel *)bp_module_kernel(module, i);
        own->kernel.name = native->kernels[i].name;
        own->kernel.max_threads_per_block = BP_MAX_THREADS_PER_BLOCK;
        own->entry = native->kernels[i].entry;
        if (!native->facts)
            continue;
        own->facts = &native->facts[i];
        status = check_facts(own->facts, &native->kernels[i]);
        own->kernel.max_threads_per_block = own->facts->max_threads_per_block;
        own->kernel.static_shared_bytes = own->facts->static_shared_bytes;
    }
    return status;
}

int32_t bp_cpu_launch_check(bp_device *device, const bp_launch_node *node) {
    const bp_native_facts *facts = ((const bp_cpu_kernel *)node->kernel)->facts;
    if (!facts)
        return BP_OK;
    if (node->piece_count != facts->argument_count ||
        node->parameters_bytes != facts->parameters_bytes)
        return bp_fail(BP_INVALID_ARGUMENT,
                       "%u arguments of %u bytes together; the kernel takes %u of %llu",
                       node->piece_count, node->parameters_bytes, facts->argument_count,
                       (unsigned long long)facts->parameters_bytes);
    for (int axis = 0; facts->block[0] && axis < 3; axis++)
        if (node->block[axis] != facts->block[axis])
            return bp_fail(BP_INVALID_ARGUMENT,
                           "a block of %u x %u x %u; the kernel was built for %u x %u x %u",
                           node->block[0], node->block[1], node->block[2], facts->block[0],
                           facts->block[1], facts->block[2]);
    uint64_t shared = facts->static_shared_bytes + node->shared_bytes;
    if (facts->static_shared_bytes && shared > device->limits.max_shared_bytes)
        return bp_fail(BP_INVALID_ARGUMENT,
                       "%u bytes of dynamic shared memory beside %llu of the kernel's own; at most "
                       "%u together",
                       node->shared_bytes, (unsigned long long)facts->static_shared_bytes,
                       device->limits.max_shared_bytes);
    return BP_OK;
}
