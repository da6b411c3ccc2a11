/*
 * Modules; see module.h. The driver compiles PTX at load; its log becomes the error text.
 */
#include "module.h"

#include "../chassis/text.h"

#include <stdlib.h>
#include <string.h>

#define MOST_KERNELS 4096u
#define LOG_BYTES    4096
/* What a launch may take without asking. */
#define FREE_SHARED 49152u

/* Compares where the device wants each parameter with where the HAL packs it: values aligned to
 * their size up to 8 (spec, bp_argument). */
static void lay_out(bp_cuda_kernel *kernel) {
    size_t offset = 0, bytes = 0, at = 0, i = 0;
    int apart = 0;
    for (; bp_cu.function_parameter(kernel->function, i, &offset, &bytes) == BP_CU_SUCCESS; i++) {
        size_t alignment = bytes >= 8 ? 8 : bytes >= 4 ? 4 : bytes >= 2 ? 2 : 1;
        at = (at + alignment - 1) & ~(alignment - 1);
        apart |= at != offset;
        if (i < BP_CUDA_MOST_PLACED)
            kernel->places[i] = (uint16_t)at;
        at += bytes;
    }
    kernel->parameter_bytes = (uint32_t)at;
    kernel->placed = apart ? (uint32_t)i : 0;
}

static bp_cu_result measure(bp_cuda_kernel *kernel) {
    static const int WHICH[] = {BP_CU_FUNC_MAX_THREADS_PER_BLOCK, BP_CU_FUNC_NUM_REGS,
                                BP_CU_FUNC_SHARED_SIZE_BYTES};
    int values[3] = {0};
    for (int i = 0; i < 3; i++) {
        bp_cu_result result = bp_cu.function_attribute(&values[i], WHICH[i], kernel->function);
        if (result)
            return result;
    }
    kernel->base.max_threads_per_block = (uint32_t)values[0];
    kernel->base.registers = (uint32_t)values[1];
    kernel->base.static_shared_bytes = (uint64_t)values[2];
    kernel->allowed_shared = FREE_SHARED;
    lay_out(kernel);
    return BP_CU_SUCCESS;
}

static int32_t describe(bp_module_object *module, uint32_t i, bp_cu_function function) {
    bp_cuda_kernel *kernel = (bp_cuda_kernel *)(void *)bp_module_kernel(module, i);
    const char *name = NULL;
    kernel->function = function;
    /* Loading is lazy, and would else happen inside a launch or a recording. */
    bp_cu_result result = bp_cu.function_load(function);
    if (result == BP_CU_SUCCESS)
        result = bp_cu.function_name(&name, function);
    if (result == BP_CU_SUCCESS)
        result = measure(kernel);
    if (result)
        return bp_cuda_check(result, "asking for the facts of a kernel");
    bp_text kept = bp_text_keep(name, strlen(name));
    if (!kept.data)
        return bp_fail(BP_OUT_OF_MEMORY, "no host memory for the name of a kernel");
    kernel->base.name = module->names[i] = kept;
    return BP_OK;
}

static int32_t list(bp_module_object *module, bp_cu_module loaded) {
    unsigned count = 0;
    bp_cu_result result = bp_cu.module_function_count(&count, loaded);
    if (result || count > MOST_KERNELS)
        return result ? bp_cuda_check(result, "asking for the kernels of a module")
                      : bp_fail(BP_INVALID_ARGUMENT, "the module has %u kernels; at most %u", count,
                                MOST_KERNELS);
    int32_t status = bp_module_room(module, count);
    bp_cu_function *functions = status ? NULL : calloc(count ? count : 1, sizeof(*functions));
    if (!status && !functions)
        status = bp_fail(BP_OUT_OF_MEMORY, "no host memory for a module");
    if (status == BP_OK)
        status = bp_cuda_check(bp_cu.module_functions(functions, count, loaded),
                               "asking for the kernels of a module");
    for (uint32_t i = 0; i < count && status == BP_OK; i++)
        status = describe(module, i, functions[i]);
    free(functions);
    return status;
}

/* The driver wants text to end with a zero. */
static char *terminated(const bp_module_source *source) {
    char *image = malloc(source->bytes + 1);
    if (image) {
        memcpy(image, source->data, source->bytes);
        image[source->bytes] = 0;
    }
    return image;
}

static int32_t refused(bp_cu_result result, char *log) {
    char words[200];
    for (char *at = log; *at; at++)
        if (*at == '\n')
            *at = ' ';
    bp_cuda_words(result, words, sizeof(words));
    return bp_fail(bp_cuda_status(result), "the module was refused: %.160s%s%.250s", words,
                   log[0] ? ": " : "", log);
}

