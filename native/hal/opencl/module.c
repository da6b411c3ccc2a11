/* Building OpenCL C and asking about its kernels; see chassis/module.h. */
#include "module.h"

#include "../chassis/host.h"
#include "../chassis/text.h"
#include "device.h"

#include <stdlib.h>
#include <string.h>

#define MOST_KERNELS 65536u

/* The build's log goes to the host whole, and as far as it fits on one line into the sentence. */
static int32_t fail_build(bp_cl_device *device, cl_program program, cl_int code) {
    size_t bytes = 0;
    cl.clGetProgramBuildInfo(program, device->facts->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes);
    char *log = bytes ? calloc(1, bytes + 1) : NULL;
    if (log) {
        cl.clGetProgramBuildInfo(program, device->facts->id, CL_PROGRAM_BUILD_LOG, bytes, log,
                                 NULL);
        bp_host_log(BP_LOG_ERROR, log);
        for (char *at = log; *at; at++)
            if (*at == '\n' || *at == '\r' || *at == '\t')
                *at = ' ';
    }
    int32_t status = bp_fail(BP_INVALID_ARGUMENT, "the OpenCL C does not build, %s (%d): %.400s",
                             bp_cl_name(code), code, log && log[0] ? log : "without a log");
    free(log);
    return status;
}

static int32_t build(bp_cl_device *device, const bp_module_source *source, bp_cl_module *own) {
    const char *text = source->data;
    size_t length = source->bytes;
    cl_int code = CL_SUCCESS;
    if (!text || !length)
        return bp_fail(BP_INVALID_ARGUMENT, "OpenCL C of %llu bytes at %p",
                       (unsigned long long)source->bytes, source->data);
    own->program = cl.clCreateProgramWithSource(device->context, 1, &text, &length, &code);
    if (code)
        return bp_cl_fail(code, "clCreateProgramWithSource");
    code =
        cl.clBuildProgram(own->program, 1, &device->facts->id, "-cl-kernel-arg-info", NULL, NULL);
    return code ? fail_build(device, own->program, code) : BP_OK;
}

/* Fills what is known of a kernel whose id is set. */
static int32_t examine(const bp_cl_device *device, bp_cl_kernel *own) {
    char name[1024] = "";
    cl_device_id id = device->facts->id;
    cl_uint count = 0;
    size_t most = 1;
    uint64_t local = 0;
    cl_int code =
        cl.clGetKernelInfo(own->id, CL_KERNEL_FUNCTION_NAME, sizeof(name) - 1, name, NULL);
    if (!code)
        code = cl.clGetKernelInfo(own->id, CL_KERNEL_NUM_ARGS, sizeof(count), &count, NULL);
    if (!code)
        code = cl.clGetKernelWorkGroupInfo(own->id, id, CL_KERNEL_WORK_GROUP_SIZE, sizeof(most),
                                           &most, NULL);
    if (code)
        return bp_cl_fail(code, "asking about a kernel");
    /* These two only refine; a platform that does not answer leaves zeros. */
    cl.clGetKernelWorkGroupInfo(own->id, id, CL_KERNEL_LOCAL_MEM_SIZE, sizeof(local), &local, NULL);
    cl.clGetKernelWorkGroupInfo(own->id, id, CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                                sizeof(own->wanted_block), own->wanted_block, NULL);
    own->kernel.name = bp_text_keep(name, strlen(name));
    own->kernel.max_threads_per_block = (uint32_t)most;
    own->kernel.static_shared_bytes = local;
    own->argument_count = count;
    own->arguments = calloc(count ? count : 1, sizeof(*own->arguments));
    if (!own->arguments || !own->kernel.name.data)
        return bp_fail(BP_OUT_OF_MEMORY, "no host memory for a kernel");
    for (cl_uint i = 0; i < count; i++)
        if (cl.clGetKernelArgInfo(own->id, i, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof(cl_uint),
                                  &own->arguments[i].qualifier, NULL))
            own->arguments[i].qualifier = 0;
    return BP_OK;
}

static int32_t take_kernels(bp_cl_device *device, bp_cl_module *own) {
    cl_uint count = 0;
    cl_int code = cl.clCreateKernelsInProgram(own->program, 0, NULL, &count);
    if (code || count > MOST_KERNELS)
        return bp_cl_fail(code, "clCreateKernelsInProgram");
    cl_kernel *ids = calloc(count ? count : 1, sizeof(*ids));
    int32_t status = ids ? bp_module_room(&own->module, count)
                         : bp_fail(BP_OUT_OF_MEMORY, "no host memory for %u kernels", count);
    code =
        status || !count ? CL_SUCCESS : cl.clCreateKernelsInProgram(own->program, count, ids, NULL);
    if (code)
        status = bp_cl_fail(code, "clCreateKernelsInProgram");
    for (cl_uint i = 0; status == BP_OK && i < count; i++) {
        bp_cl_kernel *kernel = (bp_cl_kernel *)bp_module_kernel(&own->module, i);
        kernel->id = ids[i];
        pthread_mutex_init(&kernel->lock, NULL);
    }
    for (cl_uint i = 0; status == BP_OK && i < count; i++)
        status = examine(device, (bp_cl_kernel *)bp_module_kernel(&own->module, i));
    free(ids);
    return status;
}

static int32_t load(bp_device *device, const bp_module_source *source, bp_module_object *module) {
    bp_cl_device *own = bp_cl_device_of(device);
    ((bp_cl_module *)module)->facts = own->facts;
    if (source->kind != BP_MODULE_OPENCL_C)
        return bp_fail(BP_UNSUPPORTED, "module kind %u; this backend loads OpenCL C only",
                       source->kind);
    if (!own->facts->compiler)
        return bp_fail(BP_UNSUPPORTED, "the platform of this device has no compiler");
    module->isa = own->facts->name;
    bp_cl_enter(own->facts);
    int32_t status = build(own, source, (bp_cl_module *)module);
    if (status == BP_OK)
        status = take_kernels(own, (bp_cl_module *)module);
    bp_cl_leave(own->facts);
    return status;
}

static void release(bp_module_object *module) {
    bp_cl_module *own = (bp_cl_module *)module;
    bp_cl_enter(own->facts);
    for (uint32_t i = 0; i < module->kernel_count; i++) {
        bp_cl_kernel *kernel = (bp_cl_kernel *)bp_module_kernel(module, i);
        free(kernel->arguments);
        if (kernel->id) {
            cl.clReleaseKernel(kernel->id);
            pthread_mutex_destroy(&kernel->lock);
        }
    }
    if (own->program)
        cl.clReleaseProgram(own->program);
    bp_cl_leave(own->facts);
}

const bp_module_driver bp_module_driver_own = {
    .module_bytes = sizeof(bp_cl_module),
    .kernel_bytes = sizeof(bp_cl_kernel),
    .load = load,
    .release = release,
};
