// Kernels for the forms that the first ones lack: calls, locks, votes, carries, tensors.
// Beside each stands what its result must be; tests/simt/test_kernels.py holds them to it.

#include <cassert>
#include <cuda_bf16.h>
#include <cuda_pipeline.h>
#include <mma.h>

// Device functions that stay functions.
__noinline__ __device__ float blend(float a, float b, float t) {
    return a + (b - a) * t;
}

__noinline__ __device__ double mean(const double *values, int count) {
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += values[i];
    return sum / count;
}

extern "C" __global__ void calls(const float *x, float *y, double *means, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    y[i] = blend(x[i], 1.0f, 0.25f) + blend(1.0f, x[i], 0.5f);
    double local[4];
    for (int k = 0; k < 4; k++)
        local[(k + i) & 3] = x[i] * (k + 1);
    means[i] = mean(local, 4);
}

// cells[1] counts every thread once.
extern "C" __global__ void lock(unsigned *cells) {
    while (atomicCAS(&cells[0], 0u, 1u) != 0u) {
    }
    volatile unsigned *count = &cells[1];
    *count = *count + 1;
    __threadfence();
    atomicExch(&cells[0], 0u);
}

extern "C" __global__ void checked(const int *x) {
    assert(x[threadIdx.x] >= 0);
}

// out[i]: sum of the warp's x, lanes with this x, how many of the block are odd.
extern "C" __global__ void votes(const unsigned *x, unsigned *out) {
    unsigned i = threadIdx.x, mine = x[i], sum = mine;
    for (int step = 16; step; step /= 2)
        sum += __shfl_xor_sync(~0u, sum, step);
    out[3 * i] = sum;
    unsigned same = __ballot_sync(~0u, mine == x[i & ~31u]);
    out[3 * i + 1] = __popc(same) + (__brev(mine) >> 31) + __clz(mine | 1);
    out[3 * i + 2] = __syncthreads_count(mine & 1);
}

// 128-bit products and sums.
extern "C" __global__ void wide(const unsigned long long *x, unsigned long long *out) {
    int i = threadIdx.x;
    unsigned __int128 a = x[2 * i], b = x[2 * i + 1];
    unsigned __int128 c = a * b + ((a << 64) | b);
    out[2 * i] = (unsigned long long)c;
    out[2 * i + 1] = (unsigned long long)(c >> 64);
}

// Softmax of rows of blockDim.x.
extern "C" __global__ void softmax(const float *x, float *y) {
    __shared__ float part[256];
    int i = threadIdx.x, at = blockIdx.x * blockDim.x + i;
    float value = x[at];
    part[i] = value;
    __syncthreads();
    for (int half = blockDim.x / 2; half; half /= 2) {
        if (i < half)
            part[i] = fmaxf(part[i], part[i + half]);
        __syncthreads();
    }
    float power = expf(value - part[0]);
    __syncthreads();
    part[i] = power;
    __syncthreads();
    for (int half = blockDim.x / 2; half; half /= 2) {
        if (i < half)
            part[i] += part[i + half];
        __syncthreads();
    }
    y[at] = power / part[0];
}

extern "C" __global__ void histogram(const unsigned char *x, unsigned *out, int n) {
    __shared__ unsigned bins[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        bins[i] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        atomicAdd(&bins[x[i]], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        atomicAdd(&out[i], bins[i]);
}

extern "C" __global__ void halves(const float *x, __nv_bfloat16 *y, double *z) {
    int i = threadIdx.x;
    y[i] = __float2bfloat16(x[i]);
    z[i] = floor(sqrt((double)x[i] * x[i] + 0.25) / 3.0) + __bfloat162float(y[i]);
}

// 16 by 16: c = a * b, b by columns.
extern "C" __global__ void matrix(const __half *a, const __half *b, float *c) {
    using namespace nvcuda::wmma;
    fragment<matrix_a, 16, 16, 16, __half, row_major> left;
    fragment<matrix_b, 16, 16, 16, __half, col_major> right;
    fragment<accumulator, 16, 16, 16, float> sum;
    fill_fragment(sum, 0.0f);
    load_matrix_sync(left, a, 16);
    load_matrix_sync(right, b, 16);
    mma_sync(sum, left, right, sum);
    store_matrix_sync(c, sum, 16, mem_row_major);
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
// 16 by 8: d = a * b with b as 16 rows of 8, by asynchronous copies, ldmatrix and mma.
extern "C" __global__ void tensor(const __half *a, const __half *b, float *d) {
    __shared__ alignas(16) __half left[256], right[128];
    int i = threadIdx.x;
    __pipeline_memcpy_async(&left[8 * i], &a[8 * i], 16);
    if (i < 16)
        __pipeline_memcpy_async(&right[8 * i], &b[8 * i], 16);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    unsigned x[4], y[2];
    unsigned at = (unsigned)__cvta_generic_to_shared(&left[(i & 15) * 16 + (i >> 4) * 8]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(at));
    at = (unsigned)__cvta_generic_to_shared(&right[(i & 15) * 8]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                 : "=r"(y[0]), "=r"(y[1])
                 : "r"(at));
    float s[4] = {0, 0, 0, 0};
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    int row = i / 4, column = i % 4 * 2;
    d[row * 8 + column] = s[0];
    d[row * 8 + column + 1] = s[1];
    d[(row + 8) * 8 + column] = s[2];
    d[(row + 8) * 8 + column + 1] = s[3];
    d[128 + i] = __reduce_add_sync(~0u, i);
}
#endif
