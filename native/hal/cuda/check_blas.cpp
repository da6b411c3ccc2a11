/*
 * Compares blas_abi.h with a real cublasLt.h, where there is one; compiled by `make device` and by
 * nothing else, as check.cpp is (which says what is compared). A mismatch does not compile.
 */
#include <cublasLt.h>

#define _Alignas(bytes) alignas(bytes)
#include "blas_abi.h"
#include "shape.hpp"

#define SAME_FUNCTION(field, symbol, parameters)                                                   \
    static_assert(same_shape<bp_blas_result(*) parameters, decltype(&::symbol)>(), #symbol);
BP_BLAS_FUNCTIONS(SAME_FUNCTION)

#define SAME(ours, theirs) static_assert((long)(ours) == (long)(theirs), #theirs)
SAME(BP_BLAS_SUCCESS, CUBLAS_STATUS_SUCCESS);
SAME(BP_BLAS_ALLOC_FAILED, CUBLAS_STATUS_ALLOC_FAILED);
SAME(BP_BLAS_INVALID_VALUE, CUBLAS_STATUS_INVALID_VALUE);
SAME(BP_BLAS_NOT_SUPPORTED, CUBLAS_STATUS_NOT_SUPPORTED);
SAME(BP_BLAS_R_32F, CUDA_R_32F);
SAME(BP_BLAS_R_16F, CUDA_R_16F);
SAME(BP_BLAS_R_16BF, CUDA_R_16BF);
SAME(BP_BLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F);
SAME(BP_BLAS_OP_T, CUBLAS_OP_T);
SAME(BP_BLAS_DESC_TRANSA, CUBLASLT_MATMUL_DESC_TRANSA);
SAME(BP_BLAS_DESC_EPILOGUE, CUBLASLT_MATMUL_DESC_EPILOGUE);
SAME(BP_BLAS_DESC_BIAS_POINTER, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
SAME(BP_BLAS_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_BIAS);
SAME(BP_BLAS_PREF_MAX_WORKSPACE_BYTES, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME(BP_BLAS_PREF_REDUCTION_SCHEME_MASK, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
SAME(BP_BLAS_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME(BP_BLAS_PREF_MIN_ALIGNMENT_B_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
SAME(BP_BLAS_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
SAME(BP_BLAS_PREF_MIN_ALIGNMENT_D_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
SAME(BP_BLAS_REDUCTION_COMPUTE_TYPE, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);

#define SAME_STRUCT(ours, theirs)                                                                  \
    static_assert(sizeof(ours) == sizeof(theirs) && alignof(ours) == alignof(theirs), #theirs)
#define SAME_FIELD(ours, field, theirs, other)                                                     \
    static_assert(offsetof(ours, field) == offsetof(theirs, other), #theirs "." #other)
SAME_STRUCT(bp_blas_algorithm, cublasLtMatmulAlgo_t);
SAME_STRUCT(bp_blas_found, cublasLtMatmulHeuristicResult_t);
SAME_FIELD(bp_blas_found, algorithm, cublasLtMatmulHeuristicResult_t, algo);
SAME_FIELD(bp_blas_found, workspace_bytes, cublasLtMatmulHeuristicResult_t, workspaceSize);
SAME_FIELD(bp_blas_found, state, cublasLtMatmulHeuristicResult_t, state);
