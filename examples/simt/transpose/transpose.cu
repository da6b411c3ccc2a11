// Rows become columns. One side of a plain copy is 32 sectors a request; a tile in shared
// memory makes both four, and one word of padding takes the bank conflicts away.

#define TILE 32
#define ROWS 8

extern "C" __global__ void plain(float *out, const float *in, int n) {
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS)
        out[x * n + y + j] = in[(y + j) * n + x];
}

template <int PITCH> __device__ void tiled(float *out, const float *in, int n) {
    __shared__ float tile[TILE][PITCH];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS)
        tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x, y = blockIdx.x * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS)
        out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}

extern "C" __global__ void tile(float *out, const float *in, int n) {
    tiled<TILE>(out, in, n);
}

extern "C" __global__ void padded(float *out, const float *in, int n) {
    tiled<TILE + 1>(out, in, n);
}
