/*
 * The table bp.ops.1: the checks that all ops share, before an op of ops/ sees a tensor. See ops.h
 * for what an op may rely on.
 */
#include "plan.h"

#include "../adopt.h"
#include "../chassis/memory.h"
#include "../chassis/retire.h"
#include "../chassis/visit.h"

#include <stdlib.h>

uint32_t bp_dtype_bytes(uint32_t dtype, uint32_t *elements) {
    *elements = 1;
    switch (dtype) {
    case BP_DTYPE_I8:
    case BP_DTYPE_U8:
        return 1;
    case BP_DTYPE_F16:
    case BP_DTYPE_BF16:
        return 2;
    case BP_DTYPE_F32:
    case BP_DTYPE_I32:
    case BP_DTYPE_U32:
        return 4;
    case BP_DTYPE_I64:
    case BP_DTYPE_U64:
        return 8;
    case BP_DTYPE_Q4_0:
        *elements = 32;
        return 18;
    case BP_DTYPE_Q4_1:
        *elements = 32;
        return 20;
    case BP_DTYPE_Q8_0:
        *elements = 32;
        return 34;
    default:
        return 0;
    }
}

void bp_plan_free(bp_plan_object *made) {
    if (made->plan.op && made->plan.op->release)
        made->plan.op->release(&made->plan);
    free(made);
}

/* Dense row-major strides where none are given. */
static int32_t read_strides(const bp_tensor *given, bp_cpu_tensor *own, uint32_t index) {
    int64_t dense = 1;
    for (uint32_t axis = own->rank; axis-- > 0;) {
        own->stride[axis] = given->stride ? given->stride[axis] : dense;
        if (own->stride[axis] < 0)
            return bp_fail(BP_INVALID_ARGUMENT, "tensor %u has the negative stride %lld", index,
                           (long long)own->stride[axis]);
        if (__builtin_mul_overflow(dense, own->shape[axis] ? own->shape[axis] : 1, &dense))
            return bp_fail(BP_INVALID_ARGUMENT, "the shape of tensor %u overflows", index);
    }
    return BP_OK;
}

/* Elements from the first to the end of the last one, then bytes. */
static int32_t measure(bp_cpu_tensor *own, uint32_t index) {
    uint32_t group = 1, group_bytes = bp_dtype_bytes(own->dtype, &group);
    if (!group_bytes)
        return bp_fail(BP_INVALID_ARGUMENT, "tensor %u has the unknown dtype 0x%x", index,
                       own->dtype);
    int64_t last = 0, bytes = 0;
    /* All of them first: one of 0 ends the next loop. */
    for (uint32_t axis = 0; axis < own->rank; axis++)
        if (own->shape[axis] < 0)
            return bp_fail(BP_INVALID_ARGUMENT, "tensor %u has the negative size %lld", index,
                           (long long)own->shape[axis]);
    for (uint32_t axis = 0; axis < own->rank; axis++) {
        int64_t reach = 0;
        if (own->shape[axis] == 0) {
            own->bytes = 0;
            return BP_OK;
        }
        if (__builtin_mul_overflow(own->shape[axis] - 1, own->stride[axis], &reach) ||
            __builtin_add_overflow(last, reach, &last))
            return bp_fail(BP_INVALID_ARGUMENT, "the extent of tensor %u overflows", index);
    }
    if (group > 1) {
        /* Block formats lie in rows of whole blocks, dense inside. */
        int64_t width = own->rank ? own->shape[own->rank - 1] : 0;
        if (!own->rank || width % group || own->stride[own->rank - 1] != 1)
            return bp_fail(BP_INVALID_ARGUMENT,
                           "tensor %u of 32-element blocks has rows of %lld elements", index,
                           (long long)width);
        for (uint32_t axis = 0; axis + 1 < own->rank; axis++)
            if (own->stride[axis] % group)
                return bp_fail(BP_INVALID_ARGUMENT,
                               "tensor %u of 32-element blocks has the stride %lld", index,
                               (long long)own->stride[axis]);
    }
    /* Index `last` lies in group last / group. */
    int64_t groups = 0;
    if (__builtin_add_overflow(last / group, 1, &groups) ||
        __builtin_mul_overflow(groups, (int64_t)group_bytes, &bytes))
        return bp_fail(BP_INVALID_ARGUMENT, "the extent of tensor %u overflows", index);
    own->bytes = (uint64_t)bytes;
    return BP_OK;
}

