// Kernels without a bug: no check may say anything about any of them. All are launched with
// two blocks of 64 threads unless `// LAUNCH grid block` says otherwise; `p` and `q` hold
// 128 ints that are written, `e` 128 that nobody wrote.
// clang-format off: a short kernel has one line, so that its comment stands at it
#define K(name) extern "C" __global__ void name(int *p, int *q, int *e)
#define T threadIdx.x
#define B blockIdx.x
#define G (blockIdx.x * blockDim.x + threadIdx.x)
#define ALL 0xffffffffu
#define MAP(name, type, expr) K(map_##name) { type a = ((type *)p)[G], b = ((type *)q)[G]; ((type *)q)[G] = expr; }
MAP(add, int, a + b)
MAP(sub, int, a - b)
MAP(mul, int, a * b)
MAP(shift, unsigned, a << (b & 7))
MAP(min, int, a < b ? a : b)
MAP(fma, float, a * b + a)
MAP(char_add, char, a + b)
MAP(short_xor, short, a ^ b)
#define REDUCE(name, type, op) \
    K(reduce_##name) { \
        __shared__ type s[64]; \
        s[T] = ((type *)p)[G]; \
        for (int n = 32; n > 0; n /= 2) { \
            __syncthreads(); \
            if (T < n) \
                s[T] = s[T] op s[T + n]; \
        } \
        if (T == 0) \
            ((type *)q)[B] = s[0]; \
    }
REDUCE(add, int, +)
REDUCE(xor, unsigned, ^)
REDUCE(and, short, &)
REDUCE(float, float, +)
REDUCE(or, unsigned char, |)
#define WARP_REDUCE(name, call, combine) \
    K(warp_##name) { \
        int v = p[G]; \
        for (int n = 16; n > 0; n /= 2) { \
            int w = call; \
            v = combine; \
        } \
        if (T % 32 == 0) \
            q[G] = v; \
    }
WARP_REDUCE(down, __shfl_down_sync(ALL, v, n), v + w)
WARP_REDUCE(xor, __shfl_xor_sync(ALL, v, n), v ^ w)
WARP_REDUCE(up, __shfl_up_sync(ALL, v, n), v > w ? v : w)
WARP_REDUCE(idx, __shfl_sync(ALL, v, (T + n) % 32), v | w)
WARP_REDUCE(any, __any_sync(ALL, v > n), v + w)
WARP_REDUCE(all, __all_sync(ALL, v > n), v + w)
WARP_REDUCE(ballot, __popc(__ballot_sync(ALL, v & n)), v + w)
#define TILE(name, width, pitch) \
    K(tile_##name) { \
        __shared__ int s[64 / width][pitch]; \
        s[T / width][T % width] = p[G]; \
        __syncthreads(); \
        int t = 63 - T; \
        q[G] = s[t / width][t % width]; \
    }
TILE(8x8, 8, 8)
TILE(8x9, 8, 9)
TILE(16x16, 16, 16)
TILE(16x17, 16, 17)
TILE(32x33, 32, 33)
TILE(4x5, 4, 5)
#define LOOPED(name, times) \
    K(loop_##name) { \
        __shared__ int s[64]; \
        int sum = 0; \
        for (int i = 0; i < times; i++) { \
            s[T] = p[G] + i; \
            __syncthreads(); \
            sum += s[(T + 7 * i) % 64]; \
            __syncthreads(); \
        } \
        q[G] = sum; \
    }
LOOPED(1, 1)
LOOPED(2, 2)
LOOPED(3, 3)
LOOPED(9, 9)
LOOPED(of_data, p[0] + 3)
#define DOUBLE(name, times) \
    K(double_##name) { \
        __shared__ int s[2][64]; \
        s[0][T] = p[G]; \
        for (int i = 0; i < times; i++) { \
            __syncthreads(); \
            s[(i + 1) % 2][T] = s[i % 2][T] + s[i % 2][(T + 63) % 64]; \
        } \
        q[G] = s[times % 2][T]; \
    }
