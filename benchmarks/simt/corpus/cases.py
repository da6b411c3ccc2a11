"""What each kernel of the corpus is launched with, and what numpy says of its results.

A case is found by tool and kernel. Its `expected` maps the index of an argument to what it
must hold after the launch, as near as `rtol` of the value and `atol`; whole numbers are
exact. Draws are seeded, and small, so that both engines run all of them in a minute.
"""

# Cases are named for their kernels, which say what they do.
# ruff: noqa: D103

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Values = tuple[Any, ...]


@dataclass(frozen=True)
class Case:
    """One launch; arrays among `values` go to the machine, and numbers are scalars."""

    grid: Any
    block: Any
    values: Values
    expected: dict[int, Any]
    rtol: float = 0.0
    atol: float = 0.0
    shared: int = 0
    extra: Values = field(default=())
    """What a tool puts behind a kernel's own arguments."""


CASES: dict[tuple[str, str], Callable[[], Case]] = {}


def case(*tools: str) -> Callable[[Callable[[], Case]], Callable[[], Case]]:
    """Register a case for the kernel of the function's name."""

    def keep(make: Callable[[], Case]) -> Callable[[], Case]:
        for tool in tools:
            CASES[tool, make.__name__.removeprefix(f"{tool}_")] = make
        return make

    return keep


def _draw() -> np.random.Generator:
    return np.random.default_rng(23)


def _floats(*shape: int) -> Any:
    return _draw().standard_normal(shape).astype(np.float32)


def _zeros(shape: Any, dtype: Any = np.float32) -> Any:
    return np.zeros(shape, dtype)


def _int(value: int) -> Any:
    return np.int32(value)


@case("nvcc", "clang")
def vecadd() -> Case:
    a, b = _floats(2, 300)
    return Case(3, 128, (a, b, _zeros(300), _int(300)), {2: a + b})


@case("nvcc", "clang")
def saxpy() -> Case:
    x, y = _floats(2, 500)
    return Case(2, 96, (np.float32(1.5), x, y, _int(500)), {2: np.float32(1.5) * x + y}, 1e-6, 1e-6)


@case("nvcc", "clang")
def reduce() -> Case:
    x = _draw().integers(-9, 9, 1000).astype(np.float32)
    return Case(2, 128, (x, _zeros(1), _int(1000)), {1: [x.sum()]})


@case("nvcc")
def scan() -> Case:
    x = _draw().integers(-99, 99, 250).astype(np.int32)
    return Case(1, 256, (x, _zeros(250, np.int32), _int(250)), {1: x.cumsum()}, shared=1024)


@case("nvcc")
def histogram() -> Case:
    x = _draw().integers(0, 256, 2000).astype(np.uint8)
    bins = np.bincount(x, minlength=256)
    return Case(2, 256, (x, _zeros(256, np.uint32), _int(2000)), {1: bins})


@case("nvcc")
def transpose() -> Case:
    x = _floats(40, 50)
    return Case((2, 2), (32, 8), (x, _zeros((50, 40)), _int(50), _int(40)), {1: x.T})


@case("nvcc")
def stencil() -> Case:
    x = _floats(300)
    out = np.convolve(x, np.float32([0.0625, 0.25, 0.375, 0.25, 0.0625]), "same")
    return Case(3, 128, (x, _zeros(300), _int(300)), {1: out}, 1e-5, 1e-6)


@case("nvcc", "clang")
def matmul() -> Case:
    a, b = _floats(2, 48, 48)
    values = (a, b, _zeros((48, 48)), _int(48))
    return Case((3, 3), (16, 16), values, {2: a @ b}, 1e-4, 1e-5)


@case("nvcc")
def mma() -> Case:
    a, b = _floats(16, 64).astype(np.float16), _floats(8, 64).astype(np.float16)
    out = a.astype(float) @ b.astype(float).T
    return Case(1, 32, (a, b, _zeros((16, 8)), _int(64)), {2: out}, 1e-5, 1e-5)


def _softmax(x: Any) -> Any:
    power = np.exp(x.astype(float) - x.max(1, keepdims=True))
    return power / power.sum(1, keepdims=True)


@case("nvcc")
def softmax() -> Case:
    x = _floats(2, 300)
    return Case(2, 128, (x, _zeros(x.shape), _int(300)), {1: _softmax(x)}, 1e-5)


