/* From a node to a call of the driver. */
#include "memory.h"
#include "module.h"
#include "op.h"
#include "queue.h"

/* The device's nanosecond clock into the address that the only parameter gives. */
static const char STAMP_PTX[] = ".version 7.0\n"
                                ".target sm_52\n"
                                ".address_size 64\n"
                                ".visible .entry bedplate_timestamp(.param .u64 out)\n"
                                "{\n"
                                "    .reg .b64 %d<4>;\n"
                                "    ld.param.u64 %d1, [out];\n"
                                "    cvta.to.global.u64 %d2, %d1;\n"
                                "    mov.u64 %d3, %globaltimer;\n"
                                "    st.global.u64 [%d2], %d3;\n"
                                "    ret;\n"
                                "}\n";

static __attribute__((cold)) int32_t refused(bp_cuda_device *device, bp_cu_result result,
                                             const char *what) {
    bp_cuda_notice(device, result);
    return bp_cuda_check(result, what);
}

static int32_t told(bp_cuda_device *device, bp_cu_result result, const char *what) {
    return result == BP_CU_SUCCESS ? BP_OK : refused(device, result, what);
}

static uint64_t address_of(const bp_span *span) {
    return span->memory->address + span->offset;
}

/* `parameters` and `extra` as the driver takes them: one of both is null. */
static inline bp_cu_result start(const bp_launch_node *node, bp_cu_function function,
                                 bp_cu_stream stream, void **parameters, void **extra) {
    if (!node->cluster[0])
        return bp_cu.launch(function, node->grid[0], node->grid[1], node->grid[2], node->block[0],
                            node->block[1], node->block[2], node->shared_bytes, stream, parameters,
                            extra);
    bp_cu_launch_attribute attribute = {
        .id = BP_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
        .value.cluster = {node->cluster[0], node->cluster[1], node->cluster[2]}};
    bp_cu_launch_config config = {.grid = {node->grid[0], node->grid[1], node->grid[2]},
                                  .block = {node->block[0], node->block[1], node->block[2]},
                                  .shared_bytes = node->shared_bytes,
                                  .stream = stream,
                                  .attributes = &attribute,
                                  .attribute_count = 1};
    return bp_cu.launch_ex(&config, function, parameters, extra);
}

/* One by one, for a kernel whose layout is not that of the packed parameters. */
static __attribute__((noinline)) bp_cu_result start_placed(const bp_launch_node *node,
                                                           const bp_cuda_kernel *kernel,
                                                           bp_cu_stream stream) {
    void *parameters[BP_CUDA_MOST_PLACED];
    for (uint32_t i = 0; i < kernel->placed; i++)
        parameters[i] = (void *)(uintptr_t)(node->parameters + kernel->places[i]);
    return start(node, kernel->function, stream, parameters, NULL);
}

static inline bp_cu_result launch_once(const bp_launch_node *node, bp_cu_stream stream) {
    const bp_cuda_kernel *kernel = (const bp_cuda_kernel *)(const void *)node->kernel;
    size_t bytes = node->parameters_bytes;
    if (kernel->placed)
        return start_placed(node, kernel, stream);
    void *extra[] = {BP_CU_LAUNCH_PARAM_BUFFER_POINTER, (void *)(uintptr_t)node->parameters,
                     BP_CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, BP_CU_LAUNCH_PARAM_END};
    return start(node, kernel->function, stream, NULL, bytes ? extra : NULL);
}

/* Another context is current, or none: the driver may have refused for that. */
static __attribute__((cold)) bp_cu_result launch_again(const bp_cuda_device *device,
                                                       const bp_launch_node *node,
                                                       bp_cu_stream stream, bp_cu_result refused) {
    bp_cu_context current = NULL;
    bp_cu_result result = bp_cu.context_current(&current);
    if (result == BP_CU_SUCCESS && current == device->context)
        return refused;
    result = bp_cu.context_set(device->context);
    return result ? result : launch_once(node, stream);
}

/* Whose context is current is not asked before, which would cost each batch a call of the driver:
 * function and stream name theirs, and the driver either takes them or refuses without effect
 * (tests/hal/native/cuda/contract_order.c). */
static inline bp_cu_result launch(const bp_cuda_device *device, const bp_launch_node *node,
                                  bp_cu_stream stream) {
    bp_cu_result result = launch_once(node, stream);
    return result == BP_CU_SUCCESS ? result : launch_again(device, node, stream, result);
}

static bp_cu_result fill(const bp_span_node *node, bp_cu_stream stream) {
    uint64_t to = address_of(&node->to), bytes = node->to.bytes;
    if (bytes == 0)
        return BP_CU_SUCCESS;
    if (node->pattern_bytes == 1)
        return bp_cu.fill_8(to, (unsigned char)node->pattern, bytes, stream);
    if (node->pattern_bytes == 2)
        return bp_cu.fill_16(to, (unsigned short)node->pattern, bytes / 2, stream);
    return bp_cu.fill_32(to, node->pattern, bytes / 4, stream);
}

static bp_cu_result stamp(bp_cuda_device *device, const bp_span_node *node, bp_cu_stream stream) {
    uint64_t to = address_of(&node->to);
    size_t bytes = sizeof(to);
    void *extra[] = {BP_CU_LAUNCH_PARAM_BUFFER_POINTER, &to, BP_CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     BP_CU_LAUNCH_PARAM_END};
    bp_cu_result result = BP_CU_SUCCESS;
    if (!device->stamp_module)
        result = bp_cu.module_load(&device->stamp_module, STAMP_PTX, 0, NULL, NULL);
    if (result == BP_CU_SUCCESS && !device->stamp)
        result = bp_cu.module_function(&device->stamp, device->stamp_module, "bedplate_timestamp");
    if (result)
        return result;
    return bp_cu.launch(device->stamp, 1, 1, 1, 1, 1, 1, 0, stream, NULL, extra);
}

static int32_t run_op(bp_cuda_device *device, const bp_cpu_binding *binding, bp_cu_stream stream) {
    const bp_cuda_op *op = (const bp_cuda_op *)(const void *)binding->plan->op;
    return op->issue(device, stream, binding);
}

int32_t bp_cuda_issue_node(bp_cuda_device *device, bp_cu_stream stream, const bp_node *node) {
    const bp_span_node *span = &node->span;
    if (node->kind == BP_COMMAND_LAUNCH)
        return told(device, launch(device, &node->launch, stream), "the launch was refused");
    bp_cuda_current(device);
    switch (node->kind) {
    case BP_COMMAND_COPY:
        if (span->to.bytes == 0)
            return BP_OK;
        return told(
            device,
            bp_cu.copy(address_of(&span->to), address_of(&span->from), span->to.bytes, stream),
            "the copy was refused");
    case BP_COMMAND_FILL:
        return told(device, fill(span, stream), "the fill was refused");
    case BP_COMMAND_OP:
        return run_op(device, node->op.bound, stream);
    default:
        return told(device, stamp(device, span, stream), "the timestamp was refused");
    }
}

const bp_batch_driver bp_batch_driver_own = {
    .launch = bp_cuda_launch_check, .op_bytes = sizeof(bp_cpu_binding), .op = bp_plan_bind};
