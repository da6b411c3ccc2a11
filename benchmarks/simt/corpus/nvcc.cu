// Fifteen kernels and two device functions, as people write them, for nvcc. What they give is
// in cases.py. Nothing here was written around what the machine could do.
#include <cuda_fp16.h>

__device__ __noinline__ float block_sum(float v, float *cells) {
    for (int d = 16; d; d >>= 1)
        v += __shfl_down_sync(0xffffffffu, v, d);
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    __syncthreads();
    if (!lane)
        cells[warp] = v;
    __syncthreads();
    v = threadIdx.x < (blockDim.x >> 5) ? cells[lane] : 0.f;
    if (!warp)
        for (int d = 16; d; d >>= 1)
            v += __shfl_down_sync(0xffffffffu, v, d);
    if (!threadIdx.x)
        cells[0] = v;
    __syncthreads();
    return cells[0];
}

__device__ __noinline__ unsigned mix(unsigned x) {
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ x >> 16;
}

#define K extern "C" __global__ void

K vecadd(const float *a, const float *b, float *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}

K saxpy(float a, const float *__restrict__ x, float *y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = a * x[i] + y[i];
}

K reduce(const float *x, float *total, int n) {
    __shared__ float cells[32];
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += x[i];
    sum = block_sum(sum, cells);
    if (!threadIdx.x)
        atomicAdd(total, sum);
}

K scan(const int *x, int *y, int n) {
    extern __shared__ int line[];
    int t = threadIdx.x;
    line[t] = t < n ? x[t] : 0;
    __syncthreads();
    for (int d = 1; d < blockDim.x; d <<= 1) {
        int v = t >= d ? line[t - d] : 0;
        __syncthreads();
        line[t] += v;
        __syncthreads();
    }
    if (t < n)
        y[t] = line[t];
}

K histogram(const unsigned char *x, unsigned *bins, int n) {
    __shared__ unsigned own[256];
    own[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256)
        atomicAdd(&own[x[i]], 1u);
    __syncthreads();
    if (own[threadIdx.x])
        atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

K transpose(const float *x, float *y, int w, int h) {
    __shared__ float tile[32][33];
    int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (c < w && r + j < h)
            tile[threadIdx.y + j][threadIdx.x] = x[(r + j) * w + c];
    __syncthreads();
    c = blockIdx.y * 32 + threadIdx.x, r = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (c < h && r + j < w)
            y[(r + j) * h + c] = tile[threadIdx.x][threadIdx.y + j];
}

__constant__ float weights[5] = {0.0625f, 0.25f, 0.375f, 0.25f, 0.0625f};

K stencil(const float *x, float *y, int n) {
    __shared__ float line[128 + 4];
    int i = blockIdx.x * 128 + threadIdx.x;
    line[threadIdx.x + 2] = i < n ? x[i] : 0.f;
    if (threadIdx.x < 2) {
        line[threadIdx.x] = i >= 2 ? x[i - 2] : 0.f;
        line[threadIdx.x + 130] = i + 128 < n ? x[i + 128] : 0.f;
    }
    __syncthreads();
    float sum = 0;
    for (int j = 0; j < 5; ++j)
        sum += weights[j] * line[threadIdx.x + j];
    if (i < n)
        y[i] = sum;
}

K matmul(const float *a, const float *b, float *c, int n) {
    __shared__ float left[16][16], right[16][16];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
    float sum = 0;
    for (int k = 0; k < n; k += 16) {
        left[y][x] = a[row * n + k + x];
        right[y][x] = b[(k + y) * n + column];
        __syncthreads();
#pragma unroll
        for (int j = 0; j < 16; ++j)
            sum += left[y][j] * right[j][x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

#if __CUDA_ARCH__ >= 800
// One warp, 16 by 8 by k, rows of a and columns of b contiguous.
K mma(const __half *a, const __half *b, float *c, int k) {
    __shared__ __align__(16) __half left[16 * 16], right[8 * 16];
    int lane = threadIdx.x;
    float d[4] = {0, 0, 0, 0};
    for (int j = 0; j < k; j += 16) {
        unsigned to = (unsigned)__cvta_generic_to_shared(left + lane * 8);
        asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(to),
                     "l"(a + (lane >> 1) * k + j + (lane & 1) * 8));
        if (lane < 16) {
            to = (unsigned)__cvta_generic_to_shared(right + lane * 8);
            asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(to),
                         "l"(b + (lane >> 1) * k + j + (lane & 1) * 8));
        }
        asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;" ::: "memory");
        __syncwarp();
        unsigned p[4], q[2];
        to = (unsigned)__cvta_generic_to_shared(left + (lane & 15) * 16 + (lane >> 4) * 8);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(p[0]), "=r"(p[1]), "=r"(p[2]), "=r"(p[3])
                     : "r"(to));
        to = (unsigned)__cvta_generic_to_shared(right + (lane & 7) * 16 + (lane >> 3 & 1) * 8);
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
                     : "=r"(q[0]), "=r"(q[1])
                     : "r"(to));
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                     "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "r"(q[0]), "r"(q[1]));
        __syncwarp();
    }
    float *out = c + (lane >> 2) * 8 + (lane & 3) * 2;
    out[0] = d[0], out[1] = d[1], out[64] = d[2], out[65] = d[3];
}
#endif

