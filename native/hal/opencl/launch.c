/*
 * Launches: what OpenCL asks of one beyond the chassis, checked when a batch is submitted; and
 * starting it.
 *
 * OpenCL takes arguments one by one and knows their kinds and sizes only inside the kernel object.
 * Address qualifiers were asked at load; the size of a value is learned by setting it once, at the
 * first submit that brings it. Dynamic shared memory is the last argument. A range that does not
 * start at the beginning of a buffer becomes a sub-buffer, which must be aligned.
 */
#include "launch.h"

#include "device.h"
#include "memory.h"
#include "module.h"

static int is_pointer(cl_uint qualifier) {
    return qualifier == CL_KERNEL_ARG_ADDRESS_GLOBAL || qualifier == CL_KERNEL_ARG_ADDRESS_CONSTANT;
}

static int32_t check_range(const bp_cl_device *device, const bp_cl_argument *argument, uint32_t i,
                           const bp_span *span) {
    if (argument->qualifier && !is_pointer(argument->qualifier))
        return bp_fail(BP_INVALID_ARGUMENT, "argument %u is a range; the kernel takes a value", i);
    if (!span->memory)
        return BP_OK;
    const bp_cl_memory *memory = bp_cl_memory_of(span);
    if (span->memory->pinned)
        return bp_fail(BP_UNSUPPORTED,
                       "argument %u is pinned memory; kernels of this device take its own", i);
    if (memory->buffer && span->offset % device->facts->base_alignment)
        return bp_fail(BP_UNSUPPORTED,
                       "argument %u starts at offset %llu; this device takes multiples of %llu", i,
                       (unsigned long long)span->offset,
                       (unsigned long long)device->facts->base_alignment);
    return BP_OK;
}

/* Learns the size of a value by offering it. */
static int32_t check_value(bp_cl_kernel *kernel, uint32_t i, uint32_t bytes, const void *data) {
    bp_cl_argument *argument = &kernel->arguments[i];
    if (argument->qualifier && argument->qualifier != CL_KERNEL_ARG_ADDRESS_PRIVATE)
        return bp_fail(BP_INVALID_ARGUMENT, "argument %u is a value; the kernel takes memory", i);
    pthread_mutex_lock(&kernel->lock);
    cl_int code = CL_SUCCESS;
    if (argument->bytes != bytes)
        code = cl.clSetKernelArg(kernel->id, i, bytes, data);
    if (!code)
        argument->bytes = bytes;
    pthread_mutex_unlock(&kernel->lock);
    if (code)
        return bp_fail(BP_INVALID_ARGUMENT, "argument %u of %u bytes is refused: %s (%d)", i, bytes,
                       bp_cl_name(code), code);
    return BP_OK;
}

static int32_t check_shared(const bp_cl_device *device, const bp_cl_kernel *kernel,
                            uint32_t bytes) {
    if (!bytes)
        return BP_OK;
    cl_uint last = kernel->arguments[kernel->argument_count - 1].qualifier;
    if (last && last != CL_KERNEL_ARG_ADDRESS_LOCAL)
        return bp_fail(BP_INVALID_ARGUMENT,
                       "%u bytes of dynamic shared memory; the kernel's last argument is no "
                       "__local pointer",
                       bytes);
    if (kernel->kernel.static_shared_bytes + bytes > device->facts->local_bytes)
        return bp_fail(BP_INVALID_ARGUMENT,
                       "%u bytes of dynamic shared memory beside %llu of the kernel's own; this "
                       "device has %llu",
                       bytes, (unsigned long long)kernel->kernel.static_shared_bytes,
                       (unsigned long long)device->facts->local_bytes);
    return BP_OK;
}

static int32_t check_block(const bp_cl_device *device, const bp_cl_kernel *kernel,
                           const uint32_t *block) {
    const size_t *wanted = kernel->wanted_block;
    for (int axis = 0; axis < 3; axis++) {
        if (block[axis] > device->facts->most_items[axis])
            return bp_fail(BP_INVALID_ARGUMENT,
                           "a block of %u threads along axis %d; this device takes %llu",
                           block[axis], axis, (unsigned long long)device->facts->most_items[axis]);
        if (wanted[0] && block[axis] != wanted[axis])
            return bp_fail(BP_INVALID_ARGUMENT,
                           "a block of %u x %u x %u; the kernel was built for %zu x %zu x %zu",
                           block[0], block[1], block[2], wanted[0], wanted[1], wanted[2]);
    }
    return BP_OK;
}

