/*
 * Detection at run time, never at build time: one binary runs everywhere.
 *
 * Levels: avx2 = AVX2, FMA, F16C. avx512 = AVX-512 F, BW, DQ, VL on top. avx512_bf16 = AVX-512
 * BF16 and VNNI on top. gcc's builtin also asks the system whether it saves the registers.
 */
#define _GNU_SOURCE
#include "isa.h"

#include "../error.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const LEVELS[] = {"generic", "avx2", "avx512", "avx512_bf16"};
#define LEVEL_COUNT ((int)(sizeof(LEVELS) / sizeof(LEVELS[0])))

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int best;
static char features[160];
static char processor[96] = "CPU";

int bp_isa_level(const char *name, uint64_t length) {
    for (int level = 0; level < LEVEL_COUNT; level++)
        if (strlen(LEVELS[level]) == length && memcmp(LEVELS[level], name, length) == 0)
            return level;
    return -1;
}

const char *bp_isa_name(int level) {
    return LEVELS[level];
}

static void read_processor(void) {
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[256];
    while (file && fgets(line, sizeof(line), file)) {
        char *value = strncmp(line, "model name", 10) == 0 ? strchr(line, ':') : NULL;
        if (!value)
            continue;
        value += 1 + strspn(value + 1, " \t");
        value[strcspn(value, "\n")] = 0;
        snprintf(processor, sizeof(processor), "%.95s", value);
        break;
    }
    if (file)
        fclose(file);
}

static void detect(void) {
    read_processor();
#if defined(__x86_64__)
    __builtin_cpu_init();
#define HAS(name)                                                                                  \
    (__builtin_cpu_supports(name) ? (strcat(strcat(features, *features ? " " : ""), name), 1) : 0)
    int avx2 = HAS("avx2") & HAS("fma") & HAS("f16c");
    int avx512 = HAS("avx512f") & HAS("avx512bw") & HAS("avx512dq") & HAS("avx512vl");
    int bf16 = HAS("avx512vnni") & HAS("avx512bf16");
#undef HAS
    best = !avx2 ? 0 : !avx512 ? 1 : !bf16 ? 2 : 3;
#endif
}

int bp_isa_best(void) {
    pthread_once(&once, detect);
    return best;
}

const char *bp_isa_features(void) {
    pthread_once(&once, detect);
    return features;
}

const char *bp_isa_processor(void) {
    pthread_once(&once, detect);
    return processor;
}

int32_t bp_isa_chosen(int *level) {
    *level = bp_isa_best();
    const char *wanted = getenv("BEDPLATE_CPU_ISA");
    if (!wanted || !*wanted)
        return BP_OK;
    int asked = bp_isa_level(wanted, strlen(wanted));
    if (asked < 0)
        return bp_fail(BP_UNAVAILABLE,
                       "BEDPLATE_CPU_ISA=%.40s is not one of avx512_bf16, avx512, avx2, generic",
                       wanted);
    if (asked > *level)
        return bp_fail(BP_UNAVAILABLE, "BEDPLATE_CPU_ISA=%s, but this processor has %s at most",
                       wanted, LEVELS[*level]);
    *level = asked;
    return BP_OK;
}

/* Whole cores of the cgroup's quota, or `most` without one. */
static uint32_t quota(uint32_t most) {
    FILE *file = fopen("/sys/fs/cgroup/cpu.max", "re");
    unsigned long long share = 0, period = 0;
    uint32_t cores = most;
    if (file && fscanf(file, "%llu %llu", &share, &period) == 2 && period) {
        unsigned long long whole = (share + period - 1) / period;
        cores = whole < 1 ? 1 : whole < most ? (uint32_t)whole : most;
    }
    if (file)
        fclose(file);
    return cores;
}

int32_t bp_isa_threads(uint32_t *threads) {
    const char *wanted = getenv("BEDPLATE_HAL_CPU_THREADS");
    if (wanted && *wanted) {
        char *end = NULL;
        long value = strtol(wanted, &end, 10);
        if (*end || value < 1 || value > 1024)
            return bp_fail(BP_UNAVAILABLE, "BEDPLATE_HAL_CPU_THREADS=%.40s is not 1 to 1024",
                           wanted);
        *threads = (uint32_t)value;
        return BP_OK;
    }
    cpu_set_t set;
    CPU_ZERO(&set);
    int cores = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
    *threads = quota(cores < 1 ? 1 : (uint32_t)cores);
    return BP_OK;
}

uint64_t bp_isa_memory(void) {
    uint64_t total = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGE_SIZE);
    FILE *file = fopen("/sys/fs/cgroup/memory.max", "re");
    unsigned long long limit = 0;
    if (file && fscanf(file, "%llu", &limit) == 1 && limit && limit < total)
        total = limit;
    if (file)
        fclose(file);
    return total;
}