DOUBLE(1, 1)
DOUBLE(4, 4)
DOUBLE(7, 7)
#define GUARDED(name, cond) K(guard_##name) { if (cond) q[G] = p[G] + 1; }
GUARDED(all, G < 128)  // LAUNCH 3 64
GUARDED(odd, G % 2 && G < 128)  // LAUNCH 3 50
GUARDED(one, G == 77)
GUARDED(none, G > 999)
GUARDED(data, G < 128 && p[G] > 3)  // LAUNCH 5 33
#define ATOMIC(name, call) K(atomic_##name) { call; }
ATOMIC(add, atomicAdd(&q[G % 5], p[G]))
ATOMIC(max, atomicMax(&q[0], p[G]))
ATOMIC(min, atomicMin(&q[1], p[G]))
ATOMIC(or, atomicOr(&q[2], p[G]))
ATOMIC(exch, atomicExch(&q[3], p[G]))
ATOMIC(cas, atomicCAS(&q[4], 0, p[G]))
ATOMIC(inc, atomicInc((unsigned *)&q[5], 9))
ATOMIC(float, atomicAdd((float *)&q[G % 3], 1.0f))
#define SHARED_ATOMIC(name, call) \
    K(bins_##name) { \
        __shared__ int s[8]; \
        if (T < 8) \
            s[T] = 0; \
        __syncthreads(); \
        call; \
        __syncthreads(); \
        if (T < 8) \
            atomicAdd(&q[T], s[T]); \
    }
SHARED_ATOMIC(add, atomicAdd(&s[p[G] % 8], 1))
SHARED_ATOMIC(max, atomicMax(&s[p[G] % 8], p[G]))
SHARED_ATOMIC(xor, atomicXor(&s[T % 3], 1))
#define SYNCWARP(name, other) \
    K(lanes_##name) { \
        __shared__ volatile int s[64]; \
        s[T] = p[G]; \
        __syncwarp(); \
        int v = s[other]; \
        __syncwarp(); \
        s[T] = v + 1; \
        q[G] = s[T]; \
    }
