/*
 * Device memory by pools and streams: the allocator's C interface.
 *
 * An allocator stands over a device of the HAL, or over a device of numbers for tests and replays.
 * Pools are numbered: 0 weights, 1 kv, 2 activations, 3 scratch, 4 capture. A stream is a timeline
 * whose work runs in order; advance it with the value that each submission will signal. Every
 * function may be called from any thread; a stream's quick bins serve the thread that opened it.
 *
 * A function returns 0 or a negative status; bp_runtime_last_error gives the calling thread's
 * sentence. Sizes are bytes. Texts are UTF-8 with a length, not terminated.
 */
#ifndef BEDPLATE_RUNTIME_H
#define BEDPLATE_RUNTIME_H

#include <bedplate/hal.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BP_RUNTIME_INVALID       (-1)
#define BP_RUNTIME_OUT_OF_MEMORY (-2)
#define BP_RUNTIME_OVER_QUOTA    (-3)
#define BP_RUNTIME_STEADY_STATE  (-4)
#define BP_RUNTIME_BAD_HANDLE    (-5)
#define BP_RUNTIME_DEVICE        (-6)
#define BP_RUNTIME_HOST_MEMORY   (-7)
#define BP_RUNTIME_INTERNAL      (-8)

typedef struct bp_runtime bp_runtime;

typedef struct {
    uint64_t handle;  /* 0 for a request of no bytes */
    uint64_t address; /* a number of ours on devices without addresses */
    uint64_t bytes;   /* as cut, at least what was asked */
    uint64_t memory;  /* the device's memory it lies in; 0 where only addresses name it */
    uint64_t offset;  /* where in that memory */
} bp_runtime_block;

typedef struct {
    uint64_t current, peak, allocated, freed;
} bp_runtime_figure;

typedef struct {
    bp_runtime_figure allocation, segment, reserved_bytes, allocated_bytes, requested_bytes,
        active_bytes;
} bp_runtime_side;

typedef struct {
    uint64_t create, release, map, unmap, wait;
} bp_runtime_driver_calls;

typedef struct {
    bp_runtime_side small, large; /* requests to 1 MiB, and above */
    uint64_t largest_free_block_bytes, pending_free_bytes, inactive_split_bytes, driver_calls,
        sealed_calls, waits, out_of_memory, remapped_bytes, allocated_peak_bytes,
        reserved_peak_bytes, quota_bytes, retries;
    bp_runtime_driver_calls open, sealed; /* asked for before seal, and after, refused or not */
} bp_runtime_stats_out;

typedef struct {
    uint64_t address, bytes, requested;
    uint32_t stream;
    /* 1 free, 2 live, 3 in a quick bin, 4 waiting for streams, 5 hole, 6 in quarantine */
    uint8_t state;
    uint8_t pool, side, first;
} bp_runtime_seen;

/* A line of a trace: 40 bytes, little-endian in a .bpt file. */
typedef struct {
    uint64_t time_ns, address, bytes;
    uint32_t stream;
    uint8_t action; /* 1 request, 2 free, 3 work, 4 a use told, 5 a wait of the host */
    uint8_t pool;
    uint16_t thread;
    uint64_t padding;
} bp_runtime_record;

typedef struct {
    uint64_t live_peak, reserved_peak, reserved_end, requests, out_of_memory, driver_calls;
} bp_runtime_outcome;

typedef struct {
    uint64_t create, release, map, unmap, wait, fill;
} bp_runtime_fake_counts;

/* `piece`: bytes of the least mapping, 0 without BP_CAP_ADDRESS_RESERVE. Options as in
 * BEDPLATE_RUNTIME_ALLOC_CONF. The API and the device outlive the allocator. */
int32_t bp_runtime_open(const bp_api *api, uint64_t device, uint64_t piece, const char *options,
                        uint64_t length, bp_runtime **out);
int32_t bp_runtime_close(bp_runtime *);
/* The device was closed, which gave all memory back: close will not call it any more. */
int32_t bp_runtime_abandon(bp_runtime *);
uint64_t bp_runtime_last_error(char *buffer, uint64_t capacity);

int32_t bp_runtime_stream_open(bp_runtime *, uint64_t timeline, uint64_t value, uint32_t *out);
int32_t bp_runtime_stream_close(bp_runtime *, uint32_t stream);
int32_t bp_runtime_stream_advance(bp_runtime *, uint32_t stream, uint64_t value);
/* Empties the stream's quick bins; by its own thread. */
int32_t bp_runtime_stream_flush(bp_runtime *, uint32_t stream);

int32_t bp_runtime_allocate(bp_runtime *, uint32_t pool, uint64_t bytes, uint32_t stream,
                            bp_runtime_block *out);
int32_t bp_runtime_free(bp_runtime *, uint64_t block);
int32_t bp_runtime_used_on(bp_runtime *, uint64_t block, uint32_t stream);
int32_t bp_runtime_describe(bp_runtime *, uint64_t block, bp_runtime_block *out);

int32_t bp_runtime_quota(bp_runtime *, uint32_t pool, uint64_t bytes);
/* 0 open, 1 count driver calls as violations, 2 refuse them. */
int32_t bp_runtime_seal(bp_runtime *, uint32_t mode);
int32_t bp_runtime_trim(bp_runtime *, uint64_t *bytes);
int32_t bp_runtime_stats(bp_runtime *, uint32_t pool, bp_runtime_stats_out *out);
int32_t bp_runtime_check(bp_runtime *);
/* Writes at most `capacity` blocks; `count` is the true number. */
int32_t bp_runtime_blocks(bp_runtime *, bp_runtime_seen *out, uint64_t capacity, uint64_t *count);
/* What the sanitizer found since the last call that had room for it, a line each. */
int32_t bp_runtime_findings(bp_runtime *, char *buffer, uint64_t capacity, uint64_t *length);

/* `places` and `reserved` get a value a record; either may be null. */
int32_t bp_runtime_replay(const char *policy, uint64_t length, uint64_t capacity,
                          const bp_runtime_record *trace, uint64_t count, uint64_t *places,
                          uint64_t *reserved, bp_runtime_outcome *out);
int32_t bp_runtime_plan(const bp_runtime_record *trace, uint64_t count, uint64_t *offsets,
                        uint64_t capacity, uint64_t *bytes, uint64_t *lower_bound);

/* A device of `capacity` bytes that exists as numbers. `hold`: its timelines pass only by `reach`.
 * `fail_in`: the call after so many fails once. `scribble`: a late write at an address. */
int32_t bp_runtime_open_fake(uint64_t capacity, uint64_t piece, const char *options,
                             uint64_t length, bp_runtime **out);
int32_t bp_runtime_fake_hold(bp_runtime *);
int32_t bp_runtime_fake_reach(bp_runtime *, uint64_t timeline, uint64_t value);
int32_t bp_runtime_fake_fail_in(bp_runtime *, uint64_t calls);
int32_t bp_runtime_fake_calls(bp_runtime *, bp_runtime_fake_counts *out);
int32_t bp_runtime_fake_scribble(bp_runtime *, uint64_t address, uint64_t offset);

/* The allocator as PyTorch's pluggable one, in the process's own CUDA context. Streams are the
 * driver's. A failure is null, with its sentence on stderr. */
void *bp_runtime_torch_allocate(intptr_t bytes, int device, void *stream);
void bp_runtime_torch_free(void *address, intptr_t bytes, int device, void *stream);
void bp_runtime_torch_record_stream(void *address, void *stream);
int32_t bp_runtime_torch_stats(int device, bp_runtime_stats_out *out);

#ifdef __cplusplus
}
#endif

#endif
