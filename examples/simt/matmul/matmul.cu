// C = A B, square. Without a tile each product loads both factors from global memory; with
// tiles of 16 x 16 each word is loaded once for 16 products.

#define TILE 16

extern "C" __global__ void naive(float *c, const float *a, const float *b, int n) {
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; k++)
        sum += a[row * n + k] * b[k * n + column];
    c[row * n + column] = sum;
}

extern "C" __global__ void tiled(float *c, const float *a, const float *b, int n) {
    __shared__ float as[TILE][TILE], bs[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
    float sum = 0;
    for (int k = 0; k < n; k += TILE) {
        as[y][x] = a[row * n + k + x];
        bs[y][x] = b[(k + y) * n + column];
        __syncthreads();
        for (int j = 0; j < TILE; j++)
            sum += as[y][j] * bs[j][x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}
