// printf: every kind of argument, branches, device functions, strings in memory, other order.
#include <cstdio>

__device__ __constant__ char in_constant[] = "constant";
__device__ char in_memory[] = "memory";

// One line a thread that is a multiple of three; its result goes to n.
extern "C" __global__ void say(int *n, double d) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i % 3 == 0)
        n[i] =
            printf("%d: %5.2f|%-8s|%lld%%|%c|%#06x|%+d|%e|%u\n", i, d * i, i % 2 ? "odd" : "even",
                   1LL << (30 + i % 8), 'a' + i % 26, i * 17, -i, d / (i + 1), 0u - i);
    if (i == 5)
        n[i] = printf("plain %%\n");
    __syncthreads();
    if (threadIdx.x == 33)
        printf("behind the barrier of %d\n", (int)blockIdx.x);
}

__device__ __noinline__ int tell(const char *what, int width, short half, unsigned char byte) {
    return printf("[%*s][%-*.*f][%hd][%hhu]", width, what, 9, 2, 3.14159, half, byte);
}

extern "C" __global__ void strings(int *n) {
    n[0] = tell(in_constant, 12, -3, 250);
    n[1] = tell(in_memory, -12, 7, 3);
    n[2] = printf("%s %.2s %s %p\n", in_memory, in_constant, (const char *)nullptr, (void *)n);
    n[3] = printf("%g %G %a %.3s %5c %ld %zu %lx %o\n", 1e-7, 1e20, 1.0, "abcdef", 'x', -5L,
                  (size_t)7, 0xfedcba9876543210UL, 8);
}

extern "C" __global__ void many(int count) {
    for (int k = 0; k < count; k++)
        printf("%d.%d.%d\n", blockIdx.x, threadIdx.x, k);
}
