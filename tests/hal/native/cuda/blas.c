/*
 * A stand-in for libcublasLt.so.13 beside the fake driver: the functions of
 * native/hal/cuda/blas_abi.h, true to their signatures, to the columns-first convention, and to
 * what must be refused (a choice that was not made here, a workspace that is too small, addresses
 * off 16 bytes). A product is plain loops in a stream of the fake driver. It knows nothing of
 * speed.
 *
 * An algorithm wants a workspace of 4096 bytes when K is 48 or more, and spoils it.
 */
#include "blas_abi.h"

#include <stdlib.h>
#include <string.h>

#define BLAS_API  __attribute__((visibility("default")))
#define ALGORITHM 0x626c6173u

typedef bp_cu_result (*fake_call)(bp_cu_context context, const unsigned char *parameters);
bp_cu_result fakeStreamCall(bp_cu_stream stream, fake_call call, const void *parameters,
                            size_t bytes);
void *fakeBytes(bp_cu_context context, uint64_t address, uint64_t bytes);

struct bp_blas_handle_s {
    int alive;
};

struct bp_blas_layout_s {
    int type;
    uint64_t rows, columns;
    int64_t leading;
};

struct bp_blas_description_s {
    int32_t transposed;
    uint32_t epilogue;
    uint64_t bias;
};

struct bp_blas_preference_s {
    uint64_t most_workspace;
    uint32_t alignment[4];
};

typedef struct product {
    struct bp_blas_layout_s a, b, c, d;
    struct bp_blas_description_s description;
    float alpha, beta;
    uint64_t a_at, b_at, c_at, d_at, workspace, workspace_bytes;
} product;

BLAS_API size_t cublasLtGetVersion(void) {
    return 130100;
}

BLAS_API const char *cublasLtGetStatusName(bp_blas_result result) {
    return result == BP_BLAS_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED" : "CUBLAS_STATUS_OTHER";
}

BLAS_API bp_blas_result cublasLtCreate(bp_blas_handle *handle) {
    *handle = calloc(1, sizeof(**handle));
    return *handle ? BP_BLAS_SUCCESS : BP_BLAS_ALLOC_FAILED;
}

BLAS_API bp_blas_result cublasLtDestroy(bp_blas_handle handle) {
    free(handle);
    return BP_BLAS_SUCCESS;
}

BLAS_API bp_blas_result cublasLtMatrixLayoutCreate(bp_blas_layout *layout, int type, uint64_t rows,
                                                   uint64_t columns, int64_t leading) {
    *layout = malloc(sizeof(**layout));
    if (!*layout)
        return BP_BLAS_ALLOC_FAILED;
    **layout = (struct bp_blas_layout_s){type, rows, columns, leading};
    return BP_BLAS_SUCCESS;
}

BLAS_API bp_blas_result cublasLtMatrixLayoutDestroy(bp_blas_layout layout) {
    free(layout);
    return BP_BLAS_SUCCESS;
}

BLAS_API bp_blas_result cublasLtMatmulDescCreate(bp_blas_description *description, int compute,
                                                 int scale) {
    if (compute != BP_BLAS_COMPUTE_32F || scale != BP_BLAS_R_32F)
        return BP_BLAS_NOT_SUPPORTED;
    *description = calloc(1, sizeof(**description));
    return *description ? BP_BLAS_SUCCESS : BP_BLAS_ALLOC_FAILED;
}

BLAS_API bp_blas_result cublasLtMatmulDescDestroy(bp_blas_description description) {
    free(description);
    return BP_BLAS_SUCCESS;
}

static bp_blas_result keep(void *place, size_t room, const void *value, size_t bytes) {
    if (bytes != room)
        return BP_BLAS_INVALID_VALUE;
    memcpy(place, value, bytes);
    return BP_BLAS_SUCCESS;
}

