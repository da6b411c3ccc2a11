/* OpenCL C programs and their kernels. */
#ifndef BEDPLATE_HAL_OPENCL_MODULE_H
#define BEDPLATE_HAL_OPENCL_MODULE_H

#include "../chassis/module.h"
#include "cl.h"

/* What is known of one argument of a kernel. */
typedef struct bp_cl_argument {
    /* CL_KERNEL_ARG_ADDRESS_*; 0 when the compiler does not tell. */
    cl_uint qualifier;
    /* Size of a value that the kernel has taken; 0 when none was tried. */
    uint32_t bytes;
} bp_cl_argument;

typedef struct bp_cl_kernel {
    bp_kernel_object kernel;
    cl_kernel id;
    /* Arguments are state of the kernel: held from the first one to the enqueue. */
    pthread_mutex_t lock;
    uint32_t argument_count;
    bp_cl_argument *arguments;
    /* The block that the source asks for; zeros when it asks for none. */
    size_t wanted_block[3];
} bp_cl_kernel;

typedef struct bp_cl_module {
    bp_module_object module;
    cl_program program;
    const struct bp_cl_facts *facts;
} bp_cl_module;

#endif
