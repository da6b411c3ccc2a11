"""cffi in ABI mode: the types of `runtime.h`, and the library.

The declarations repeat `native/runtime/include/bedplate/runtime.h`; a test
compares the two, and the library asserts the sizes.
"""

from __future__ import annotations

import functools
from typing import Any

from cffi import FFI

from bedplate.core.library import load
from bedplate.runtime.errors import from_status

CDEF = """
typedef struct bp_runtime bp_runtime;
typedef struct { uint64_t handle, address, bytes, memory, offset; } bp_runtime_block;
typedef struct { uint64_t current, peak, allocated, freed; } bp_runtime_figure;
typedef struct {
    bp_runtime_figure allocation, segment, reserved_bytes, allocated_bytes, requested_bytes,
        active_bytes;
} bp_runtime_side;
typedef struct {
    uint64_t create, release, map, unmap, wait;
} bp_runtime_driver_calls;
typedef struct {
    bp_runtime_side small, large;
    uint64_t largest_free_block_bytes, pending_free_bytes, inactive_split_bytes, driver_calls,
        sealed_calls, waits, out_of_memory, remapped_bytes, allocated_peak_bytes,
        reserved_peak_bytes, quota_bytes, retries;
    bp_runtime_driver_calls open, sealed;
} bp_runtime_stats_out;
typedef struct {
    uint64_t address, bytes, requested;
    uint32_t stream;
    uint8_t state;
    uint8_t pool, side, first;
} bp_runtime_seen;
typedef struct {
    uint64_t time_ns, address, bytes;
    uint32_t stream;
    uint8_t action;
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
int32_t bp_runtime_open(const void *api, uint64_t device, uint64_t piece, const char *options,
                        uint64_t length, bp_runtime **out);
int32_t bp_runtime_close(bp_runtime *);
int32_t bp_runtime_abandon(bp_runtime *);
uint64_t bp_runtime_last_error(char *buffer, uint64_t capacity);
int32_t bp_runtime_stream_open(bp_runtime *, uint64_t timeline, uint64_t value, uint32_t *out);
int32_t bp_runtime_stream_close(bp_runtime *, uint32_t stream);
int32_t bp_runtime_stream_advance(bp_runtime *, uint32_t stream, uint64_t value);
int32_t bp_runtime_stream_flush(bp_runtime *, uint32_t stream);
int32_t bp_runtime_allocate(bp_runtime *, uint32_t pool, uint64_t bytes, uint32_t stream,
                            bp_runtime_block *out);
int32_t bp_runtime_free(bp_runtime *, uint64_t block);
int32_t bp_runtime_used_on(bp_runtime *, uint64_t block, uint32_t stream);
int32_t bp_runtime_describe(bp_runtime *, uint64_t block, bp_runtime_block *out);
int32_t bp_runtime_quota(bp_runtime *, uint32_t pool, uint64_t bytes);
int32_t bp_runtime_seal(bp_runtime *, uint32_t mode);
int32_t bp_runtime_trim(bp_runtime *, uint64_t *bytes);
int32_t bp_runtime_stats(bp_runtime *, uint32_t pool, bp_runtime_stats_out *out);
int32_t bp_runtime_check(bp_runtime *);
int32_t bp_runtime_blocks(bp_runtime *, bp_runtime_seen *out, uint64_t capacity, uint64_t *count);
int32_t bp_runtime_findings(bp_runtime *, char *buffer, uint64_t capacity, uint64_t *length);
int32_t bp_runtime_replay(const char *policy, uint64_t length, uint64_t capacity,
                          const bp_runtime_record *trace, uint64_t count, uint64_t *places,
                          uint64_t *reserved, bp_runtime_outcome *out);
int32_t bp_runtime_plan(const bp_runtime_record *trace, uint64_t count, uint64_t *offsets,
                        uint64_t capacity, uint64_t *bytes, uint64_t *lower_bound);
void *bp_runtime_torch_allocate(intptr_t bytes, int device, void *stream);
void bp_runtime_torch_free(void *address, intptr_t bytes, int device, void *stream);
void bp_runtime_torch_record_stream(void *address, void *stream);
int32_t bp_runtime_torch_stats(int device, bp_runtime_stats_out *out);
int32_t bp_runtime_open_fake(uint64_t capacity, uint64_t piece, const char *options,
                             uint64_t length, bp_runtime **out);
int32_t bp_runtime_fake_hold(bp_runtime *);
int32_t bp_runtime_fake_reach(bp_runtime *, uint64_t timeline, uint64_t value);
int32_t bp_runtime_fake_fail_in(bp_runtime *, uint64_t calls);
int32_t bp_runtime_fake_calls(bp_runtime *, bp_runtime_fake_counts *out);
int32_t bp_runtime_fake_scribble(bp_runtime *, uint64_t address, uint64_t offset);
"""

ERROR_BYTES = 1024

ffi = FFI()
ffi.cdef(CDEF)


@functools.cache
def library() -> Any:
    """The runtime, `libbedplate_runtime.so`; EnvironmentLacks when it does not load."""
    return load(ffi, "runtime", "the runtime's library", "runtime.library_missing")


def check(status: int) -> None:
    """Raise the typed error of a negative status of this thread's last call."""
    if status < 0:
        buffer = ffi.new("char[]", ERROR_BYTES)
        library().bp_runtime_last_error(buffer, ERROR_BYTES)
        raise from_status(status, bytes(ffi.string(buffer)).decode(errors="replace"))