static int32_t read_tensor(const bp_tensor *given, bp_cpu_tensor *own, uint32_t index) {
    bp_tensor tensor;
    char what[32];
    snprintf(what, sizeof(what), "tensor %u", index);
    int32_t status = BP_ADOPT(given, &tensor, what);
    if (status)
        return status;
    if (tensor.rank > BP_MAX_RANK || (tensor.rank && !tensor.shape))
        return bp_fail(BP_INVALID_ARGUMENT,
                       "tensor %u has rank %u; up to %u are known, with a shape", index,
                       tensor.rank, BP_MAX_RANK);
    own->dtype = tensor.dtype;
    own->rank = tensor.rank;
    for (uint32_t axis = 0; axis < tensor.rank; axis++)
        own->shape[axis] = tensor.shape[axis];
    status = read_strides(&tensor, own, index);
    return status ? status : measure(own, index);
}

static const bp_cpu_op *find_op(uint32_t id) {
    for (uint32_t i = 0; i < bp_cpu_op_count; i++)
        if (bp_cpu_op_table[i]->id == id)
            return bp_cpu_op_table[i];
    return NULL;
}

static int32_t read_tensors(bp_cpu_plan *plan, const bp_tensor *const *tensors, uint32_t count) {
    const bp_cpu_op *op = plan->op;
    if (count != op->tensors || !tensors)
        return bp_fail(BP_INVALID_ARGUMENT, "%s takes %u tensors (absent ones as null), got %u",
                       op->name, op->tensors, count);
    for (uint32_t i = 0; i < count; i++) {
        if (!tensors[i] && !(op->optional >> i & 1u))
            return bp_fail(BP_INVALID_ARGUMENT, "tensor %u of %s is absent", i, op->name);
        int32_t status = tensors[i] ? read_tensor(tensors[i], &plan->tensors[i], i) : BP_OK;
        if (status)
            return status;
    }
    plan->count = count;
    return BP_OK;
}

/* No attributes at all means zeros. */
static int32_t read_attributes(bp_cpu_plan *plan, const void *attributes, uint64_t bytes) {
    const bp_cpu_op *op = plan->op;
    if (!attributes && bytes == 0) {
        plan->attributes.head = (bp_head){1, op->attribute_bytes};
        return BP_OK;
    }
    const bp_head *head = attributes;
    if (!attributes || bytes < sizeof(*head) || head->struct_size != bytes)
        return bp_fail(BP_INVALID_ARGUMENT,
                       "attributes of %s: %llu bytes were given, their head says %u", op->name,
                       (unsigned long long)bytes, attributes && bytes >= 8 ? head->struct_size : 0);
    /* reserved[4] ends every attribute struct of this minor. */
    return bp_adopt(attributes, &plan->attributes, op->attribute_bytes, op->attribute_bytes - 32,
                    op->name);
}

static int32_t make(uint32_t id, const bp_tensor *const *tensors, uint32_t count,
                    const void *attributes, uint64_t attribute_bytes, bp_cpu_plan *plan) {
    plan->op = find_op(id);
    if (!plan->op)
        return bp_fail(BP_UNSUPPORTED, "this backend has no op number %u", id);
    plan->flags = BP_OP_DETERMINISTIC | BP_OP_CAPTURABLE;
    int32_t status = read_tensors(plan, tensors, count);
    if (status == BP_OK)
        status = read_attributes(plan, attributes, attribute_bytes);
    return status ? status : plan->op->plan(plan);
}

static int32_t publish(bp_device *device, bp_plan_object *made, bp_op_plan *out) {
    const char *library = made->plan.library ? made->plan.library : "bedplate portable C";
    bp_op_plan own = {.head = {1, sizeof(own)},
                      .workspace_bytes = made->plan.workspace_bytes,
                      .flags = made->plan.flags,
                      .library = {library, strlen(library)}};
    pthread_mutex_lock(&device->lock);
    int32_t status = bp_device_add(device, &made->object, BP_KIND_PLAN);
    if (status == BP_OK) {
        own.plan = made->object.handle;
        status = bp_answer(out, &own, sizeof(own), "op plan");
        if (status)
            bp_retire(device, &made->object);
    } else {
        bp_plan_free(made);
    }
    pthread_mutex_unlock(&device->lock);
    return status;
}

static int32_t plan(uint64_t handle, uint32_t op, const bp_tensor *const *tensors, uint32_t count,
                    const void *attributes, uint64_t attribute_bytes, bp_op_plan *out) {
    int32_t status = BP_OK;
    bp_device *device = bp_device_enter_alive(handle, &status);
    if (!device)
        return status;
    bp_plan_object *made = calloc(1, sizeof(*made));
    if (!made)
        status = bp_fail(BP_OUT_OF_MEMORY, "no host memory for a plan");
    if (made) {
        made->plan.device = device;
        status = make(op, tensors, count, attributes, attribute_bytes, &made->plan);
        if (status)
            bp_plan_free(made);
        else
            status = publish(device, made, out);
    }
    bp_device_leave(device);
    return status;
}

