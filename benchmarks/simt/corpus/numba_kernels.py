"""Kernels for Numba, each compiled to a text of its own, without a GPU.

    python numba_kernels.py FOLDER

An array is seven parameters and more: two pointers of Numba's, the number of items, their
size, the data, then shape and strides.
"""

# Numba reads source, so these are written its way.
# mypy: ignore-errors
# ruff: noqa: D103, E741

from __future__ import annotations

import math
import re
import sys
from pathlib import Path

from numba import cuda, float32, float64, int32


def vecadd(x, y, z):
    i = cuda.grid(1)
    if i < z.size:
        z[i] = x[i] + y[i]


def reduce(x, out):
    cells = cuda.shared.array(128, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    cells[t] = x[i] if i < x.size else 0
    cuda.syncthreads()
    d = 64
    while d:
        if t < d:
            cells[t] += cells[t + d]
        cuda.syncthreads()
        d //= 2
    if t == 0:
        cuda.atomic.add(out, 0, cells[0])


def matmul(a, b, c):
    row, column = cuda.grid(2)
    if row < c.shape[0] and column < c.shape[1]:
        total = float32(0)
        for k in range(a.shape[1]):
            total += a[row, k] * b[k, column]
        c[row, column] = total


def mandelbrot(out, turns):
    i = cuda.grid(1)
    if i < out.size:
        c = complex(-2 + 3 * (i % 32) / 32, -1 + 2 * (i // 32) / 32)
        z = 0j
        n = 0
        while n < turns and z.real * z.real + z.imag * z.imag < 4:
            z = z * z + c
            n += 1
        out[i] = n


def warp_sum(x, out):
    i = cuda.grid(1)
    v = x[i]
    d = 16
    while d:
        v += cuda.shfl_down_sync(0xFFFFFFFF, v, d)
        d //= 2
    if i % 32 == 0:
        out[i // 32] = v


def blackscholes(s, k, t, call):
    i = cuda.grid(1)
    if i < s.size:
        root = 0.3 * math.sqrt(t[i])
        d1 = (math.log(s[i] / k[i]) + (0.02 + 0.045) * t[i]) / root
        d2 = d1 - root
        n1 = 0.5 * math.erfc(-d1 * math.sqrt(0.5))
        n2 = 0.5 * math.erfc(-d2 * math.sqrt(0.5))
        call[i] = s[i] * n1 - k[i] * math.exp(-0.02 * t[i]) * n2


def histogram(x, bins):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        cuda.atomic.add(bins, x[i] % bins.size, 1)


def most(x, out):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.max(out, 0, x[i])


def jacobi(x, y):
    i, j = cuda.grid(2)
    if 0 < i < x.shape[0] - 1 and 0 < j < x.shape[1] - 1:
        y[i, j] = 0.25 * (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1])


def polynomial(x, y):
    i = cuda.grid(1)
    own = cuda.local.array(6, float64)
    for k in range(6):
        own[k] = (k + 1) ** 2
    total = 0.0
    for k in range(5, -1, -1):
        total = total * x[i] + own[k]
    y[i] = total


F, D, I = float32[::1], float64[::1], int32[::1]
F2, D2 = float32[:, ::1], float64[:, ::1]
KERNELS = {
    vecadd: (F, F, F),
    reduce: (F, F),
    matmul: (F2, F2, F2),
    mandelbrot: (I, int32),
    warp_sum: (F, F),
    blackscholes: (D, D, D, D),
    histogram: (I, I),
    most: (I, I),
    jacobi: (D2, D2),
    polynomial: (D, D),
}


def main(folder: Path) -> None:
    """Write `numba.NAME.ARCH.ptx` of each kernel; the mangled name of a kernel is cut."""
    for capability in ((8, 0), (9, 0)):
        for function, types in KERNELS.items():
            text, _ = cuda.compile_ptx(function, types, cc=capability, abi="numba")
            name = function.__name__
            mangled = re.search(r"\.entry (\w+)\(", text)[1]
            text = text.replace(mangled, name)
            (folder / f"numba.{name}.sm_{capability[0]}{capability[1]}.ptx").write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