BLAS_API bp_blas_result cublasLtMatmulDescSetAttribute(bp_blas_description description,
                                                       int attribute, const void *value,
                                                       size_t bytes) {
    if (attribute == BP_BLAS_DESC_TRANSA)
        return keep(&description->transposed, 4, value, bytes);
    if (attribute == BP_BLAS_DESC_EPILOGUE)
        return keep(&description->epilogue, 4, value, bytes);
    if (attribute == BP_BLAS_DESC_BIAS_POINTER)
        return keep(&description->bias, 8, value, bytes);
    return BP_BLAS_INVALID_VALUE;
}

BLAS_API bp_blas_result cublasLtMatmulPreferenceCreate(bp_blas_preference *preference) {
    *preference = calloc(1, sizeof(**preference));
    return *preference ? BP_BLAS_SUCCESS : BP_BLAS_ALLOC_FAILED;
}

BLAS_API bp_blas_result cublasLtMatmulPreferenceDestroy(bp_blas_preference preference) {
    free(preference);
    return BP_BLAS_SUCCESS;
}

BLAS_API bp_blas_result cublasLtMatmulPreferenceSetAttribute(bp_blas_preference preference,
                                                             int attribute, const void *value,
                                                             size_t bytes) {
    uint32_t schemes;
    if (attribute == BP_BLAS_PREF_MAX_WORKSPACE_BYTES)
        return keep(&preference->most_workspace, 8, value, bytes);
    if (attribute == BP_BLAS_PREF_REDUCTION_SCHEME_MASK)
        return keep(&schemes, 4, value, bytes);
    if (attribute >= BP_BLAS_PREF_MIN_ALIGNMENT_A_BYTES &&
        attribute <= BP_BLAS_PREF_MIN_ALIGNMENT_D_BYTES)
        return keep(&preference->alignment[attribute - BP_BLAS_PREF_MIN_ALIGNMENT_A_BYTES], 4,
                    value, bytes);
    return BP_BLAS_INVALID_VALUE;
}

static uint64_t workspace_of(uint64_t depth) {
    return depth >= 48 ? 4096 : 0;
}

BLAS_API bp_blas_result cublasLtMatmulAlgoGetHeuristic(bp_blas_handle handle,
                                                       bp_blas_description description,
                                                       bp_blas_layout a, bp_blas_layout b,
                                                       bp_blas_layout c, bp_blas_layout d,
                                                       bp_blas_preference preference, int wanted,
                                                       bp_blas_found *found, int *count) {
    *count = 0;
    if (!handle || wanted < 1)
        return BP_BLAS_INVALID_VALUE;
    uint64_t rows = description->transposed ? a->columns : a->rows;
    uint64_t depth = description->transposed ? a->rows : a->columns;
    if (rows != d->rows || depth != b->rows || b->columns != d->columns || c->rows != d->rows ||
        c->columns != d->columns || !rows || !depth || !b->columns ||
        (uint64_t)a->leading < a->rows || (uint64_t)b->leading < b->rows ||
        (uint64_t)d->leading < d->rows)
        return BP_BLAS_INVALID_VALUE;
    if (a->type != b->type || c->type != d->type ||
        (d->type != BP_BLAS_R_32F && d->type != a->type) ||
        workspace_of(depth) > preference->most_workspace || preference->alignment[0] != 16)
        return BP_BLAS_NOT_SUPPORTED;
    found->algorithm.data[0] = ALGORITHM;
    found->workspace_bytes = workspace_of(depth);
    found->state = BP_BLAS_SUCCESS;
    *count = 1;
    return BP_BLAS_SUCCESS;
}

static size_t size_of(int type) {
    return type == BP_BLAS_R_32F ? 4 : 2;
}

static float read(int type, const unsigned char *at) {
    float value;
    uint32_t bits = 0;
    _Float16 half;
    if (type == BP_BLAS_R_16F) {
        memcpy(&half, at, 2);
        return (float)half;
    }
    memcpy((unsigned char *)&bits + (type == BP_BLAS_R_32F ? 0 : 2), at, size_of(type));
    memcpy(&value, &bits, 4);
    return value;
}

static void write(int type, unsigned char *at, float value) {
    uint32_t bits;
    _Float16 half = (_Float16)value;
    memcpy(&bits, &value, 4);
    if (type == BP_BLAS_R_32F) {
        memcpy(at, &value, 4);
    } else if (type == BP_BLAS_R_16F) {
        memcpy(at, &half, 2);
    } else {
        bits = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
        memcpy(at, &bits, 2);
    }
}

