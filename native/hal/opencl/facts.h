/*
 * What is known of every device of every platform, without opening one.
 *
 * Found once, at the first question, in the order of the loader: platforms, then their devices. A
 * failure is not kept, so the next question looks again. Facts live as long as the library.
 */
#ifndef BEDPLATE_HAL_OPENCL_FACTS_H
#define BEDPLATE_HAL_OPENCL_FACTS_H

#include "icd.h"

#define BP_CL_PROPERTIES 7

typedef struct bp_cl_facts {
    cl_device_id id;
    bp_text name, driver;
    uint64_t memory_bytes, most_alloc_bytes;
    /* What sub-buffers and buffers are aligned to. */
    uint64_t base_alignment;
    uint64_t local_bytes;
    uint64_t most_items[3];
    int compiler, profiling;
    /* Memory that host and device share with fine grain, unless BEDPLATE_HAL_OPENCL_SVM=0. */
    int shared;
    /* The platform cannot stand two threads at once, though OpenCL promises it. */
    int serial;
    bp_property properties[BP_CL_PROPERTIES];
} bp_cl_facts;

/* Bracket every use of a device's objects: one thread at a time on a serial platform, else nothing.
 * Taken after the device's lock, before a kernel's. */
void bp_cl_enter(const bp_cl_facts *facts);
void bp_cl_leave(const bp_cl_facts *facts);

/* Number of devices; BP_UNAVAILABLE with a sentence without a loader, platform or device. */
int32_t bp_cl_count(uint32_t *count);

/* The facts of a device that exists. */
const bp_cl_facts *bp_cl_facts_of(uint32_t index);

#endif
