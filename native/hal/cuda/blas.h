/*
 * libcublasLt, opened when a device's capabilities are first asked for, and its functions.
 *
 * Contract: after bp_blas_open gave BP_OK every function of blas_abi.h is there. Without the
 * library the answer is BP_UNAVAILABLE with one sentence, the same for the life of the process,
 * which the device's property `absent.ops` says too. The library is never closed. One that the
 * process has loaded already (a framework's) is found by its name and used.
 *
 * Opening takes about 0.1 s the first time (measured, 13.1): the library has 550 MB. A claim of ops
 * needs it, and a claim that might not hold is worse than a slow listing.
 */
#ifndef BEDPLATE_HAL_CUDA_BLAS_H
#define BEDPLATE_HAL_CUDA_BLAS_H

#include "../error.h"
#include "blas_abi.h"

typedef struct bp_blas_library {
#define BP_BLAS_POINTER(field, symbol, parameters) bp_blas_result(*field) parameters;
    BP_BLAS_FUNCTIONS(BP_BLAS_POINTER)
#undef BP_BLAS_POINTER
    /* `cuBLASLt 13.1.0`. */
    char name[40];
} bp_blas_library;

/* Filled by bp_blas_open; read only. */
extern bp_blas_library bp_blas;

int32_t bp_blas_open(void);

/* Whether it is known that the library is not there; opens nothing. */
int bp_blas_missing(void);

/* The library's name and version, or why it is not there. */
const char *bp_blas_words(void);

/* BP_OK, or a status with `<what>: <the library's name of the result>`. */
int32_t bp_blas_check(bp_blas_result result, const char *what);

#endif