K softmax(const float *x, float *y, int n) {
    __shared__ float cells[32], most;
    const float *row = x + blockIdx.x * n;
    float top = -INFINITY;
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        top = fmaxf(top, row[i]);
    for (int d = 16; d; d >>= 1)
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, d));
    if (!(threadIdx.x & 31))
        cells[threadIdx.x >> 5] = top;
    __syncthreads();
    if (!threadIdx.x) {
        most = cells[0];
        for (int w = 1; w < blockDim.x / 32; ++w)
            most = fmaxf(most, cells[w]);
    }
    __syncthreads();
    float sum = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        sum += __expf(row[i] - most);
    sum = block_sum(sum, cells);
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        y[blockIdx.x * n + i] = __expf(row[i] - most) / sum;
}

K rmsnorm(const __half *x, const __half *w, __half *y, int n, float eps) {
    __shared__ float cells[32];
    const __half2 *row = (const __half2 *)(x + blockIdx.x * n);
    float sum = 0;
    for (int i = threadIdx.x; i < n / 2; i += blockDim.x) {
        float2 v = __half22float2(row[i]);
        sum += v.x * v.x + v.y * v.y;
    }
    float scale = rsqrtf(block_sum(sum, cells) / n + eps);
    for (int i = threadIdx.x; i < n / 2; i += blockDim.x) {
        float2 v = __half22float2(row[i]), g = __half22float2(((const __half2 *)w)[i]);
        ((__half2 *)(y + blockIdx.x * n))[i] =
            __floats2half2_rn(v.x * scale * g.x, v.y * scale * g.y);
    }
}

K gelu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float v = x[i];
        y[i] = 0.5f * v * (1.f + tanhf(0.7978845608f * (v + 0.044715f * v * v * v)));
    }
}

K rope(float *x, int pairs, int length) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= pairs * length)
        return;
    float angle = (i / pairs) * powf(10000.f, -(float)(i % pairs) / pairs), s, c;
    sincosf(angle, &s, &c);
    float a = x[2 * i], b = x[2 * i + 1];
    x[2 * i] = a * c - b * s;
    x[2 * i + 1] = a * s + b * c;
}

K spmv(const int *starts, const int *columns, const double *values, const double *x, double *y,
       int rows) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = threadIdx.x & 31;
    if (row >= rows)
        return;
    double sum = 0;
    for (int j = starts[row] + lane; j < starts[row + 1]; j += 32)
        sum += values[j] * x[columns[j]];
    for (int d = 16; d; d >>= 1)
        sum += __shfl_xor_sync(0xffffffffu, sum, d);
    if (!lane)
        y[row] = sum;
}

K montecarlo(unsigned long long *inside, int turns) {
    unsigned state = mix(blockIdx.x * blockDim.x + threadIdx.x + 1u);
    unsigned hits = 0;
    for (int i = 0; i < turns; ++i) {
        float x = (mix(state++) >> 8) * 0x1p-24f, y = (mix(state++) >> 8) * 0x1p-24f;
        hits += x * x + y * y < 1.f;
    }
    for (int d = 16; d; d >>= 1)
        hits += __shfl_xor_sync(0xffffffffu, hits, d);
    if (!(threadIdx.x & 31))
        atomicAdd(inside, (unsigned long long)hits);
}
