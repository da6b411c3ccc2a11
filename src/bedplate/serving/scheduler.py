"""The native scheduler and block pool, as Python sees them.

A thin shell over `libbedplate_serving.so`: numpy arrays in, numpy arrays out,
one native call to apply events and one to plan. The arrays of a plan may lie in
device memory, so that a step needs no copy on devices the host can address.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

import cffi
import numpy as np
from numpy.typing import NDArray

from bedplate.core.library import load
from bedplate.serving.errors import SchedulerError

_CDEF = """
typedef struct bp_serving bp_serving;
typedef struct {
  uint32_t struct_size, block_count, block_tokens, max_requests, max_running, max_batched_tokens,
      max_model_tokens, max_sample_rows, prefix_sharing, max_preemptions;
  uint64_t hash_key[2];
} bp_serving_config;
typedef struct {
  uint32_t kind; int32_t priority; uint64_t request; uint64_t step; const int32_t *tokens;
  uint32_t token_count, max_new_tokens, flags, reserved; uint64_t domain[2];
} bp_serving_event;
typedef struct {
  uint32_t struct_size, table_stride;
  uint64_t *row_request; uint32_t *row_first, *row_tokens, *row_cached;
  int32_t *query_start, *context_length, *block_table, *tokens, *positions, *kv_slots,
      *sample_token;
  uint32_t *sample_row; uint64_t *preempted;
  uint64_t step; uint32_t row_count, token_count, sample_count, preempted_count;
} bp_serving_plan_out;
typedef struct {
  uint32_t struct_size, waiting, running, blocks_clean, blocks_cached, blocks_referenced,
      blocks_fenced;
  uint64_t steps, preemptions, evictions, prefix_queried, prefix_hit, added, ended,
      prefix_hashes;
} bp_serving_stats;
int32_t bp_serving_create(const bp_serving_config *, bp_serving **);
void bp_serving_destroy(bp_serving *);
int32_t bp_serving_apply(bp_serving *, const bp_serving_event *, uint32_t, uint64_t, uint32_t *);
int32_t bp_serving_plan(bp_serving *, bp_serving_plan_out *);
int32_t bp_serving_get_stats(const bp_serving *, bp_serving_stats *);
int32_t bp_serving_check(const bp_serving *);
void bp_serving_siphash(const uint64_t *, const void *, uint64_t, uint64_t *);
const char *bp_serving_last_error(void);
"""

ADD, END, STEP_DONE, STEP_LOST = 1, 2, 3, 4
SCORE = 1  # flag of ADD: logits of every prompt row
STATUS_QUEUE_FULL = -5
STATUS_TOO_LONG = -6


@cache
def _library() -> tuple[Any, Any]:
    ffi = cffi.FFI()
    ffi.cdef(_CDEF)
    return ffi, load(ffi, "serving", "the scheduler's library", "serving.library_missing")


@dataclass(frozen=True)
class Limits:
    """What one engine holds at most. Tokens and requests; blocks of KV.

    `max_preemptions` is the ageing bound: a request that lost its blocks that
    often is chosen again only when every other candidate did too.
    """

    block_count: int
    block_tokens: int = 16
    max_requests: int = 1024
    max_running: int = 64
    max_batched_tokens: int = 512
    max_model_tokens: int = 8192
    max_sample_rows: int = 64
    prefix_sharing: bool = True
    max_preemptions: int = 3

    @property
    def blocks_per_request(self) -> int:
        """Width of a block table."""
        return -(-self.max_model_tokens // self.block_tokens)


@dataclass(frozen=True)
class Event:
    """One input of the scheduler. Use the constructors below."""

    kind: int
    request: int = 0
    step: int = 0
    tokens: NDArray[np.int32] | None = None
    max_new_tokens: int = 0
    priority: int = 0
    flags: int = 0
    domain: tuple[int, int] = (0, 0)

    @classmethod
    def add(
        cls,
        request: int,
        tokens: Sequence[int] | NDArray[np.int32],
        max_new_tokens: int,
        *,
        priority: int = 0,
        domain: tuple[int, int] = (0, 0),
        score: bool = False,
    ) -> Event:
        """A request arrives with its prompt; lower `priority` goes first."""
        ids = np.ascontiguousarray(tokens, np.int32)
        flags = SCORE if score else 0
        return cls(ADD, request, 0, ids, max_new_tokens, priority, flags, domain)

    @classmethod
    def end(cls, request: int) -> Event:
        """A request is finished or aborted: its blocks return."""
        return cls(END, request)

    @classmethod
    def step_done(cls, step: int, tokens: NDArray[np.int32]) -> Event:
        """The planned step ran; `tokens` has one id a sample row, -1 for none."""
        return cls(STEP_DONE, 0, step, np.ascontiguousarray(tokens, np.int32))

    @classmethod
    def step_lost(cls, step: int) -> Event:
        """The planned step failed; its rows will be planned again."""
        return cls(STEP_LOST, 0, step)


@dataclass(frozen=True)
class Stats:
    """Counters since creation, and the state now. Blocks, requests, tokens."""

    waiting: int
    running: int
    blocks_clean: int
    blocks_cached: int
    blocks_referenced: int
    blocks_fenced: int
    steps: int
    preemptions: int
    evictions: int
    prefix_queried: int
    prefix_hit: int
    added: int
    ended: int
    prefix_hashes: int


class PlanArrays:
    """The arrays that a plan is written to; int32 unless said.

    Shapes with R = max_running, T = max_batched_tokens, S = max_sample_rows,
    B = blocks_per_request: `row_request` u64 [R], `row_first`, `row_tokens`,
    `row_cached` u32 [R], `query_start` [R+1], `context_length` [R],
    `block_table` [R, B], `tokens`, `positions`, `kv_slots` [T], `sample_token`
    [S], `sample_row` u32 [S], `preempted` u64 [R].
    """

    def __init__(self, limits: Limits, given: dict[str, NDArray[Any]] | None = None) -> None:
        """Allocate the arrays; those in `given` (device memory) are used as they are."""
        rows, tokens, samples = (
            limits.max_running,
            limits.max_batched_tokens,
            limits.max_sample_rows,
        )
        shapes: dict[str, tuple[tuple[int, ...], Any]] = {
            "row_request": ((rows,), np.uint64),
            "row_first": ((rows,), np.uint32),
            "row_tokens": ((rows,), np.uint32),
            "row_cached": ((rows,), np.uint32),
            "query_start": ((rows + 1,), np.int32),
            "context_length": ((rows,), np.int32),
            "block_table": ((rows, limits.blocks_per_request), np.int32),
            "tokens": ((tokens,), np.int32),
            "positions": ((tokens,), np.int32),
            "kv_slots": ((tokens,), np.int32),
            "sample_token": ((samples,), np.int32),
            "sample_row": ((samples,), np.uint32),
            "preempted": ((rows,), np.uint64),
        }
        self.arrays: dict[str, NDArray[Any]] = {}
        for name, (shape, dtype) in shapes.items():
            array = (given or {}).get(name)
            if array is None:
                array = np.zeros(shape, dtype)
            if array.shape != shape or array.dtype != dtype or not array.flags.c_contiguous:
                raise ValueError(f"plan array {name} must be {dtype} {shape}, dense")
            self.arrays[name] = array

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.arrays[name]


@dataclass(frozen=True)
class Plan:
    """One step to run; `step` 0 tokens means there is nothing to do now."""

    step: int
    row_count: int
    token_count: int
    sample_count: int
    preempted: tuple[int, ...]
    arrays: PlanArrays


class Scheduler:
    """Owns one native state. Not thread-safe: one thread at a time."""

    def __init__(self, limits: Limits, *, hash_key: tuple[int, int] | None = None) -> None:
        """Create the state. `hash_key` defaults to 128 random bits."""
        self._ffi, self._native = _library()
        ffi = self._ffi
        key = hash_key or (secrets.randbits(64), secrets.randbits(64))
        config = ffi.new("bp_serving_config *")
        config.struct_size = ffi.sizeof("bp_serving_config")
        for field in fields(limits):
            setattr(config, field.name, int(getattr(limits, field.name)))
        config.hash_key = key
        handle = ffi.new("bp_serving **")
        self._check(self._native.bp_serving_create(config, handle))
        self._state = ffi.gc(handle[0], self._native.bp_serving_destroy)
        self.limits = limits
        self._out: dict[int, Any] = {}

    def apply(self, events: Sequence[Event], *, now_ns: int = 0) -> None:
        """Apply `events` in order. Raises `SchedulerError` at the first bad one."""
        ffi = self._ffi
        native = ffi.new("bp_serving_event[]", max(len(events), 1))
        keep = []
        for i, event in enumerate(events):
            e = native[i]
            e.kind, e.request, e.step = event.kind, event.request, event.step
            e.priority, e.max_new_tokens, e.flags = (
                event.priority,
                event.max_new_tokens,
                event.flags,
            )
            e.domain = event.domain
            if event.tokens is not None:
                pointer = ffi.from_buffer("int32_t[]", event.tokens)
                keep.append(pointer)
                e.tokens, e.token_count = pointer, len(event.tokens)
        self._check(
            self._native.bp_serving_apply(self._state, native, len(events), now_ns, ffi.NULL)
        )

    def plan(self, arrays: PlanArrays) -> Plan:
        """Plan the next step into `arrays`. Raises while a step is in flight."""
        out = self._out.get(id(arrays))
        if out is None:
            out = self._out[id(arrays)] = self._bind(arrays)
        struct = out[0]
        self._check(self._native.bp_serving_plan(self._state, struct))
        lost = tuple(int(r) for r in arrays["preempted"][: struct.preempted_count])
        return Plan(
            struct.step, struct.row_count, struct.token_count, struct.sample_count, lost, arrays
        )

    def _bind(self, arrays: PlanArrays) -> tuple[Any, PlanArrays, list[Any]]:
        ffi = self._ffi
        out = ffi.new("bp_serving_plan_out *")
        out.struct_size = ffi.sizeof("bp_serving_plan_out")
        out.table_stride = self.limits.blocks_per_request
        ctype = {"int32": "int32_t[]", "uint32": "uint32_t[]", "uint64": "uint64_t[]"}
        keep = []
        for name, array in arrays.arrays.items():
            pointer = ffi.from_buffer(ctype[str(array.dtype)], array, require_writable=True)
            keep.append(pointer)
            setattr(out, name, pointer)
        return out, arrays, keep

    def stats(self) -> Stats:
        """Counters and the state now."""
        out = self._ffi.new("bp_serving_stats *")
        out.struct_size = self._ffi.sizeof("bp_serving_stats")
        self._check(self._native.bp_serving_get_stats(self._state, out))
        return Stats(**{f.name: getattr(out, f.name) for f in fields(Stats)})

    def check(self) -> None:
        """Walk every invariant of the state; raises `SchedulerError` naming the first broken."""
        self._check(self._native.bp_serving_check(self._state))

    def _check(self, status: int) -> None:
        if status < 0:
            text = self._ffi.string(self._native.bp_serving_last_error()).decode("utf-8", "replace")
            raise SchedulerError(text, status=status)


def siphash128(key: tuple[int, int], data: bytes) -> bytes:
    """SipHash-2-4 with a 128-bit result, little-endian, by the native core."""
    ffi, native = _library()
    out = ffi.new("uint64_t[2]")
    native.bp_serving_siphash(ffi.new("uint64_t[2]", key), ffi.from_buffer(data), len(data), out)
    return bytes(ffi.buffer(out))
