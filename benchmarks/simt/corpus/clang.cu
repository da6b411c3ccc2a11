// Kernels for clang's NVPTX, without CUDA's headers: what a kernel needs of them is these lines.
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define K          extern "C" __global__ void
#define TX         __nvvm_read_ptx_sreg_tid_x()
#define BX         __nvvm_read_ptx_sreg_ctaid_x()
#define NX         __nvvm_read_ptx_sreg_ntid_x()
#define GX         __nvvm_read_ptx_sreg_nctaid_x()

K vecadd(const float *a, const float *b, float *c, int n) {
    int i = BX * NX + TX;
    if (i < n)
        c[i] = a[i] + b[i];
}

K saxpy(float a, const float *__restrict__ x, float *y, int n) {
    for (int i = BX * NX + TX; i < n; i += GX * NX)
        y[i] = a * x[i] + y[i];
}

__device__ __attribute__((noinline)) int weigh(const int *cells, int at, int n) {
    int sum = 0;
    for (int i = 0; i < n; ++i)
        sum += cells[(at + i) & 127] * (i + 1);
    return sum;
}

K ring(const int *x, int *y, int n) {
    __shared__ int cells[128];
    cells[TX] = x[BX * 128 + TX];
    __syncthreads();
    y[BX * 128 + TX] = weigh(cells, TX, n);
}

K reduce(const float *x, float *total, int n) {
    __shared__ float cells[256];
    float sum = 0;
    for (int i = BX * NX + TX; i < n; i += GX * NX)
        sum += x[i];
    cells[TX] = sum;
    __syncthreads();
    for (int d = NX / 2; d; d >>= 1) {
        if (TX < d)
            cells[TX] += cells[TX + d];
        __syncthreads();
    }
    if (!TX)
        __nvvm_atom_add_gen_f(total, cells[0]);
}

K matmul(const float *a, const float *b, float *c, int n) {
    __shared__ float left[16][16], right[16][16];
    int x = TX, y = __nvvm_read_ptx_sreg_tid_y();
    int row = __nvvm_read_ptx_sreg_ctaid_y() * 16 + y, column = BX * 16 + x;
    float sum = 0;
    for (int k = 0; k < n; k += 16) {
        left[y][x] = a[row * n + k + x];
        right[y][x] = b[(k + y) * n + column];
        __syncthreads();
        for (int j = 0; j < 16; ++j)
            sum += left[y][j] * right[j][x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

K collatz(const unsigned long long *x, unsigned *steps, int n) {
    int i = BX * NX + TX;
    if (i >= n)
        return;
    unsigned long long v = x[i];
    unsigned count = 0;
    while (v != 1)
        v = v & 1 ? 3 * v + 1 : v / 2, ++count;
    steps[i] = count;
}

K norms(const double *x, double *y, int n) {
    int i = BX * NX + TX;
    if (i < n)
        y[i] = __builtin_sqrt(x[3 * i] * x[3 * i] + x[3 * i + 1] * x[3 * i + 1] +
                              x[3 * i + 2] * x[3 * i + 2]) /
               (i + 1);
}

struct Pixel {
    unsigned char r, g, b, a;
};

K grey(const Pixel *x, unsigned char *y, int n) {
    int i = BX * NX + TX;
    if (i < n)
        y[i] = (77 * x[i].r + 150 * x[i].g + 29 * x[i].b) >> 8;
}

K sort(short *x) {
    short own[9];
    for (int i = 0; i < 9; ++i)
        own[i] = x[(BX * NX + TX) * 9 + i];
    for (int i = 1; i < 9; ++i)
        for (int j = i; j && own[j - 1] > own[j]; --j) {
            short t = own[j];
            own[j] = own[j - 1], own[j - 1] = t;
        }
    for (int i = 0; i < 9; ++i)
        x[(BX * NX + TX) * 9 + i] = own[i];
}

K crc(const unsigned *x, unsigned *y, int n) {
    int i = BX * NX + TX;
    if (i >= n)
        return;
    unsigned v = ~x[i];
    for (int j = 0; j < 32; ++j)
        v = v >> 1 ^ (v & 1 ? 0xedb88320u : 0);
    v = ~v;
    y[i] = __builtin_bitreverse32(v) ^ __builtin_popcount(v) ^ __builtin_rotateleft32(v, 7) ^
           __builtin_bswap32(v);
}
