/* What the chassis asks of OpenCL devices; see chassis/driver.h. */
#include "device.h"

#include "../chassis/contents.h"

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

const bp_driver bp_driver_own = {
    .device_bytes = sizeof(bp_cl_device),
    .count = bp_cl_count,
    .open = open_device,
    .close = close_device,
    BP_CONTENTS_DRIVER,
    .destroy = bp_contents_free,
};
