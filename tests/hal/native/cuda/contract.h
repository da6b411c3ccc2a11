/*
 * What the backend relies on of libcuda.so.1, as cases: run against the fake in CI and against the
 * real library where there is one (`make device`). A case that fails on the real library is a wrong
 * belief of ours; one that fails on the fake alone is a fault of the fake.
 *
 *   contract PTX    prints `pass NAME` or `fail NAME: reason`, exits with 1 after a failure
 */
#ifndef BEDPLATE_TESTS_CUDA_CONTRACT_H
#define BEDPLATE_TESTS_CUDA_CONTRACT_H

#include "driver.h"

#include <stdio.h>

/* What a case finds: the primary context, two streams, pinned host words, device bytes. */
typedef struct contract {
    bp_cu_context context;
    bp_cu_stream one, two;
    bp_cu_module module;
    /* 4096 words, which the device sees at `word_at`. */
    volatile uint64_t *words;
    bp_cu_address word_at;
    /* 1 MiB. */
    bp_cu_address bytes;
    const char *ptx;
    char reason[300];
} contract;

typedef struct contract_case {
    const char *name;
    int (*run)(contract *c);
} contract_case;

extern const contract_case contract_order[], contract_fault[], contract_code[];

/* Fails the case with a sentence; gives 1. */
int contract_fail(contract *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Whether `result` is `wanted`; else the case fails. */
int contract_is(contract *c, bp_cu_result result, bp_cu_result wanted, const char *what);

bp_cu_function contract_kernel(contract *c, const char *name);

/* Launches one thread of a kernel with packed parameters. */
bp_cu_result contract_launch(bp_cu_function kernel, bp_cu_stream stream, const void *parameters,
                             size_t bytes);

/* Until *word is `value` or two seconds are over; whether it came. */
int contract_comes(const volatile uint64_t *word, uint64_t value);

void contract_nap(long milliseconds);

#define WANT(call, wanted)                                                                         \
    do {                                                                                           \
        if (!contract_is(c, (call), (wanted), #call))                                              \
            return 1;                                                                              \
    } while (0)
#define WORKS(call) WANT(call, BP_CU_SUCCESS)
#define HOLDS(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return contract_fail(c, "not so: %s", #condition);                                     \
    } while (0)

#endif
