/*
 * The ICD loader: its functions by name, and the names of its error codes.
 *
 * Opened when the backend first looks for devices, never before, and never closed: the platforms
 * that it brings may have threads. OCL_ICD_VENDORS and what else it reads is its own affair.
 */
#ifndef BEDPLATE_HAL_OPENCL_ICD_H
#define BEDPLATE_HAL_OPENCL_ICD_H

#include "../error.h"
#include "cl.h"

#define BP_CL_MEMBER(result, name, parameters) result(*name) parameters;
typedef struct bp_cl_calls {
    BP_CL_FUNCTIONS(BP_CL_MEMBER)
    BP_CL_SHARED_FUNCTIONS(BP_CL_MEMBER)
} bp_cl_calls;
#undef BP_CL_MEMBER

/* Filled by bp_cl_load; those of 2.0 may be null. */
extern bp_cl_calls cl;

/* BP_OK, or BP_UNAVAILABLE with a sentence. Thread-safe. */
int32_t bp_cl_load(void);

/* Whether all functions of shared virtual memory were found. */
int bp_cl_has_shared(void);

/* "CL_INVALID_VALUE" and so on; "OpenCL error" for an unknown one. */
const char *bp_cl_name(cl_int code);

/* The status of ours that fits the failure of a call. */
int32_t bp_cl_status(cl_int code);

/* bp_fail with the fitting status: "<what>: <name of code> (<code>)". */
int32_t bp_cl_fail(cl_int code, const char *what);

#endif