static unsigned char *bytes_of(bp_cu_context context, uint64_t at,
                               const struct bp_blas_layout_s *layout) {
    uint64_t elements = (layout->columns - 1) * (uint64_t)layout->leading + layout->rows;
    return fakeBytes(context, at, elements * size_of(layout->type));
}

static float element(const struct bp_blas_layout_s *layout, const unsigned char *bytes,
                     uint64_t row, uint64_t column) {
    return read(layout->type,
                bytes + (column * (uint64_t)layout->leading + row) * size_of(layout->type));
}

static bp_cu_result run(bp_cu_context context, const unsigned char *parameters) {
    product p;
    memcpy(&p, parameters, sizeof(p));
    const unsigned char *a = bytes_of(context, p.a_at, &p.a), *b = bytes_of(context, p.b_at, &p.b);
    const unsigned char *c = p.beta != 0 ? bytes_of(context, p.c_at, &p.c) : a;
    unsigned char *d = bytes_of(context, p.d_at, &p.d);
    const unsigned char *bias = (const unsigned char *)"";
    if (p.description.epilogue == BP_BLAS_EPILOGUE_BIAS)
        bias = fakeBytes(context, p.description.bias, p.d.rows * 4);
    void *workspace = p.workspace_bytes ? fakeBytes(context, p.workspace, p.workspace_bytes) : &p;
    if (!a || !b || !c || !d || !bias || !workspace)
        return BP_CU_ILLEGAL_ADDRESS;
    if (p.workspace_bytes)
        memset(workspace, 0x5a, p.workspace_bytes);
    for (uint64_t column = 0; column < p.d.columns; column++)
        for (uint64_t row = 0; row < p.d.rows; row++) {
            float sum = 0;
            for (uint64_t k = 0; k < p.b.rows; k++)
                sum += element(&p.a, a, p.description.transposed ? k : row,
                               p.description.transposed ? row : k) *
                       element(&p.b, b, k, column);
            sum *= p.alpha;
            if (p.beta != 0)
                sum += p.beta * element(&p.c, c, row, column);
            if (p.description.epilogue == BP_BLAS_EPILOGUE_BIAS)
                sum += read(BP_BLAS_R_32F, bias + 4 * row);
            write(p.d.type, d + (column * (uint64_t)p.d.leading + row) * size_of(p.d.type), sum);
        }
    return BP_CU_SUCCESS;
}

BLAS_API bp_blas_result cublasLtMatmul(bp_blas_handle handle, bp_blas_description description,
                                       const void *alpha, const void *a, bp_blas_layout a_layout,
                                       const void *b, bp_blas_layout b_layout, const void *beta,
                                       const void *c, bp_blas_layout c_layout, void *d,
                                       bp_blas_layout d_layout, const bp_blas_algorithm *algorithm,
                                       void *workspace, size_t workspace_bytes,
                                       bp_cu_stream stream) {
    product p = {.a = *a_layout,
                 .b = *b_layout,
                 .c = *c_layout,
                 .d = *d_layout,
                 .description = *description,
                 .alpha = *(const float *)alpha,
                 .beta = *(const float *)beta,
                 .a_at = (uintptr_t)a,
                 .b_at = (uintptr_t)b,
                 .c_at = (uintptr_t)c,
                 .d_at = (uintptr_t)d,
                 .workspace = (uintptr_t)workspace,
                 .workspace_bytes = workspace_of(b_layout->rows)};
    uint64_t addresses = p.a_at | p.b_at | p.d_at | description->bias;
    if (p.beta != 0)
        addresses |= p.c_at;
    if (!handle || !algorithm || algorithm->data[0] != ALGORITHM || addresses % 16 ||
        workspace_bytes < p.workspace_bytes || p.workspace % 256 ||
        (p.workspace_bytes && !workspace))
        return BP_BLAS_INVALID_VALUE;
    return fakeStreamCall(stream, run, &p, sizeof(p)) ? 13 : BP_BLAS_SUCCESS;
}
