/*
 * libcuda.so.1, opened when a device is first asked for, and the table of its functions.
 *
 * Contract: after bp_cuda_driver_open gave BP_OK, every function of need 1 in abi.h is there; one
 * of need 0 may be null, and whoever uses it looks first. The library is never closed: it has
 * threads. Without the library, a device or a function the answer is BP_UNAVAILABLE with one
 * sentence, the same for the life of the process.
 */
#ifndef BEDPLATE_HAL_CUDA_DRIVER_H
#define BEDPLATE_HAL_CUDA_DRIVER_H

#include "../error.h"
#include "abi.h"

typedef struct bp_cuda_driver {
#define BP_CUDA_POINTER(need, field, symbol, parameters) bp_cu_result(*field) parameters;
    BP_CUDA_FUNCTIONS(BP_CUDA_POINTER)
#undef BP_CUDA_POINTER
    /* Visible devices, and the driver's CUDA version as 1000 * major + 10 * minor. */
    int devices, version;
    char version_text[48];
} bp_cuda_driver;

/* Filled by bp_cuda_driver_open; read only. */
extern bp_cuda_driver bp_cu;

int32_t bp_cuda_driver_open(void);

/* The HAL status of a driver's result; BP_DEVICE_LOST for the sticky ones. */
int32_t bp_cuda_status(bp_cu_result result);

/* Whether a result says that the context is gone for good. */
int bp_cuda_sticky(bp_cu_result result);

/* BP_OK, or that status with `<what>: <name> (<number>): <the driver's text>`. */
int32_t bp_cuda_check(bp_cu_result result, const char *what);

/* Writes the driver's words for a result: `<name> (<number>): <text>`. */
void bp_cuda_words(bp_cu_result result, char *text, size_t room);

#endif
