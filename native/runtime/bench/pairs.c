/*
 * Pairs of allocate and free on a device of numbers: the program that callgrind counts and the
 * benchmark times.
 *
 *     pairs LIBRARY empty|hot|split|random COUNT
 *
 * empty: the loop of `hot` around two calls that do nothing, to be taken off.
 * hot: one size through the quick bin. split: 3 MiB, cut from and joined with its neighbour.
 * random: 1,000 live blocks of random sizes, one freed and one made a step. Prints nanoseconds a
 * pair.
 */
#include <bedplate/runtime.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LIVE        1000
#define ACTIVATIONS 2

static int32_t (*allocate)(bp_runtime *, uint32_t, uint64_t, uint32_t, bp_runtime_block *);
static int32_t (*release)(bp_runtime *, uint64_t);

static int32_t no_allocate(bp_runtime *runtime, uint32_t pool, uint64_t bytes, uint32_t stream,
                           bp_runtime_block *out) {
    (void)runtime, (void)pool, (void)bytes, (void)stream, (void)out;
    return 0;
}

static int32_t no_release(bp_runtime *runtime, uint64_t block) {
    (void)runtime, (void)block;
    return 0;
}

static uint64_t now_ns(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}

/* xorshift64*, Vigna 2016. */
static uint64_t draw(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(0x2545f4914f6cdd1d) >> 32;
}

static uint64_t some_size(uint64_t *state) {
    uint64_t shift = draw(state) % 14; /* 512 bytes to 8 MiB, every doubling as often */
    return (512u << shift) + draw(state) % (512u << shift);
}

static void must(int32_t status, const char *what) {
    if (status) {
        fprintf(stderr, "%s failed with %d\n", what, status);
        exit(1);
    }
}

static uint64_t same(bp_runtime *runtime, uint64_t bytes, long count) {
    bp_runtime_block block;
    uint64_t start = now_ns();
    for (long i = 0; i < count; i++) {
        must(allocate(runtime, ACTIVATIONS, bytes, 0, &block), "allocate");
        must(release(runtime, block.handle), "free");
    }
    return now_ns() - start;
}

static uint64_t shuffled(bp_runtime *runtime, long count) {
    static bp_runtime_block live[LIVE];
    uint64_t state = 7;
    for (int i = 0; i < LIVE; i++)
        must(allocate(runtime, ACTIVATIONS, some_size(&state), 0, &live[i]), "allocate");
    uint64_t start = now_ns();
    for (long i = 0; i < count; i++) {
        bp_runtime_block *slot = &live[draw(&state) % LIVE];
        must(release(runtime, slot->handle), "free");
        must(allocate(runtime, ACTIVATIONS, some_size(&state), 0, slot), "allocate");
    }
    return now_ns() - start;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: pairs LIBRARY empty|hot|split|random COUNT\n");
        return 2;
    }
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 3;
    }
    int32_t (*open_fake)(uint64_t, uint64_t, const char *, uint64_t, bp_runtime **);
    int32_t (*open_stream)(bp_runtime *, uint64_t, uint64_t, uint32_t *);
    *(void **)&open_fake = dlsym(library, "bp_runtime_open_fake");
    *(void **)&open_stream = dlsym(library, "bp_runtime_stream_open");
    int32_t (*close_runtime)(bp_runtime *);
    *(void **)&close_runtime = dlsym(library, "bp_runtime_close");
    *(void **)&allocate = dlsym(library, "bp_runtime_allocate");
    *(void **)&release = dlsym(library, "bp_runtime_free");
    bp_runtime *runtime = NULL;
    uint32_t stream;
    must(open_fake(UINT64_C(64) << 30, 2 << 20, "", 0, &runtime), "open");
    must(open_stream(runtime, 1, 0, &stream), "stream");
    bp_runtime_block keep;
    must(allocate(runtime, ACTIVATIONS, 1 << 20, stream, &keep), "allocate");
    long count = strtol(argv[3], NULL, 10);
    uint64_t spent;
    if (strcmp(argv[2], "empty") == 0) {
        allocate = no_allocate;
        release = no_release;
    }
    if (strcmp(argv[2], "hot") == 0 || strcmp(argv[2], "empty") == 0)
        spent = same(runtime, 4096, count);
    else if (strcmp(argv[2], "split") == 0) {
        must(allocate(runtime, ACTIVATIONS, 64 << 20, stream, &keep), "allocate");
        must(release(runtime, keep.handle), "free");
        spent = same(runtime, 3 << 20, count);
    } else
        spent = shuffled(runtime, count);
    must(close_runtime(runtime), "close");
    printf("%.2f\n", (double)spent / (double)count);
    return 0;
}
