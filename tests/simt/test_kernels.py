"""Real compiler output for three generations: both engines, and what numpy says of results."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tests.simt.conftest import KERNELS

from bedplate.simt.api import LaunchFailed, LoadedModule, Machine, PtxUnsupported, verify

DRAW = np.random.default_rng(11)


@pytest.fixture(
    params=[
        "sm_90a",
        *(pytest.param(arch, marks=pytest.mark.soak) for arch in ("sm_75", "sm_100a")),
    ]
)
def second(request: pytest.FixtureRequest) -> Iterator[LoadedModule]:
    """The kernels of `second.cu` as the compiler wrote them for an architecture."""
    with Machine(threads=1, memory=1 << 24) as machine:
        text = (KERNELS / f"second.{request.param}.ptx").read_text()
        yield machine.load(text, f"second.{request.param}.ptx")


def test_calls(second: LoadedModule) -> None:
    """Two device functions, one called twice, one that walks a local array of its caller."""
    x = DRAW.random(40, np.float32)
    inputs = second.machine.array(x)
    y = second.machine.array(np.zeros(40, np.float32))
    means = second.machine.array(np.zeros(40, np.float64))
    verify(second["calls"], 2, 32, (inputs, y, means, np.int32(40)))
    assert np.allclose(y.numpy(), x + (1 - x) / 4 + 1 + (x - 1) / 2, rtol=1e-6)
    assert np.allclose(means.numpy(), x.astype(np.float64) * 2.5, rtol=1e-6)


def test_lock_and_assertion(second: LoadedModule) -> None:
    """Every thread counts once; a failed assertion names its thread and line."""
    cells = second.machine.array(np.zeros(2, np.uint32))
    second["lock"][2, 48](cells)
    assert cells.numpy().tolist() == [0, 96]
    values = np.ones(64, np.int32)
    values[37] = -1
    with pytest.raises(LaunchFailed, match=r"trapped.*thread \(37, 0, 0\).*second.cu"):
        verify(second["checked"], 1, 64, (second.machine.array(values),))


def test_votes_and_wide_numbers(second: LoadedModule) -> None:
    """Shuffles, ballots, a counting barrier; products and sums of 128 bits."""
    x = DRAW.integers(0, 6, 96).astype(np.uint32)
    out = second.machine.array(np.zeros((96, 3), np.uint32))
    verify(second["votes"], 1, 96, (second.machine.array(x), out))
    rows = x.reshape(3, 32)
    assert (out.numpy()[:, 0] == rows.sum(axis=1).repeat(32)).all()
    alike = (rows == rows[:, :1]).sum(axis=1).repeat(32)
    zeros = np.array([32 - int(v | 1).bit_length() for v in x])
    assert (out.numpy()[:, 1] == alike + (x & 1) + zeros).all()
    assert (out.numpy()[:, 2] == (x & 1).sum()).all()
    pairs = DRAW.integers(0, 1 << 63, (32, 2)).astype(np.uint64) * np.uint64(2) + np.uint64(1)
    result = second.machine.array(np.zeros((32, 2), np.uint64))
    verify(second["wide"], 1, 32, (second.machine.array(pairs), result))
    for (a, b), (low, high) in zip(pairs.tolist(), result.numpy().tolist(), strict=True):
        assert (high << 64 | low) == (a * b + (a << 64 | b)) % (1 << 128)


def test_softmax_histogram_and_halves(second: LoadedModule) -> None:
    """Reductions in shared memory, atomics in it, and conversions."""
    x = DRAW.standard_normal((2, 64)).astype(np.float32)
    y = second.machine.array(np.zeros((2, 64), np.float32))
    verify(second["softmax"], 2, 64, (second.machine.array(x), y))
    power = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    assert np.allclose(y.numpy(), power / power.sum(axis=1, keepdims=True), rtol=1e-6)
    data = DRAW.integers(0, 256, 300).astype(np.uint8)
    bins = second.machine.array(np.zeros(256, np.uint32))
    verify(second["histogram"], 2, 64, (second.machine.array(data), bins, np.int32(300)))
    assert (bins.numpy() == 2 * np.bincount(data, minlength=256)).all()
    values = (DRAW.standard_normal(32) * 50).astype(np.float32)
    shorts = second.machine.array(np.zeros(32, np.uint16))
    wide = second.machine.array(np.zeros(32, np.float64))
    verify(second["halves"], 1, 32, (second.machine.array(values), shorts, wide))
    cut = values.view(np.uint32).astype(np.uint64)
    rounded = (cut + 0x7FFF + (cut >> 16 & 1)) >> 16
    assert (shorts.numpy() == rounded).all()
    halves = (rounded << 16).astype(np.uint32).view(np.float32)
    root = np.sqrt(values.astype(np.float64) ** 2 + 0.25)
    assert np.array_equal(wide.numpy(), np.floor(root / 3) + halves)


def test_matrices(second: LoadedModule) -> None:
    """wmma of 16 by 16, and copies, ldmatrix and mma where there are such."""
    a, b = (DRAW.standard_normal((16, 16)).astype(np.float16) for _ in range(2))
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    left, right = second.machine.array(a), second.machine.array(b)
    c = second.machine.array(np.zeros((16, 16), np.float32))
    verify(second["matrix"], 1, 32, (left, right, c))
    assert np.allclose(c.numpy(), wide_a @ wide_b.T, rtol=1e-6, atol=1e-6)
    if "tensor" not in list(second):
        assert second.module.target == "sm_75"
        return
    d = second.machine.array(np.zeros(160, np.float32))
    verify(second["tensor"], 1, 32, (left, right, d))
    product = wide_a @ wide_b.ravel()[:128].reshape(16, 8)
    assert np.allclose(d.numpy()[:128].reshape(16, 8), product, rtol=1e-6, atol=1e-6)
    assert (d.numpy()[128:] == 31 * 16).all()


def test_recursion_is_refused(machine: Machine) -> None:
    """By the place of the call that closes the circle."""
    text = """.version 9.0
.target sm_90
.address_size 64
.func f()
{
call.uni f;
ret;
}
.visible .entry k()
{
call.uni f;
ret;
}"""
    with pytest.raises(PtxUnsupported, match=r":6:1: f calls itself"):
        machine.load(text)