@case("nvcc")
def rmsnorm() -> Case:
    x, w = _floats(2, 256).astype(np.float16), _floats(256).astype(np.float16)
    wide = x.astype(float)
    out = wide / np.sqrt((wide**2).mean(1, keepdims=True) + 1e-5) * w
    values = (x, w, _zeros(x.shape, np.float16), _int(256), np.float32(1e-5))
    return Case(2, 64, values, {2: out}, 1e-3, 1e-3)


@case("nvcc")
def gelu() -> Case:
    x = _floats(300) * 3
    wide = x.astype(float)
    out = 0.5 * wide * (1 + np.tanh(0.7978845608 * (wide + 0.044715 * wide**3)))
    return Case(3, 128, (x, _zeros(300), _int(300)), {1: out}, 1e-4, 1e-6)


@case("nvcc")
def rope() -> Case:
    x = _floats(20, 16, 2)
    angle = np.arange(20)[:, None] * 10000.0 ** (-np.arange(16) / 16)
    a, b = x[..., 0].astype(float), x[..., 1].astype(float)
    out = np.stack((a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)))
    return Case(3, 128, (x, _int(16), _int(20)), {0: np.moveaxis(out, 0, -1)}, 1e-4, 1e-4)


@case("nvcc")
def spmv() -> Case:
    draw = _draw()
    dense = draw.standard_normal((20, 90)) * (draw.random((20, 90)) < 0.4)
    x = draw.standard_normal(90)
    kept = dense != 0
    starts = np.concatenate(([0], kept.sum(1).cumsum())).astype(np.int32)
    columns = np.nonzero(kept)[1].astype(np.int32)
    values = (starts, columns, dense[kept], x, _zeros(20, float), _int(20))
    return Case(5, 128, values, {4: dense @ x}, 1e-12, 1e-12)


def _mix(x: Any) -> Any:
    x = x ^ x >> np.uint32(16)
    x = x * np.uint32(0x7FEB352D)
    x = x ^ x >> np.uint32(15)
    x = x * np.uint32(0x846CA68B)
    return x ^ x >> np.uint32(16)


@case("nvcc")
def montecarlo() -> Case:
    state = _mix(np.arange(1, 129, dtype=np.uint32))
    hits = 0
    for _ in range(20):
        x, y = (_mix(state + np.uint32(i)) >> np.uint32(8) for i in (0, 1))
        state = state + np.uint32(2)
        a, b = (v.astype(float) * 2.0**-24 for v in (x, y))
        hits += int((a * a + b * b < 1).sum())
    return Case(2, 64, (_zeros(1, np.uint64), _int(20)), {0: [hits]})


@case("clang")
def ring() -> Case:
    x = _draw().integers(-99, 99, (2, 128)).astype(np.int32)
    out = sum(np.roll(x, -i, 1) * (i + 1) for i in range(7))
    return Case(2, 128, (x, _zeros(x.shape, np.int32), _int(7)), {1: out})


