// One sum, five ways. Each block adds 256 values; `out` has a sum for each block, except in
// `atomic`, where all threads add to out[0].

extern "C" __global__ void divergent(float *out, const float *in) {
    __shared__ float part[256];
    unsigned t = threadIdx.x;
    part[t] = in[blockIdx.x * 256 + t];
    __syncthreads();
    for (unsigned step = 1; step < 256; step *= 2) {
        if (t % (2 * step) == 0)
            part[t] += part[t + step]; // every other lane idles
        __syncthreads();
    }
    if (t == 0)
        out[blockIdx.x] = part[0];
}

extern "C" __global__ void conflicting(float *out, const float *in) {
    __shared__ float part[256];
    unsigned t = threadIdx.x;
    part[t] = in[blockIdx.x * 256 + t];
    __syncthreads();
    for (unsigned step = 1; step < 256; step *= 2) {
        unsigned i = 2 * step * t; // whole warps idle, but lanes share banks
        if (i < 256)
            part[i] += part[i + step];
        __syncthreads();
    }
    if (t == 0)
        out[blockIdx.x] = part[0];
}

extern "C" __global__ void sequential(float *out, const float *in) {
    __shared__ float part[256];
    unsigned t = threadIdx.x;
    part[t] = in[blockIdx.x * 256 + t];
    __syncthreads();
    for (unsigned step = 128; step > 0; step /= 2) {
        if (t < step)
            part[t] += part[t + step];
        __syncthreads();
    }
    if (t == 0)
        out[blockIdx.x] = part[0];
}

extern "C" __global__ void shuffled(float *out, const float *in) {
    __shared__ float part[8];
    unsigned t = threadIdx.x;
    float x = in[blockIdx.x * 256 + t];
    for (unsigned step = 16; step > 0; step /= 2)
        x += __shfl_down_sync(~0u, x, step);
    if (t % 32 == 0)
        part[t / 32] = x;
    __syncthreads();
    if (t < 32) {
        x = t < 8 ? part[t] : 0;
        for (unsigned step = 4; step > 0; step /= 2)
            x += __shfl_down_sync(~0u, x, step);
        if (t == 0)
            out[blockIdx.x] = x;
    }
}

extern "C" __global__ void atomic(float *out, const float *in) {
    atomicAdd(out, in[blockIdx.x * 256 + threadIdx.x]);
}