static int32_t check(bp_device *owner, const bp_launch_node *node) {
    const bp_cl_device *device = bp_cl_device_of(owner);
    bp_cl_kernel *kernel = (bp_cl_kernel *)node->kernel;
    uint32_t given = node->piece_count + (node->shared_bytes ? 1 : 0);
    if (given != kernel->argument_count)
        return bp_fail(BP_INVALID_ARGUMENT,
                       "%u arguments%s; the kernel takes %u, dynamic shared memory included",
                       node->piece_count,
                       node->shared_bytes ? " and shared memory" : " without shared memory",
                       kernel->argument_count);
    int32_t status = check_block(device, kernel, node->block);
    if (status == BP_OK)
        status = check_shared(device, kernel, node->shared_bytes);
    bp_cl_enter(device->facts);
    for (uint32_t i = 0; status == BP_OK && i < node->piece_count; i++) {
        const bp_piece *piece = &node->pieces[i];
        status = piece->kind == BP_ARGUMENT_RANGE
                     ? check_range(device, &kernel->arguments[i], i, &piece->span)
                     : check_value(kernel, i, piece->bytes, node->parameters + piece->at);
    }
    bp_cl_leave(device->facts);
    return status;
}

const bp_batch_driver bp_batch_driver_own = {.pieces = 1, .launch = check};

static cl_int set_range(cl_kernel kernel, uint32_t i, const bp_span *span, bp_cl_keep keep,
                        void *context, const char **what) {
    const bp_cl_memory *memory = span->memory ? bp_cl_memory_of(span) : NULL;
    *what = "clSetKernelArg";
    /* Nothing may be reached through an empty range. */
    if (!memory || (memory->buffer && span->bytes == 0))
        return cl.clSetKernelArg(kernel, i, sizeof(cl_mem), NULL);
    if (!memory->buffer) {
        *what = "clSetKernelArgSVMPointer";
        return cl.clSetKernelArgSVMPointer(kernel, i, bp_cl_bytes(span));
    }
    if (span->offset == 0)
        return cl.clSetKernelArg(kernel, i, sizeof(cl_mem), &memory->buffer);
    cl_region region = {span->offset, span->bytes};
    cl_int code = CL_SUCCESS;
    *what = "clCreateSubBuffer";
    cl_mem part = cl.clCreateSubBuffer(memory->buffer, CL_MEM_READ_WRITE,
                                       CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    if (code)
        return code;
    if (!keep(context, part)) {
        cl.clReleaseMemObject(part);
        return -6;
    }
    *what = "clSetKernelArg";
    return cl.clSetKernelArg(kernel, i, sizeof(cl_mem), &part);
}

static cl_int set_all(cl_kernel kernel, const bp_launch_node *node, bp_cl_keep keep, void *context,
                      const char **what) {
    for (uint32_t i = 0; i < node->piece_count; i++) {
        const bp_piece *piece = &node->pieces[i];
        *what = "clSetKernelArg";
        cl_int code =
            piece->kind == BP_ARGUMENT_RANGE
                ? set_range(kernel, i, &piece->span, keep, context, what)
                : cl.clSetKernelArg(kernel, i, piece->bytes, node->parameters + piece->at);
        if (code)
            return code;
    }
    *what = "clSetKernelArg of shared memory";
    if (node->shared_bytes)
        return cl.clSetKernelArg(kernel, node->piece_count, node->shared_bytes, NULL);
    return CL_SUCCESS;
}

cl_int bp_cl_launch(cl_command_queue queue, const bp_launch_node *node, bp_cl_keep keep,
                    void *context, cl_event *event, const char **what) {
    bp_cl_kernel *kernel = (bp_cl_kernel *)node->kernel;
    size_t global[3], local[3];
    for (int axis = 0; axis < 3; axis++) {
        local[axis] = node->block[axis];
        global[axis] = (size_t)node->grid[axis] * node->block[axis];
    }
    pthread_mutex_lock(&kernel->lock);
    cl_int code = set_all(kernel->id, node, keep, context, what);
    if (!code) {
        *what = "clEnqueueNDRangeKernel";
        code = cl.clEnqueueNDRangeKernel(queue, kernel->id, 3, NULL, global, local, 0, NULL, event);
    }
    pthread_mutex_unlock(&kernel->lock);
    return code;
}