static int32_t check_source(const bp_module_source *source) {
    if (source->kind != BP_MODULE_PTX && source->kind != BP_MODULE_CUBIN)
        return bp_fail(BP_UNSUPPORTED, "module kind %u; this backend loads PTX and cubins",
                       source->kind);
    if (!source->data || source->bytes < 4)
        return bp_fail(BP_INVALID_ARGUMENT, "the module has %llu bytes at %p",
                       (unsigned long long)source->bytes, source->data);
    int binary = memcmp(source->data,
                        "\x7f"
                        "ELF",
                        4) == 0 ||
                 memcmp(source->data, "\x50\xed\x55\xba", 4) == 0;
    if (binary != (source->kind == BP_MODULE_CUBIN))
        return bp_fail(BP_INVALID_ARGUMENT, "the bytes of the module are %s",
                       binary ? "a binary, not PTX" : "neither a cubin nor a fatbin");
    return BP_OK;
}

static int32_t load(bp_device *base, const bp_module_source *source, bp_module_object *module) {
    bp_cuda_device *device = bp_cuda_device_of(base);
    bp_cuda_module *own = (bp_cuda_module *)(void *)module;
    char log[LOG_BYTES] = "";
    int options[] = {BP_CU_JIT_ERROR_LOG_BUFFER, BP_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof(log)};
    own->device = device;
    int32_t status = check_source(source);
    char *image = status ? NULL : terminated(source);
    if (!image)
        return status ? status : bp_fail(BP_OUT_OF_MEMORY, "no host memory for a module");
    bp_cuda_current(device);
    bp_cu_result result = bp_cu.module_load(&own->module, image, 2, options, values);
    free(image);
    bp_cuda_notice(device, result);
    bp_cuda_settle(device);
    if (result) {
        own->module = NULL;
        return refused(result, log);
    }
    const char *arch = source->kind == BP_MODULE_PTX ? "ptx" : device->facts->text[0];
    module->isa = (bp_text){arch, strlen(arch)};
    return list(module, own->module);
}

static void release(bp_module_object *module) {
    bp_cuda_module *own = (bp_cuda_module *)(void *)module;
    if (!own->module)
        return;
    bp_cuda_current(own->device);
    bp_cu.module_unload(own->module);
}

static int32_t check_shared(const bp_cuda_device *device, const bp_launch_node *node) {
    bp_cuda_kernel *kernel = (bp_cuda_kernel *)(uintptr_t)node->kernel;
    uint64_t most = (uint64_t)device->facts->max_shared;
    most -= kernel->base.static_shared_bytes < most ? kernel->base.static_shared_bytes : most;
    if (node->shared_bytes > most)
        return bp_fail(BP_INVALID_ARGUMENT,
                       "%u bytes of dynamic shared memory; %llu are left beside the kernel's own",
                       node->shared_bytes, (unsigned long long)most);
    bp_cuda_current(device);
    bp_cu_result result =
        bp_cu.function_set(kernel->function, BP_CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)most);
    if (result == BP_CU_SUCCESS)
        kernel->allowed_shared = (uint32_t)most;
    return bp_cuda_check(result, "more shared memory was refused");
}

static int32_t check_grid(const bp_cuda_facts *facts, const bp_launch_node *node) {
    for (int i = 0; i < 3; i++) {
        if (node->grid[i] > (uint32_t)facts->max_grid[i] ||
            node->block[i] > (uint32_t)facts->max_block[i])
            return bp_fail(
                BP_INVALID_ARGUMENT, "%u blocks of %u threads in dimension %d; at most %d of %d",
                node->grid[i], node->block[i], i, facts->max_grid[i], facts->max_block[i]);
        if (node->cluster[0] && node->grid[i] % node->cluster[i])
            return bp_fail(BP_INVALID_ARGUMENT,
                           "%u blocks in dimension %d are no multiple of a cluster of %u",
                           node->grid[i], i, node->cluster[i]);
    }
    return BP_OK;
}

/* What every device takes, in most launches: then nothing of the grid needs a look. */
#define FREE_GRID  65535u
#define FREE_BLOCK 64u

int32_t bp_cuda_launch_check(bp_device *base, const bp_launch_node *node) {
    const bp_cuda_device *device = bp_cuda_device_of(base);
    const bp_cuda_kernel *kernel = (const bp_cuda_kernel *)(const void *)node->kernel;
    if (node->parameters_bytes != kernel->parameter_bytes)
        return bp_fail(BP_INVALID_ARGUMENT, "%u bytes of arguments; the kernel takes %u",
                       node->parameters_bytes, kernel->parameter_bytes);
    if (kernel->placed > BP_CUDA_MOST_PLACED)
        return bp_fail(BP_UNSUPPORTED,
                       "a kernel with %u parameters in a layout of its own; up to %u",
                       kernel->placed, BP_CUDA_MOST_PLACED);
    if ((node->grid[0] | node->grid[1] | node->grid[2]) > FREE_GRID ||
        (node->block[1] | node->block[2]) > FREE_BLOCK || node->cluster[0]) {
        int32_t status = check_grid(device->facts, node);
        if (status)
            return status;
    }
    return node->shared_bytes > kernel->allowed_shared ? check_shared(device, node) : BP_OK;
}

const bp_module_driver bp_module_driver_own = {
    .module_bytes = sizeof(bp_cuda_module),
    .kernel_bytes = sizeof(bp_cuda_kernel),
    .load = load,
    .release = release,
};
