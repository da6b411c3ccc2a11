/* An open OpenCL device: a context of its own, so that closing it takes everything along. */
#ifndef BEDPLATE_HAL_OPENCL_DEVICE_H
#define BEDPLATE_HAL_OPENCL_DEVICE_H

#include "../chassis/device.h"
#include "facts.h"

typedef struct bp_cl_device {
    bp_device device;
    const bp_cl_facts *facts;
    cl_context context;
} bp_cl_device;

static inline bp_cl_device *bp_cl_device_of(bp_device *device) {
    return (bp_cl_device *)device;
}

#endif
