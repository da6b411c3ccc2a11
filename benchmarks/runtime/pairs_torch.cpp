// Host nanoseconds of an allocate and free pair: PyTorch's caching allocator, the driver's own
// pool, and ours by pointer and by handle, interleaved in one process on one GPU.
//
//     pairs_torch LIBRARY
//
// Prints a line a size and way: the best of nine rounds.
#include <c10/cuda/CUDACachingAllocator.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <dlfcn.h>

namespace torch_memory = c10::cuda::CUDACachingAllocator;

template <typename Pair> double best_of(long count, Pair pair) {
    double best = 1e18;
    for (int round = 0; round < 9; round++) {
        auto start = std::chrono::steady_clock::now();
        for (long i = 0; i < count; i++)
            pair();
        std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
        best = std::min(best, spent.count() / static_cast<double>(count));
    }
    return best;
}

int main(int, char **argv) {
    void *library = dlopen(argv[1], RTLD_NOW);
    if (!library) {
        std::fprintf(stderr, "%s\n", dlerror());
        return 3;
    }
    auto allocate = reinterpret_cast<void *(*)(intptr_t, int, void *)>(
        dlsym(library, "bp_runtime_torch_allocate"));
    auto release = reinterpret_cast<void (*)(void *, intptr_t, int, void *)>(
        dlsym(library, "bp_runtime_torch_free"));
    cudaFree(nullptr);
    torch_memory::init(1);
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    cudaMemPool_t pool;
    cudaDeviceGetDefaultMemPool(&pool, 0);
    uint64_t all = UINT64_MAX;
    cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all);
    for (long bytes : {4096L, 1L << 20, 64L << 20}) {
        for (int turn = 0; turn < 2; turn++) {
            double theirs = best_of(100000, [&] {
                torch_memory::raw_delete(
                    torch_memory::raw_alloc_with_stream(static_cast<size_t>(bytes), nullptr));
            });
            double ours =
                best_of(100000, [&] { release(allocate(bytes, 0, nullptr), bytes, 0, nullptr); });
            double driver = best_of(2000, [&] {
                void *at;
                cudaMallocAsync(&at, static_cast<size_t>(bytes), stream);
                cudaFreeAsync(at, stream);
            });
            std::printf("%ld bytes: torch %.1f ns, bedplate %.1f ns, cudaMallocAsync %.1f ns, "
                        "torch / bedplate %.2f\n",
                        bytes, theirs, ours, driver, theirs / ours);
        }
    }
    return 0;
}