static int32_t release(uint64_t device, uint64_t plan_handle) {
    return bp_visit_retire(device, plan_handle, BP_KIND_PLAN);
}

static int32_t bind_one(bp_device *device, const bp_cpu_plan *plan, uint32_t i,
                        const bp_range *range, unsigned char **address) {
    const bp_cpu_tensor *tensor = &plan->tensors[i];
    char what[48];
    *address = NULL;
    if (!tensor->dtype) {
        if (range->memory)
            return bp_fail(BP_INVALID_ARGUMENT, "binding %u of %s is absent in its plan", i,
                           plan->op->name);
        return BP_OK;
    }
    snprintf(what, sizeof(what), "binding %u of %s", i, plan->op->name);
    bp_span span;
    int32_t status = bp_memory_resolve(device, range, what, &span);
    if (status)
        return status;
    *address = (unsigned char *)(uintptr_t)bp_span_place(&span);
    if (range->length < tensor->bytes)
        return bp_fail(BP_INVALID_ARGUMENT, "%s has %llu bytes, its tensor reaches over %llu", what,
                       (unsigned long long)range->length, (unsigned long long)tensor->bytes);
    uint32_t group = 1, alignment = bp_dtype_bytes(tensor->dtype, &group);
    alignment = group > 1 ? 2 : alignment;
    alignment = plan->alignment > alignment ? plan->alignment : alignment;
    if ((uintptr_t)*address % alignment)
        return bp_fail(BP_INVALID_ARGUMENT, "%s at offset %llu is not aligned to %u bytes", what,
                       (unsigned long long)range->offset, alignment);
    return BP_OK;
}

/* A written tensor lies apart from every other one, or exactly where the op allows it. */
static int32_t check_overlap(const bp_cpu_plan *plan, unsigned char *const *addresses) {
    for (uint32_t out = 0; out < plan->count; out++) {
        if (!(plan->writes >> out & 1u) || !addresses[out] || !plan->tensors[out].bytes)
            continue;
        for (uint32_t other = 0; other < plan->count; other++) {
            if (other == out || !addresses[other] || !plan->tensors[other].bytes)
                continue;
            const unsigned char *a = addresses[out], *b = addresses[other];
            if (a >= b + plan->tensors[other].bytes || b >= a + plan->tensors[out].bytes)
                continue;
            if (a == b && plan->in_place >> other & 1u)
                continue;
            return bp_fail(BP_INVALID_ARGUMENT, "tensors %u and %u of %s overlap, %u is written",
                           out, other, plan->op->name, out);
        }
    }
    return BP_OK;
}

static int32_t bind_workspace(bp_device *device, const bp_op_command *command,
                              bp_cpu_binding *binding) {
    const bp_cpu_plan *plan = binding->plan;
    bp_span span;
    binding->workspace = NULL;
    if (!plan->workspace_bytes && !command->workspace.memory)
        return BP_OK;
    int32_t status = bp_memory_resolve(device, &command->workspace, "workspace", &span);
    if (status)
        return status;
    if (span.bytes < plan->workspace_bytes)
        return bp_fail(BP_INVALID_ARGUMENT, "%s wants a workspace of %llu bytes, got %llu",
                       plan->op->name, (unsigned long long)plan->workspace_bytes,
                       (unsigned long long)span.bytes);
    binding->workspace = (unsigned char *)(uintptr_t)bp_span_place(&span);
    if (plan->workspace_alignment && (uintptr_t)binding->workspace % plan->workspace_alignment)
        return bp_fail(BP_INVALID_ARGUMENT,
                       "the workspace of %s at offset %llu is not aligned to %u bytes",
                       plan->op->name, (unsigned long long)span.offset, plan->workspace_alignment);
    return BP_OK;
}

int32_t bp_plan_bind(bp_device *device, const bp_op_command *command, bp_op_node *node) {
    const bp_plan_object *object = bp_object_find(command->plan, BP_KIND_PLAN, device);
    if (!object)
        return BP_INVALID_ARGUMENT;
    const bp_cpu_plan *plan = &object->plan;
    bp_cpu_binding *binding = node->bound;
    binding->plan = plan;
    node->name = plan->op->name;
    if (command->binding_count != plan->count || !command->bindings)
        return bp_fail(BP_INVALID_ARGUMENT, "%s takes %u bindings, got %u", plan->op->name,
                       plan->count, command->binding_count);
    for (uint32_t i = 0; i < plan->count; i++) {
        int32_t status = bind_one(device, plan, i, &command->bindings[i], &binding->addresses[i]);
        if (status)
            return status;
    }
    int32_t status = bind_workspace(device, command, binding);
    return status ? status : check_overlap(plan, binding->addresses);
}

const bp_ops bp_ops_table = {
    .head = {1, sizeof(bp_ops)},
    .plan = plan,
    .release = release,
};
