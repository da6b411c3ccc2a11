"""Three small files, one call path: the same kernels on every backend that is here.

A device takes native code, PTX or OpenCL C; nothing but the name of the file
differs. Sums are held to the bound of recursive summation, gamma(n) times the
sum of magnitudes (Higham, Accuracy and Stability, 3.1 and 3.5), which holds in
any order and with or without fused multiply-add.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.hal.opencl import PLATFORMS, platform_device

from bedplate.core.paths import native_library_dir
from bedplate.hal.api import F32, U32, Batch, Device, HalError, Module, Queue, open_device

Array = NDArray[np.float32]
FOLDER = native_library_dir() / "examples"
FILES = {"native": "arithmetic.so", "ptx": "arithmetic.ptx", "opencl_c": "arithmetic.cl"}
THREADS = 64
UNIT = 2.0**-24
"""Unit roundoff of binary32."""


@pytest.fixture(params=["cpu", "simt", "cuda", *PLATFORMS])
def device(request: pytest.FixtureRequest) -> Iterator[Device]:
    """A device of each backend and platform; NOT RUN where it is missing."""
    name = request.param
    spec = platform_device(name).id if name in PLATFORMS else name
    try:
        opened = open_device(spec, trust_claims=True)
    except HalError as error:
        pytest.skip(f"NOT RUN: {error.message}")
    with opened:
        yield opened


@pytest.fixture
def module(device: Device) -> Module:
    """The kernels as the first kind of code that the device takes."""
    for kind, file in FILES.items():
        if f"module_{kind}" not in device.info.claims:
            continue
        if kind == "native":
            return device.load_native_module(FOLDER / file)
        return device.load_module(kind, (FOLDER / file).read_bytes(), file)
    raise AssertionError(f"{device.id} takes no code")


@pytest.fixture
def queue(device: Device) -> Iterator[Queue]:
    """A queue of that device."""
    with device.queue() as opened:
        yield opened


def numbers(seed: int, *shape: int) -> Array:
    """Normal numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype("f4")


def gamma(n: int) -> float:
    """The factor of n roundings."""
    return n * UNIT / (1 - n * UNIT)


@pytest.mark.parametrize("n", [1, 64, 1000])
def test_vectors_are_added_and_scaled(device: Device, module: Module, queue: Queue, n: int) -> None:
    """One rounding each, so bit for bit; the end of the last block is not touched."""
    x, y = numbers(1, n), numbers(2, n)
    total, scaled = (device.upload(np.full(n + 3, 7, "f4")) for _ in range(2))
    grid = (-(-n // THREADS),)
    batch, given = Batch(), (device.upload(x), device.upload(y))
    batch.launch(module.kernel("add"), grid, [total, *given, U32(n)], block=(THREADS,))
    arguments = [scaled, given[0], F32(0.3), U32(n)]
    batch.launch(module.kernel("scale"), grid, arguments, block=(THREADS,))
    queue.submit(batch)
    assert np.array_equal(queue.download(total), [*(x + y), 7, 7, 7])
    assert np.array_equal(queue.download(scaled), [*(np.float32(0.3) * x), 7, 7, 7])


@pytest.mark.parametrize("n", [1, 64, 1000])
def test_a_dot_product_is_within_its_bound(
    device: Device, module: Module, queue: Queue, n: int
) -> None:
    """Each block's part, against double precision."""
    x, y, blocks = numbers(3, n), numbers(4, n), -(-n // THREADS)
    out, batch = device.upload(np.full(blocks, np.nan, "f4")), Batch()
    arguments = [out, device.upload(x), device.upload(y), U32(n)]
    batch.launch(module.kernel("dot_blocks"), (blocks,), arguments, block=(THREADS,))
    queue.submit(batch)
    terms = np.zeros(blocks * THREADS)
    terms[:n] = x.astype("f8") * y
    wanted, bound = (part.reshape(blocks, THREADS).sum(1) for part in (terms, abs(terms)))
    assert (abs(queue.download(out) - wanted) <= gamma(THREADS) * bound).all()


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 7), (33, 64, 65)])
def test_a_product_is_within_its_bound(
    device: Device, module: Module, queue: Queue, shape: tuple[int, int, int]
) -> None:
    """Rows by inner by columns, against double precision."""
    rows, inner, columns = shape
    a, b = numbers(5, rows, inner), numbers(6, inner, columns)
    out, batch = device.upload(np.full((rows, columns), np.nan, "f4")), Batch()
    sizes = [U32(rows), U32(inner), U32(columns)]
    arguments = [out, device.upload(a), device.upload(b), *sizes]
    batch.launch(module.kernel("product"), (rows,), arguments, block=(THREADS,))
    queue.submit(batch)
    wanted, bound = a.astype("f8") @ b, abs(a.astype("f8")) @ abs(b)
    assert (abs(queue.download(out) - wanted) <= gamma(inner) * bound).all()
