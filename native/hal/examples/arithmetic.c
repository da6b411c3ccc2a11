/*
 * Four kernels in native code; arithmetic.cl and arithmetic.ptx hold the same with the same
 * arguments. A block has 64 elements, or one row of a product.
 */
#include "bedplate/hal_native.h"

#define THREADS 64

/* Everything that the four kernels take, as the HAL packs it. */
typedef struct vector_arguments {
    float *out;
    const float *x, *y;
    uint32_t n;
} vector_arguments;

typedef struct scale_arguments {
    float *out;
    const float *x;
    float a;
    uint32_t n;
} scale_arguments;

typedef struct product_arguments {
    float *out;
    const float *a, *b;
    uint32_t rows, inner, columns;
} product_arguments;

static uint64_t least(uint64_t one, uint64_t other) {
    return one < other ? one : other;
}

/* out[i] = x[i] + y[i] */
static int32_t add(const bp_native_launch *launch, uint64_t first, uint64_t count) {
    const vector_arguments *given = launch->parameters;
    for (uint64_t i = first * THREADS; i < least((first + count) * THREADS, given->n); i++)
        given->out[i] = given->x[i] + given->y[i];
    return BP_OK;
}

/* out[i] = a * x[i] */
static int32_t scale(const bp_native_launch *launch, uint64_t first, uint64_t count) {
    const scale_arguments *given = launch->parameters;
    for (uint64_t i = first * THREADS; i < least((first + count) * THREADS, given->n); i++)
        given->out[i] = given->a * given->x[i];
    return BP_OK;
}

/* out[block] = sum of x[i] * y[i] over the block's 64 elements */
static int32_t dot_blocks(const bp_native_launch *launch, uint64_t first, uint64_t count) {
    const vector_arguments *given = launch->parameters;
    for (uint64_t block = first; block < first + count; block++) {
        float sum = 0;
        for (uint64_t i = block * THREADS; i < least((block + 1) * THREADS, given->n); i++)
            sum += given->x[i] * given->y[i];
        given->out[block] = sum;
    }
    return BP_OK;
}

/* out [rows, columns] = a [rows, inner] b [inner, columns]; a block is a row */
static int32_t product(const bp_native_launch *launch, uint64_t first, uint64_t count) {
    const product_arguments *given = launch->parameters;
    for (uint64_t row = first; row < first + count; row++) {
        for (uint32_t column = 0; column < given->columns; column++) {
            float sum = 0;
            for (uint32_t k = 0; k < given->inner; k++)
                sum += given->a[row * given->inner + k] *
                       given->b[(uint64_t)k * given->columns + column];
            given->out[row * given->columns + column] = sum;
        }
    }
    return BP_OK;
}

static const bp_native_kernel KERNELS[] = {BP_NATIVE_KERNEL(add), BP_NATIVE_KERNEL(scale),
                                           BP_NATIVE_KERNEL(dot_blocks), BP_NATIVE_KERNEL(product)};

BP_NATIVE_MODULE(KERNELS, "generic");
