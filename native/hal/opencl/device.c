/* What the chassis asks of OpenCL devices; see chassis/driver.h. */
#include "device.h"

#include "../chassis/memory.h"
#include "../chassis/module.h"
#include "../chassis/queue.h"

static int32_t open_device(bp_device *device, uint32_t index) {
    bp_cl_device *own = bp_cl_device_of(device);
    cl_int code = CL_SUCCESS;
    own->facts = bp_cl_facts_of(index);
    device->memory_total = own->facts->memory_bytes;
    device->limits = (bp_limits){
        .max_shared_bytes =
            own->facts->local_bytes < UINT32_MAX ? (uint32_t)own->facts->local_bytes : UINT32_MAX,
        .timestamp = own->facts->profiling,
    };
    bp_cl_enter(own->facts);
    own->context = cl.clCreateContext(NULL, 1, &own->facts->id, NULL, NULL, &code);
    bp_cl_leave(own->facts);
    return code ? bp_cl_fail(code, "clCreateContext") : BP_OK;
}

static void close_device(bp_device *device) {
    const bp_cl_device *own = bp_cl_device_of(device);
    bp_cl_enter(own->facts);
    cl.clReleaseContext(own->context);
    bp_cl_leave(own->facts);
}

static void destroy(bp_device *device, bp_object *object) {
    switch (object->kind) {
    case BP_KIND_MEMORY:
        bp_memory_free(device, (bp_memory *)object);
        break;
    case BP_KIND_TIMELINE:
        bp_timeline_free((bp_timeline_object *)object);
        break;
    case BP_KIND_MODULE:
        bp_module_free((bp_module_object *)object);
        break;
    default:
        /* Kernels go with their module, queues join their thread first. */
        break;
    }
}

const bp_driver bp_driver_own = {
    .device_bytes = sizeof(bp_cl_device),
    .count = bp_cl_count,
    .open = open_device,
    .close = close_device,
    .poison = bp_timeline_poison,
    .waited = bp_timeline_waited,
    .oldest = bp_queue_oldest,
    .stop = bp_queue_stop,
    .free_queue = bp_queue_free,
    .destroy = destroy,
};