SYNCWARP(neighbour, T ^ 1)
SYNCWARP(mirror, T ^ 31)
SYNCWARP(rotate, (T & 32) + (T + 5) % 32)
SYNCWARP(first, T & 32)
#define FILL(name, expr) K(fill_##name) { e[G] = expr; q[G] = e[G]; }
FILL(own, G)
FILL(data, p[G])
FILL(product, p[G] * 3)
#define VECTOR(name, type, n) K(vector_##name) { if (G < 128 / n) ((type *)q)[G] = ((type *)p)[G]; }
VECTOR(int2, int2, 2)
VECTOR(int4, int4, 4)
VECTOR(double, double, 2)
VECTOR(double2, double2, 4)
#define STRIDED(name, step) K(stride_##name) { for (int i = G; i < 128; i += step) q[i] = p[i] + 1; }
STRIDED(grid, gridDim.x * blockDim.x)
STRIDED(small, 64)  // LAUNCH 1 64
STRIDED(warp, 32)  // LAUNCH 1 32
STRIDED(odd, 33)  // LAUNCH 1 33
#define READERS(name, index) K(read_##name) { q[G] = p[index]; }
READERS(one, 5)
READERS(reverse, 127 - G)
READERS(other_block, (G + 64) % 128)
READERS(random, (G * 37 + 11) % 128)
READERS(pairs, G / 2)
K(local_array) { int a[8]; for (int i = 0; i < 8; i++) a[i] = p[(G + i) % 128]; q[G] = a[p[G] & 7]; }
K(local_sorted) {
    int a[4];
    for (int i = 0; i < 4; i++)
        a[i] = p[(G * 7 + i * 3) % 128];
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 3; j++)
            if (a[j] > a[j + 1]) {
                int t = a[j];
                a[j] = a[j + 1];
                a[j + 1] = t;
            }
    q[G] = a[p[G] & 3];
}
K(scan) {
    __shared__ int s[64];
    s[T] = p[G];
    __syncthreads();
    for (int n = 1; n < 64; n *= 2) {
        int v = T >= n ? s[T - n] : 0;
        __syncthreads();
        s[T] += v;
        __syncthreads();
    }
    q[G] = s[T];
}
K(stencil) {
    __shared__ int s[66];
    s[T + 1] = p[G];
    if (T == 0)
        s[0] = G ? p[G - 1] : 0;
    if (T == 63)
        s[65] = G < 127 ? p[G + 1] : 0;
    __syncthreads();
    q[G] = s[T] + s[T + 1] + s[T + 2];
}
K(matmul) {
    __shared__ int a[8][8], b[8][8];
    int x = T % 8, y = T / 8, sum = 0;
    for (int t = 0; t < 2; t++) {
        a[y][x] = p[y * 8 + x];
        b[y][x] = p[64 + y * 8 + x];
        __syncthreads();
        for (int k = 0; k < 8; k++)
            sum += a[y][k] * b[k][x];
        __syncthreads();
    }
    q[G] = sum;
}
K(uniform_branch) {
    __shared__ int s[64];
    if (B == 0) {
        s[T] = p[G];
        __syncthreads();
        q[G] = s[63 - T];
    } else
        q[G] = 1;
}
K(divergent_then_together) {
    __shared__ int s[64];
    if (T % 3)
        s[T] = p[G];
    else
        s[T] = -p[G];
    __syncthreads();
    q[G] = s[(T + 1) % 64];
}
K(broadcast) {
    __shared__ int s;
    if (T == 17)
        s = p[G];
    __syncthreads();
    q[G] = s;
}
K(all_threads_barrier) {
    __shared__ volatile int s[64];
    s[T] = p[G];
    asm volatile("bar.sync 4, 64;" ::: "memory");
    q[G] = s[T ^ 40];
}
K(partial_warp) { q[G] = __shfl_down_sync(ALL, p[G], 1); }  // LAUNCH 2 40
K(half_warps) {
    unsigned m = T % 32 < 16 ? 0x0000ffffu : 0xffff0000u;
    q[G] = __shfl_xor_sync(m, p[G], 3);
}
K(match) { q[G] = __match_any_sync(ALL, p[G] % 4); }
K(redux) { q[G] = __reduce_add_sync(ALL, p[G]); }
K(active) { if (T % 2) q[G] = __popc(__activemask()); }
K(own_bytes) { ((char *)q)[G] = ((char *)p)[G]; }
K(own_halves) { ((short *)q)[2 * G] = 1; ((short *)q)[2 * G + 1] = 2; }
K(neighbour_halves) { ((short *)q)[G] = ((short *)p)[G ^ 1]; }
K(bits) { q[G] = __brev(p[G]) ^ __clz(p[G]) ^ __popc(p[G]); }
K(divide) { q[G] = p[G] / (1 + p[T]) + p[G] % (2 + p[T]); }
K(wide) { q[G] = (int)(((long long)p[G] * p[T]) >> 3); }
K(float_of_int) { q[G] = (int)sqrtf((float)p[G]); }
K(early_return) { if (G >= 100) return; q[G] = p[G]; }
K(switches) { switch (p[G] % 4) { case 0: q[G] = 1; break; case 1: q[G] = p[G]; break; default: q[G] = 3; } }
K(nested) { int n = 0; for (int i = 0; i < p[T] % 5; i++) for (int j = 0; j < i; j++) n += p[j]; q[G] = n; }
K(collatz) { int n = p[G] + 1, k = 0; while (n != 1 && k < 99) { n = n % 2 ? 3 * n + 1 : n / 2; k++; } q[G] = k; }
K(spread) { if (T < 32) q[B * 64 + 2 * T] = 1; else q[B * 64 + 2 * (T - 32) + 1] = 2; }
K(transpose_in_place) { int x = T % 8, y = T / 8; int v = p[B * 64 + x * 8 + y]; __syncthreads(); p[B * 64 + T] = v; }
K(shared_reused) {
    __shared__ int s[64];
    s[T] = p[G];
    __syncthreads();
    int v = s[63 - T];
    __syncthreads();
    s[T] = v + 1;
    __syncthreads();
    q[G] = s[T ^ 8];
}
K(warps_apart) {
    __shared__ int s[2][32];
    s[T / 32][T % 32] = p[G];
    __syncwarp();
    q[G] = s[T / 32][31 - T % 32];
}
K(thin_block) { q[G] = p[G]; }  // LAUNCH 128 1
K(two_by_two) { q[G * 4 + threadIdx.y * 2 + threadIdx.z] = 1; }  // LAUNCH 2 16
K(last_block) {
    __shared__ bool last;
    e[G] = p[G] * 2;
    __threadfence();
    __syncthreads();
    if (T == 0)
        last = atomicAdd(&q[100], 1) == gridDim.x - 1;
    __syncthreads();
    if (last)
        q[T] = e[T] + e[T + 64];
}
K(lock_of_one_warp) {  // vortex #62, ventus-gpgpu #1: all lanes of a warp want one lock
    bool done = false;
    while (!done)
        if (atomicCAS(&q[0], 0, 1) == 0) {
            __threadfence();
            *(volatile int *)&q[1] += 1;
            __threadfence();
            atomicExch(&q[0], 0);
            done = true;
        }
}  // LAUNCH 1 32
