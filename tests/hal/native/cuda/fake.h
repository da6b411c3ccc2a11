/*
 * A stand-in for libcuda.so.1 on a machine without a GPU: the functions of native/hal/cuda/abi.h
 * over host memory.
 *
 * What it is true to, and tests may rely on (contract.c holds it and the real library to the same
 * list): a stream is a thread of its own, so work is asynchronous and streams overlap; stream
 * memory operations, events and capture keep the order that the driver documents; device addresses
 * are not host pointers; a kernel that touches an unmapped address ends CUDA for the process, for
 * good; error codes and the current context per thread.
 *
 * What it is not: it compiles no PTX. A module is a list of names, and a kernel
 * runs only when fake_kernel.c has a C function of that name, block after block, one thread for
 * each. It tells nothing of speed, of warps, of caches or of memory order between kernels.
 *
 * BEDPLATE_FAKE_CUDA, a list of `key=value` separated by commas: `devices=N` (1), `memory_mb=N`
 * (1024), `attribute.N=V` (overrides one), `fault_after=N` (the Nth launch of the process ends in
 * error 719), `peers=0` (no device reaches the memory of another), `delay_us=N` (20; before an idle
 * stream begins).
 */
#ifndef BEDPLATE_TESTS_FAKE_CUDA_H
#define BEDPLATE_TESTS_FAKE_CUDA_H

#define _GNU_SOURCE
#include "abi.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define FAKE_API __attribute__((visibility("default"))) bp_cu_result

/* Device addresses are host pointers with this bit, so that nobody follows them by accident. */
#define FAKE_DEVICE_BIT (1ull << 62)

struct bp_cu_event_s {
    bp_cu_context context;
    /* Counts of records asked for and done. */
    _Atomic uint64_t asked, done;
};

struct bp_cu_function_s {
    const char *name;
    bp_cu_module module;
    int max_shared, loaded;
};

struct bp_cu_module_s {
    bp_cu_context context;
    unsigned count;
    struct bp_cu_function_s functions[64];
    char names[64][64];
};

typedef enum fake_kind {
    FAKE_COPY,
    FAKE_FILL,
    FAKE_LAUNCH,
    FAKE_WAIT_VALUE,
    FAKE_WRITE_VALUE,
    FAKE_RECORD,
    FAKE_WAIT_EVENT,
    FAKE_FREE,
    FAKE_CALL,
} fake_kind;

/* What another fake library puts into a stream (fakeStreamCall); 0 or the sticky error. */
typedef bp_cu_result (*fake_call)(bp_cu_context context, const unsigned char *parameters);

typedef struct fake_op {
    struct fake_op *next;
    fake_kind kind;
    uint64_t to, from, bytes, value;
    unsigned width;
    bp_cu_event event;
    bp_cu_function function;
    fake_call call;
    unsigned grid[3], block[3], shared_bytes;
    unsigned char parameters[4096];
} fake_op;

struct bp_cu_graph_s {
    fake_op *first, *last;
};

struct bp_cu_graph_exec_s {
    fake_op *first;
};

struct bp_cu_stream_s {
    bp_cu_context context;
    struct bp_cu_stream_s *next;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    fake_op *first, *last;
    uint64_t pending;
    int ending;
    /* What is recorded instead of run; null outside of a capture. */
    bp_cu_graph capturing;
    int capture_broken;
};

struct bp_cu_context_s {
    bp_cu_device device;
    pthread_mutex_t lock;
    bp_cu_stream streams;
    _Atomic int gone;
};

/* fake_context.c */
extern _Thread_local bp_cu_context fake_current;
/* 0, or the sticky error of the whole process. */
extern _Atomic bp_cu_result fake_dead;
/* The number of a key of BEDPLATE_FAKE_CUDA, or `otherwise`. */
long fake_setting(const char *key, long otherwise);
/* What an ordinary call gives before it does anything: no context, or its sticky error. */
bp_cu_result fake_ready(void);

/* fake_stream.c */
/* Ends CUDA for the process; waits until no stream waits for a word, as the driver does. */
void fake_kill(bp_cu_result error);
void fake_end_streams(bp_cu_context context);
bp_cu_result fake_enqueue(bp_cu_stream stream, const fake_op *op);
bp_cu_result fake_wait_all(bp_cu_context context);

/* fake_memory.c: the host's view of a span of device or host memory, null when part of it is not
 * mapped for `context`. */
void *fake_host(bp_cu_context context, uint64_t address, uint64_t bytes);
void fake_release(uint64_t address);
void fake_release_all(bp_cu_context context);

/* fake_kernel.c: runs one launch; 0 or the sticky error. */
bp_cu_result fake_run(bp_cu_context context, const fake_op *op);
/* Parameters of a kernel: their number, and offset and size of one. 0 parameters when unknown. */
unsigned fake_parameters(const char *kernel, const unsigned char **sizes);

#endif
