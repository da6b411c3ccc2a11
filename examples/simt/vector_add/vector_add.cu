// Neighbouring threads should touch neighbouring words: a warp's 32 floats are then four
// sectors of 32 bytes. Moved by one word they are five; 128 bytes apart they are 32.

extern "C" __global__ void add(float *c, const float *a, const float *b, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}

extern "C" __global__ void add_moved(float *c, const float *a, const float *b, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x + 1;
    if (i < n)
        c[i] = a[i] + b[i];
}

extern "C" __global__ void add_strided(float *c, const float *a, const float *b, unsigned n) {
    unsigned lane = threadIdx.x % 32, warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    unsigned i = lane * (n / 32) + warp; // lanes are n / 32 words apart
    if (i < n)
        c[i] = a[i] + b[i];
}
