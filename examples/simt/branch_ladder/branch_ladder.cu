// A warp runs each side of a branch that its lanes disagree about, with the others idle.
// The same work in the same number of ways costs nothing extra if whole warps agree.

__device__ void climb(volatile float *out, unsigned i, unsigned way) {
    float x = i;
    if (way == 0)
        out[i] = x + 1;
    else if (way == 1)
        out[i] = x * 2;
    else if (way == 2)
        out[i] = x - 3;
    else if (way == 3)
        out[i] = x * x;
    else if (way == 4)
        out[i] = x * x + 5;
    else if (way == 5)
        out[i] = 6 - x;
    else if (way == 6)
        out[i] = x * 7;
    else
        out[i] = 8;
}

extern "C" __global__ void by_lane(float *out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    climb(out, i, i % 8);
}

extern "C" __global__ void by_warp(float *out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    climb(out, i, i / 32 % 8);
}
