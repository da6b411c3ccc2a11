/* The operands of a product with int8 activations, and where its parts lie. */
#ifndef BEDPLATE_KERNELS_CPU_PRODUCT_INT8_H
#define BEDPLATE_KERNELS_CPU_PRODUCT_INT8_H

#include "activation.h"
#include "blocks.h"
#include "product.h"

typedef struct bp_int8_product {
    const int8_t *prepared;
    const uint8_t *weights;
    const float *bias;
    const float *residual;
    const uint32_t *count;
    float *out;
    int64_t rows, columns, depth, residual_stride, out_stride;
    uint32_t format, pad;
} bp_int8_product;

#endif
