// Kernels with one bug each. The line that a check must name carries `// BUG check/kind`;
// all are launched with two blocks of 64 threads unless `// LAUNCH grid block` says
// otherwise. `p` and `q` hold 128 ints that are written, `e` 128 that nobody wrote.
// clang-format off: a short kernel has one line, so that its comment stands at its bug
#define K(name) extern "C" __global__ void name(int *p, int *q, int *e)
#define T threadIdx.x
#define B blockIdx.x
#define G (blockIdx.x * blockDim.x + threadIdx.x)
K(past_the_end) { p[G + 1] = 1; }  // BUG memory/out-of-bounds
K(before_the_start) { p[(int)G - 1] = 1; }  // BUG memory/out-of-bounds
K(read_past_the_end) { q[G] = p[G + 5]; }  // BUG memory/out-of-bounds
K(twice_the_index) { q[G] = p[2 * G]; }  // BUG memory/out-of-bounds
K(pairs_past_the_end) { int2 v = ((int2 *)p)[G]; q[G] = v.x + v.y; }  // BUG memory/out-of-bounds
K(no_guard) { q[G] = p[G]; }  // BUG memory/out-of-bounds LAUNCH 3 64
K(off_by_one_guard) { if (G <= 128) q[G] = G; }  // BUG memory/out-of-bounds LAUNCH 3 64
K(byte_past_the_end) { ((char *)q)[G + 385] = 1; }  // BUG memory/out-of-bounds
K(misaligned_int) { q[G] = *(int *)((char *)p + 4 * T + 2); }  // BUG memory/misaligned
K(misaligned_pair) { int2 v = *(int2 *)(p + 1); q[G] = v.x + v.y; }  // BUG memory/misaligned
K(misaligned_store) { *(short *)((char *)q + 1) = 1; }  // BUG memory/misaligned LAUNCH 1 1
K(misaligned_quad) { int4 v = *(int4 *)(p + 2); q[G] = v.x + v.w; }  // BUG memory/misaligned
K(shared_past_the_end) {
    __shared__ int s[64];
    s[T] = T;
    __syncthreads();
    q[G] = s[T + 1];  // BUG memory/out-of-bounds
}
K(shared_write_past_the_end) {
    __shared__ int s[64];
    s[T * 2] = T;  // BUG memory/out-of-bounds
    __syncthreads();
    q[G] = s[0];
}
K(unwritten_global) { q[G] = e[G]; }  // BUG init/uninitialized
K(unwritten_half) {
    if (T < 32)
        e[G] = 1;
    q[G] = e[G];  // BUG init/uninitialized
}
K(unwritten_shared) {
    __shared__ int s[64];
    q[G] = s[T];  // BUG init/uninitialized
    s[T] = 1;
}
K(unwritten_shared_half) {
    __shared__ int s[64];
    if (T < 32)
        s[T] = T;
    __syncthreads();
    q[G] = s[T];  // BUG init/uninitialized
}
K(unwritten_sum) {
    __shared__ int s;
    atomicAdd(&s, 1);  // BUG init/uninitialized
    __syncthreads();
    q[G] = s;
}
K(unwritten_tile) {
    __shared__ int s[8][9];
    s[T / 8][T % 8] = p[G];
    __syncthreads();
    q[G] = s[T % 8][T / 8 + 1];  // BUG init/uninitialized
}
K(no_barrier) {
    __shared__ volatile int s[64];
    s[T] = p[G];
    q[G] = s[63 - T];  // BUG race/warps
}
K(no_second_barrier) {
    __shared__ volatile int s[64];
    for (int i = 0; i < 4; i++) {
        s[T] = p[G] + i;  // BUG race/warps
        __syncthreads();
        q[G] += s[63 - T];
    }
}
K(lanes_in_step) {
    __shared__ volatile int s[64];
    s[T] = p[G];
    q[G] = s[T ^ 1];  // BUG race/lanes
}
K(reduction_in_step) {
    __shared__ volatile int s[64];
    s[T] = p[G];
    __syncthreads();
    if (T < 16) {
        s[T] += s[T + 16];
        s[T] += s[T + 8];  // BUG race/lanes
    }
    if (T == 0)
        q[blockIdx.x] = s[0];
}
K(wrong_order_sync) {
    __shared__ volatile int s[64];
    __syncwarp();
    s[T] = p[G];
    q[G] = s[T ^ 3];  // BUG race/lanes
}
K(warp_sync_for_block) {
    __shared__ volatile int s[64];
    s[T] = p[G];
    __syncwarp();
    q[G] = s[T ^ 32];  // BUG race/warps
}
K(all_write_one) {
    __shared__ volatile int s;
    s = T;  // BUG race/lanes
    __syncthreads();
    q[G] = s;
}
K(shared_counter) {
    __shared__ volatile int s;
    if (T == 0)
        s = 0;
    __syncthreads();
    s = s + 1;  // BUG race/lanes
    __syncthreads();
    q[G] = s;
}
K(atomic_and_plain) {
    __shared__ int s;
    if (T == 0)
        s = 0;
    atomicAdd(&s, 1);  // BUG race/lanes
    __syncthreads();
    q[G] = s;
}
K(read_of_an_atomic) {
    __shared__ int s;
    if (T == 0)
        s = 0;
    __syncthreads();
    atomicAdd(&s, 1);
    q[G] = *(volatile int *)&s;  // BUG race/lanes
}
K(histogram) { *(volatile int *)&q[p[T] % 4] += 1; }  // BUG race/lanes LAUNCH 1 64
K(blocks_one_cell) { if (T == 0) q[0] = blockIdx.x; }  // BUG race/blocks
K(blocks_neighbours) { q[G] = 1; p[G] = q[(G + 64) % 128]; }  // BUG race/blocks
K(blocks_sum) { if (T == 0) q[0] += p[blockIdx.x]; }  // BUG race/blocks
K(barrier_for_blocks) {
    if (T == 0 && blockIdx.x == 0)
        q[0] = 1;
    __syncthreads();
    p[G] = *(volatile int *)q;  // BUG race/blocks
}
K(stencil_in_place) { if (G > 0 && T == 0) p[G] = p[G] + p[G - 1]; if (T == 63) p[G] = 7; }  // BUG race/blocks
K(blocks_overlap) { q[blockIdx.x * 32 + T] = blockIdx.x; }  // BUG race/blocks
K(bytes_of_one_word) { ((volatile char *)q)[T] = 1; p[T] = ((volatile int *)q)[T / 4]; }  // BUG race/lanes LAUNCH 1 64
K(half_at_the_barrier) {
    if (T % 2)
        __syncthreads();  // BUG sync/divergent-warp
    q[G] = 1;
}
K(barrier_in_both_arms) {
    if (T < 10) {
        __syncthreads();  // BUG sync/divergent-warp
        q[G] = 1;
    } else {
        q[G] = 2;
        __syncthreads();
    }
}
K(return_before_barrier) {
    if (T >= 40)
        return;
    __syncthreads();  // BUG sync/divergent-block
    q[G] = 1;
}
K(warp_returns) {
    if (T < 32)
        return;
    __syncthreads();  // BUG sync/divergent-block
    q[G] = 1;
}
K(barrier_in_a_loop) {
    for (int i = 0; i < (int)T; i++)
        __syncthreads();  // BUG sync/divergent-warp
    q[G] = 1;
}
K(two_barriers) {
    if (T < 32)
        asm volatile("bar.sync 1;");  // BUG sync/deadlock
    else
        asm volatile("bar.sync 2;");
    q[G] = 1;
}
K(too_many_wanted) {
    asm volatile("bar.sync 3, 96;");  // BUG sync/deadlock
    q[G] = 1;
}
K(mask_without_itself) {
    q[G] = __shfl_xor_sync(0x0000ffff, p[G], 1);  // BUG sync/outside-mask
}
K(full_mask_in_branch) {
    if (T % 32 < 8)
        q[G] = __shfl_down_sync(0xffffffff, p[G], 1);  // BUG sync/absent-lane
    else
        q[G] = p[G];
}
K(unlike_masks) {
    q[G] = __ballot_sync(T % 32 < 16 ? 0xffffffff : 0xffff0000, p[G]);  // BUG sync/unlike-masks
}
K(misses_the_barrier) {  // numba/numba #2655: 20 threads, some jump past the barrier
    __shared__ volatile int pad[32];
    if (T < 17) {
        if (T == 0)
            pad[0] = 7;
        __syncthreads();  // BUG sync/divergent-warp LAUNCH 1 20
        q[T] = 1;
    } else
        q[T] = pad[0];
}
K(warp_synchronous) {  // numba/numba PR #6127: a reduction that trusts lanes to run in step
    __shared__ volatile int s[64];
    s[T] = p[T];
    __syncthreads();
    if (T < 32) {
        s[T] += s[T + 32];
        s[T] += s[T + 16];  // BUG race/lanes LAUNCH 1 64
        s[T] += s[T + 8];
        s[T] += s[T + 4];
        s[T] += s[T + 2];
        s[T] += s[T + 1];
    }
    if (T == 0)
        q[0] = s[0];
}
K(cell_of_two_blocks) {  // jrprice/Oclgrind #159: a barrier between two blocks' accesses
    if (T == 0)
        q[9] = B;
    __syncthreads();
    p[G] = *(volatile int *)&q[9];  // BUG race/blocks
}
