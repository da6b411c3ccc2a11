// D = A B for one tile of 16 x 8 x 16: 2048 products by one instruction of a warp, each
// lane with its part of the matrices, or by 64 multiply-adds of each lane.

#include <cuda_fp16.h>

extern "C" __global__ void tensor(float *d, const __half *a, const __half *b) {
    unsigned lane = threadIdx.x, row = lane / 4, pair = lane % 4 * 2;
    unsigned a0 = *(const unsigned *)&a[row * 16 + pair];
    unsigned a1 = *(const unsigned *)&a[(row + 8) * 16 + pair];
    unsigned a2 = *(const unsigned *)&a[row * 16 + pair + 8];
    unsigned a3 = *(const unsigned *)&a[(row + 8) * 16 + pair + 8];
    unsigned b0 = *(const unsigned *)&b[row * 16 + pair]; // b is stored by columns
    unsigned b1 = *(const unsigned *)&b[row * 16 + pair + 8];
    float d0, d1, d2, d3;
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%10,%10,%10,%10};"
        : "=f"(d0), "=f"(d1), "=f"(d2), "=f"(d3)
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "f"(0.0f));
    d[row * 8 + pair] = d0;
    d[row * 8 + pair + 1] = d1;
    d[(row + 8) * 8 + pair] = d2;
    d[(row + 8) * 8 + pair + 1] = d3;
}

extern "C" __global__ void scalar(float *d, const __half *a, const __half *b) {
    for (unsigned at = threadIdx.x; at < 128; at += 32) {
        float sum = 0;
        for (unsigned k = 0; k < 16; k++)
            sum += __half2float(a[at / 8 * 16 + k]) * __half2float(b[at % 8 * 16 + k]);
        d[at] = sum;
    }
}
