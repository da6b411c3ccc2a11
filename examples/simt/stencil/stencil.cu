// The mean of seven neighbours. Each thread loads seven words; with a tile in shared memory
// a block loads each word once, and the neighbours are read where it is cheap.

#define REACH 3
#define BLOCK 128

extern "C" __global__ void plain(float *out, const float *in, int n) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    float sum = 0;
    for (int d = -REACH; d <= REACH; d++)
        sum += i + d >= 0 && i + d < n ? in[i + d] : 0;
    out[i] = sum / (2 * REACH + 1);
}

extern "C" __global__ void tiled(float *out, const float *in, int n) {
    __shared__ float tile[BLOCK + 2 * REACH];
    int t = threadIdx.x, i = blockIdx.x * BLOCK + t;
    tile[t + REACH] = in[i];
    if (t < REACH) {
        tile[t] = i >= REACH ? in[i - REACH] : 0;
        tile[t + REACH + BLOCK] = i + BLOCK < n ? in[i + BLOCK] : 0;
    }
    __syncthreads();
    float sum = 0;
    for (int d = 0; d <= 2 * REACH; d++)
        sum += tile[t + d];
    out[i] = sum / (2 * REACH + 1);
}