@case("clang")
def collatz() -> Case:
    x = _draw().integers(1, 1 << 40, 100).astype(np.uint64)
    steps = []
    for first in x.tolist():
        number, count = first, 0
        while number != 1:
            number, count = (3 * number + 1 if number & 1 else number // 2), count + 1
        steps.append(count)
    return Case(2, 64, (x, _zeros(100, np.uint32), _int(100)), {1: steps})


@case("clang")
def norms() -> Case:
    x = _draw().standard_normal((50, 3))
    out = np.sqrt((x**2).sum(1)) / np.arange(1, 51)
    return Case(1, 64, (x, _zeros(50, float), _int(50)), {1: out}, 1e-14)


@case("clang")
def grey() -> Case:
    x = _draw().integers(0, 256, (99, 4)).astype(np.uint8)
    out = x[:, :3].astype(int) @ [77, 150, 29] >> 8
    return Case(1, 128, (x, _zeros(99, np.uint8), _int(99)), {1: out})


@case("clang")
def sort() -> Case:
    x = _draw().integers(-30000, 30000, (64, 9)).astype(np.int16)
    return Case(1, 64, (x,), {0: np.sort(x, 1)})


@case("clang")
def crc() -> Case:
    x = _draw().integers(0, 1 << 32, 100).astype(np.uint32)
    out = []
    for number in x.tolist():
        v = zlib.crc32(number.to_bytes(4, "little"))
        turned = (v << 7 | v >> 25) & 0xFFFFFFFF
        mirrored = int(f"{v:032b}"[::-1], 2)
        out.append(
            mirrored ^ v.bit_count() ^ turned ^ int.from_bytes(v.to_bytes(4, "big"), "little")
        )
    return Case(1, 128, (x, _zeros(100, np.uint32), _int(100)), {1: out})


@dataclass(frozen=True)
class Array:
    """An array as Numba hands it over: nulls, counts, data, shape, strides."""

    data: Any


@case("numba")
def numba_vecadd() -> Case:
    x, y = _floats(2, 300)
    return Case(3, 128, (Array(x), Array(y), Array(_zeros(300))), {2: x + y})


@case("numba")
def numba_reduce() -> Case:
    x = _draw().integers(-9, 9, 200).astype(np.float32)
    return Case(2, 128, (Array(x), Array(_zeros(1))), {1: [x.sum()]})


@case("numba")
def numba_matmul() -> Case:
    a, b = _floats(20, 30), _floats(30, 25)
    return Case(
        (3, 4), (8, 8), (Array(a), Array(b), Array(_zeros((20, 25)))), {2: a @ b}, 1e-4, 1e-5
    )


@case("numba")
def mandelbrot() -> Case:
    out = []
    for i in range(1024):
        c = complex(-2 + 3 * (i % 32) / 32, -1 + 2 * (i // 32) / 32)
        z, n = 0j, 0
        while n < 50 and z.real * z.real + z.imag * z.imag < 4:
            z, n = z * z + c, n + 1
        out.append(n)
    return Case(8, 128, (Array(_zeros(1024, np.int32)), _int(50)), {0: out})


@case("numba")
def warp_sum() -> Case:
    x = _draw().integers(-9, 9, 128).astype(np.float32)
    return Case(2, 64, (Array(x), Array(_zeros(4))), {1: x.reshape(4, 32).sum(1)})


@case("numba")
def blackscholes() -> Case:
    draw = _draw()
    s, k, t = draw.uniform(10, 50, 64), draw.uniform(10, 50, 64), draw.uniform(0.2, 2, 64)
    root = 0.3 * np.sqrt(t)
    d1 = (np.log(s / k) + (0.02 + 0.045) * t) / root
    n1, n2 = (np.array([0.5 * math.erfc(-v * math.sqrt(0.5)) for v in d]) for d in (d1, d1 - root))
    out = s * n1 - k * np.exp(-0.02 * t) * n2
    return Case(1, 64, (*map(Array, (s, k, t)), Array(_zeros(64, float))), {3: out}, 1e-11, 1e-13)


@case("numba")
def numba_histogram() -> Case:
    x = _draw().integers(0, 1000, 500).astype(np.int32)
    out = np.bincount(x % 10, minlength=10)
    return Case(2, 64, (Array(x), Array(_zeros(10, np.int32))), {1: out})


@case("numba")
def most() -> Case:
    x = _draw().integers(-1000, 1000, 100).astype(np.int32)
    return Case(2, 64, (Array(x), Array(_zeros(1, np.int32))), {1: [x.max()]})


@case("numba")
def jacobi() -> Case:
    x = _draw().standard_normal((20, 24))
    out = np.zeros_like(x)
    out[1:-1, 1:-1] = 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])
    return Case((3, 3), (8, 8), (Array(x), Array(_zeros(x.shape, float))), {1: out}, 1e-14, 1e-15)


@case("numba")
def polynomial() -> Case:
    x = _draw().standard_normal(64)
    out = np.polyval([36, 25, 16, 9, 4, 1], x)
    return Case(1, 64, (Array(x), Array(_zeros(64, float))), {1: out}, 1e-12, 1e-12)


SCRATCH = (np.uint64(0), np.uint64(0))


@case("triton")
def triton_vecadd() -> Case:
    x, y = _floats(2, 700)
    return Case(3, 128, (x, y, _zeros(700), _int(700)), {2: x + y}, extra=SCRATCH)


@case("triton")
def triton_softmax() -> Case:
    x = _floats(3, 200)
    return Case(3, 128, (x, _zeros(x.shape), _int(200)), {1: _softmax(x)}, 1e-5, extra=SCRATCH)


@case("triton")
def layernorm() -> Case:
    x, w, b = _floats(3, 200).astype(np.float16), _floats(200), _floats(200)[::-1].copy()
    wide = x.astype(float)
    mean, spread = wide.mean(1, keepdims=True), wide.var(1, keepdims=True)
    out = (wide - mean) / np.sqrt(spread + 1e-5) * w + b
    values = (x, w, b, _zeros(x.shape, np.float16), _int(200), np.float32(1e-5))
    return Case(3, 128, values, {3: out}, 1e-3, 1e-3, extra=SCRATCH)


@case("triton")
def triton_matmul() -> Case:
    a, b = _floats(64, 128).astype(np.float16), _floats(128, 32).astype(np.float16)
    out = a.astype(float) @ b.astype(float)
    values = (a, b, _zeros((64, 32)), _int(128), _int(32))
    return Case((2, 1), 128, values, {2: out}, 1e-4, 1e-4, extra=SCRATCH)


def _philox(seed: int, count: int) -> Any:
    """The first word of Philox 4x32-10 for each number, as a float below 1 in Triton's way."""
    mask = 0xFFFFFFFF
    made = []
    for number in range(count):
        c, keys = [number, 0, 0, 0], [seed, 0]
        for _ in range(10):
            high = [0xCD9E8D57 * c[2], 0xD2511F53 * c[0]]
            c = [
                high[0] >> 32 ^ c[1] ^ keys[0], high[0] & mask,
                high[1] >> 32 ^ c[3] ^ keys[1], high[1] & mask,
            ]  # fmt: skip
            keys = [keys[0] + 0x9E3779B9 & mask, keys[1] + 0xBB67AE85 & mask]
        word = c[0] - (c[0] >> 31 << 32)
        made.append((word if word >= 0 else -word - 1) * 4.6566127342e-10)
    return np.array(made)


@case("triton")
def dropout() -> Case:
    x = _floats(500)
    out = np.where(_philox(7, 500) < 0.75, x / np.float32(0.75), 0)
    values = (x, _zeros(500), _int(500), _int(7), np.float32(0.75))
    return Case(2, 128, values, {1: out}, 1e-6, extra=SCRATCH)


@case("triton")
def total() -> Case:
    x = _draw().integers(-9, 9, 700).astype(np.float32)
    return Case(3, 128, (x, _zeros(1), _int(700)), {1: [x.sum()]}, extra=SCRATCH)


@case("triton")
def argmax() -> Case:
    x = _floats(3, 200)
    return Case(3, 128, (x, _zeros(3, np.int32), _int(200)), {1: x.argmax(1)}, extra=SCRATCH)


@case("triton")
def triton_histogram() -> Case:
    x = _draw().integers(0, 10, 500).astype(np.int32)
    out = np.bincount(x, minlength=10)
    return Case(2, 128, (x, _zeros(10, np.int32), _int(500)), {1: out}, extra=SCRATCH)


@case("triton")
def cumsum() -> Case:
    x = _draw().integers(-9, 9, (2, 256)).astype(np.float32)
    return Case(2, 128, (x, _zeros(x.shape)), {1: x.cumsum(1)}, extra=SCRATCH)


def _bf16(x: Any) -> Any:
    bits = x.astype(np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def _wide(x: Any) -> Any:
    return (x.astype(np.uint32) << 16).view(np.float32).astype(float)


@case("triton")
def silu_and_mul() -> Case:
    x, gate = (_bf16(v) for v in _floats(2, 500))
    out = _wide(gate) / (1 + np.exp(-_wide(gate))) * _wide(x)
    values = (x, gate, _zeros(500, np.uint16), _int(500))
    return Case(2, 128, values, {2: Bf16(out)}, 1e-2, 1e-30, extra=SCRATCH)


@dataclass(frozen=True)
class Bf16:
    """Expected values of an array of bf16, which numpy holds as u16."""

    values: Any

    @staticmethod
    def read(held: Any) -> Any:
        """What such an array holds."""
        return _wide(held)
