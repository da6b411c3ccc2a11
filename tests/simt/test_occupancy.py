"""Occupancy against NVIDIA's header, and what the command shows of it."""

from __future__ import annotations

import json
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.simt.golden import occupancy as golden

from bedplate.simt.errors import LaunchInvalid
from bedplate.simt.occupancy import ARCHITECTURES, Usage, architecture, by_block_size, occupancy

EXPECTED = json.loads(golden.GOLDEN.read_text())
ARCHITECTURE = pytest.mark.parametrize("name", ARCHITECTURES)


def our_digest(name: str, count: int) -> str:
    """Of our answers to the first launches."""
    sm = ARCHITECTURES[name]
    found = (golden.ours(sm, launch) for launch in islice(golden.launches(sm), count))
    return golden.digest(map(golden.line, found))


@ARCHITECTURE
def test_every_limit_is_the_headers(name: str) -> None:
    """2,000 random launches of each architecture."""
    assert our_digest(name, golden.FEW) == EXPECTED[name]["few"]


@pytest.mark.soak
@ARCHITECTURE
def test_every_limit_is_the_headers_at_length(name: str) -> None:
    """100,000 of each."""
    assert our_digest(name, golden.ALL) == EXPECTED[name]["all"]


def test_92_registers_and_224_threads_leave_two_blocks() -> None:
    """kokkos PR #5739: on sm_80 seven warps of 92 registers."""
    found = occupancy("sm_80", Usage(threads=224, registers=92))
    assert (found.blocks, found.limiters, found.warps) == (2, ("registers",), 14)
    assert found.share == 14 / 64
    assert found.registers == 7 * 3072


@given(
    name=st.sampled_from(sorted(ARCHITECTURES)),
    threads=st.integers(1, 1024),
    registers=st.integers(0, 256),
    shared=st.integers(0, 49_152),
    more=st.integers(0, 4_096),
)
def test_more_of_anything_never_helps(
    name: str, threads: int, registers: int, shared: int, more: int
) -> None:
    """And what is resident fits the SM; the limiters are what stands at the least."""
    sm, usage = ARCHITECTURES[name], Usage(threads, registers, shared)
    found = occupancy(sm, usage, threads_per_sm=1536)
    assert occupancy(sm, Usage(threads, registers, shared + more), threads_per_sm=1536).blocks <= (
        found.blocks
    )
    assert occupancy(sm, Usage(threads, registers + 1, shared), threads_per_sm=1536).blocks <= (
        found.blocks
    )
    assert found.warps * 32 <= 1536
    assert found.blocks * found.registers <= sm.registers
    assert found.blocks * found.shared <= sm.shared
    assert found.limiters
    assert all(found.limits[name] == found.blocks for name in found.limiters)


@pytest.mark.parametrize("name", ["sm_90", "sm_90a", "9.0", "SM_90", "compute_90"])
def test_an_architecture_has_several_names(name: str) -> None:
    """As nvcc, ptxas and the guide write it."""
    assert architecture(name) is ARCHITECTURES["sm_90"]


@pytest.mark.parametrize(
    ("name", "usage", "carveout", "words"),
    [
        ("sm_91", Usage(32, 8), None, "'sm_91' is not known"),
        ("sm_90", Usage(0, 8), None, "0 threads"),
        ("sm_90", Usage(32, -1), None, "-1 registers"),
        ("sm_90", Usage(32, 8, static_shared=-5), None, "-5 bytes of static"),
        ("sm_90", Usage(32, 8, dynamic_shared=-6), None, "-6 bytes of dynamic"),
        ("sm_90", Usage(32, 8, barriers=-2), None, "-2 barriers"),
        ("sm_100", Usage(32, 8, virtual=-3), None, "-3 virtual"),
        ("sm_90", Usage(32, 8), 101, "101 %"),
        ("sm_110", Usage(32, 8), None, "differ in how many threads"),
    ],
)
def test_what_no_device_has_is_refused(
    name: str, usage: Usage, carveout: int | None, words: str
) -> None:
    """With the value."""
    with pytest.raises(LaunchInvalid, match=words):
        occupancy(name, usage, carveout_percent=carveout)


def test_block_sizes_are_whole_warps() -> None:
    """32 of them, each as asked alone."""
    found = list(by_block_size("sm_90", Usage(threads=1, registers=64)))
    assert [one.usage.threads for one in found] == list(range(32, 1056, 32))
    assert found[7] == occupancy("sm_90", Usage(threads=256, registers=64))
