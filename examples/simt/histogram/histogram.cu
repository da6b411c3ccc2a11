// Counting bytes. Atomics on global memory go out for every warp; a copy of the table in
// shared memory takes them, and only 256 sums a block go out.

extern "C" __global__ void global_table(unsigned *table, const unsigned char *in, unsigned n) {
    unsigned stride = gridDim.x * blockDim.x;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        atomicAdd(&table[in[i]], 1);
}

extern "C" __global__ void shared_table(unsigned *table, const unsigned char *in, unsigned n) {
    __shared__ unsigned own[256];
    own[threadIdx.x] = 0;
    __syncthreads();
    unsigned stride = gridDim.x * blockDim.x;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        atomicAdd(&own[in[i]], 1);
    __syncthreads();
    atomicAdd(&table[threadIdx.x], own[threadIdx.x]);
}
