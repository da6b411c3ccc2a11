// Running sums of 256 values. By doubling, every thread works in every round; by a tree
// there is less work and more banks are shared; by warps there are two rounds of shuffles.

extern "C" __global__ void doubling(int *out, const int *in) {
    __shared__ int part[2][256];
    unsigned t = threadIdx.x, from = 0;
    part[0][t] = in[t];
    __syncthreads();
    for (unsigned step = 1; step < 256; step *= 2) {
        int x = part[from][t];
        if (t >= step)
            x += part[from][t - step];
        from ^= 1;
        part[from][t] = x;
        __syncthreads();
    }
    out[t] = part[from][t];
}

extern "C" __global__ void tree(int *out, const int *in) {
    __shared__ int part[256];
    unsigned t = threadIdx.x;
    part[t] = in[t];
    for (unsigned step = 1; step < 256; step *= 2) {
        __syncthreads();
        unsigned i = 2 * step * (t + 1) - 1;
        if (i < 256)
            part[i] += part[i - step];
    }
    for (unsigned step = 64; step > 0; step /= 2) {
        __syncthreads();
        unsigned i = 2 * step * (t + 1) - 1;
        if (i + step < 256)
            part[i + step] += part[i];
    }
    __syncthreads();
    out[t] = part[t];
}

__device__ int of_warp(int x) {
    unsigned lane = threadIdx.x % 32;
    for (unsigned step = 1; step < 32; step *= 2) {
        int below = __shfl_up_sync(~0u, x, step);
        if (lane >= step)
            x += below;
    }
    return x;
}

extern "C" __global__ void by_warps(int *out, const int *in) {
    __shared__ int sums[8];
    unsigned t = threadIdx.x;
    int x = of_warp(in[t]);
    if (t % 32 == 31)
        sums[t / 32] = x;
    __syncthreads();
    int before = 0;
    for (unsigned w = 0; w < t / 32; w++)
        before += sums[w];
    out[t] = x + before;
}
