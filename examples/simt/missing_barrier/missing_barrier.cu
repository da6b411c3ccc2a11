// Turning 64 values around through shared memory. Without the barrier a thread may read
// what its partner in the other warp has not written yet; the result is right or wrong by
// luck, and the check says which lines, always.

extern "C" __global__ void reversed(int *out, const int *in) {
    __shared__ int part[64];
    unsigned t = threadIdx.x;
    part[t] = in[t];
    __syncthreads();
    out[t] = part[63 - t];
}

extern "C" __global__ void reversed_by_luck(int *out, const int *in) {
    __shared__ int part[64];
    unsigned t = threadIdx.x;
    part[t] = in[t];
    out[t] = part[63 - t];
}
