// The sum of a warp in every lane: through shared memory with five barriers, or through
// registers with five shuffles and no memory at all.

extern "C" __global__ void through_memory(int *out, const int *in) {
    __shared__ int part[32];
    unsigned t = threadIdx.x;
    part[t] = in[t];
    for (unsigned step = 1; step < 32; step *= 2) {
        __syncwarp();
        int other = part[t ^ step];
        __syncwarp();
        part[t] += other;
    }
    __syncwarp();
    out[t] = part[t];
}

extern "C" __global__ void through_registers(int *out, const int *in) {
    int x = in[threadIdx.x];
    for (unsigned step = 1; step < 32; step *= 2)
        x += __shfl_xor_sync(~0u, x, step);
    out[threadIdx.x] = x;
}
