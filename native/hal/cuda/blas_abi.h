/*
 * Facts of cuBLASLt's ABI: the types, numbers and functions that matmul uses, and no more. Written
 * here so that no toolkit is needed to build; `cuda/check_blas.cpp` compares every line with a real
 * cublasLt.h where one is there (`make device`).
 *
 * Source: cublasLt.h of CUDA 13; libraries of CUDA 12 have the same.
 */
#ifndef BEDPLATE_HAL_CUDA_BLAS_ABI_H
#define BEDPLATE_HAL_CUDA_BLAS_ABI_H

#include "abi.h"

typedef int32_t bp_blas_result;
typedef struct bp_blas_handle_s *bp_blas_handle;
typedef struct bp_blas_layout_s *bp_blas_layout;
typedef struct bp_blas_description_s *bp_blas_description;
typedef struct bp_blas_preference_s *bp_blas_preference;

typedef struct bp_blas_algorithm {
    uint64_t data[8];
} bp_blas_algorithm;

typedef struct bp_blas_found {
    bp_blas_algorithm algorithm;
    size_t workspace_bytes;
    bp_blas_result state;
    float waves;
    int32_t reserved[4];
} bp_blas_found;

enum {
    BP_BLAS_SUCCESS = 0,
    BP_BLAS_ALLOC_FAILED = 3,
    BP_BLAS_INVALID_VALUE = 7,
    BP_BLAS_NOT_SUPPORTED = 15,
};

enum {
    BP_BLAS_R_32F = 0,
    BP_BLAS_R_16F = 2,
    BP_BLAS_R_16BF = 14,
    BP_BLAS_COMPUTE_32F = 68,
    BP_BLAS_OP_T = 1,
    BP_BLAS_DESC_TRANSA = 3,
    BP_BLAS_DESC_EPILOGUE = 7,
    BP_BLAS_DESC_BIAS_POINTER = 8,
    BP_BLAS_EPILOGUE_BIAS = 4,
    BP_BLAS_PREF_MAX_WORKSPACE_BYTES = 1,
    BP_BLAS_PREF_REDUCTION_SCHEME_MASK = 3,
    BP_BLAS_PREF_MIN_ALIGNMENT_A_BYTES = 5,
    BP_BLAS_PREF_MIN_ALIGNMENT_B_BYTES = 6,
    BP_BLAS_PREF_MIN_ALIGNMENT_C_BYTES = 7,
    BP_BLAS_PREF_MIN_ALIGNMENT_D_BYTES = 8,
    BP_BLAS_REDUCTION_COMPUTE_TYPE = 2,
};

/* F(field, symbol, parameters); all of them return bp_blas_result and are needed. */
/* clang-format off */
#define BP_BLAS_FUNCTIONS(F)                                                                       \
    F(create, cublasLtCreate, (bp_blas_handle *handle))                                            \
    F(destroy, cublasLtDestroy, (bp_blas_handle handle))                                           \
    F(layout_create, cublasLtMatrixLayoutCreate, (bp_blas_layout *layout, int type,                \
                                                  uint64_t rows, uint64_t columns,                 \
                                                  int64_t leading))                                \
    F(layout_destroy, cublasLtMatrixLayoutDestroy, (bp_blas_layout layout))                        \
    F(description_create, cublasLtMatmulDescCreate, (bp_blas_description *description,             \
                                                     int compute, int scale))                      \
    F(description_destroy, cublasLtMatmulDescDestroy, (bp_blas_description description))           \
    F(description_set, cublasLtMatmulDescSetAttribute, (bp_blas_description description,           \
                                                        int attribute, const void *value,          \
                                                        size_t bytes))                             \
    F(preference_create, cublasLtMatmulPreferenceCreate, (bp_blas_preference *preference))         \
    F(preference_destroy, cublasLtMatmulPreferenceDestroy, (bp_blas_preference preference))        \
    F(preference_set, cublasLtMatmulPreferenceSetAttribute, (bp_blas_preference preference,        \
                                                             int attribute, const void *value,     \
                                                             size_t bytes))                        \
    F(find, cublasLtMatmulAlgoGetHeuristic, (bp_blas_handle handle,                                \
                                             bp_blas_description description, bp_blas_layout a,    \
                                             bp_blas_layout b, bp_blas_layout c, bp_blas_layout d, \
                                             bp_blas_preference preference, int wanted,            \
                                             bp_blas_found *found, int *count))                    \
    F(matmul, cublasLtMatmul, (bp_blas_handle handle, bp_blas_description description,             \
                               const void *alpha, const void *a, bp_blas_layout a_layout,          \
                               const void *b, bp_blas_layout b_layout, const void *beta,           \
                               const void *c, bp_blas_layout c_layout, void *d,                    \
                               bp_blas_layout d_layout, const bp_blas_algorithm *algorithm,        \
                               void *workspace, size_t workspace_bytes, bp_cu_stream stream))
/* clang-format on */

#endif
