"""Host and device without a common memory: uploads and downloads by pinned copies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from bedplate.hal.api import Device, DType, InvalidArgument, Range, Tensor, Unsupported
from bedplate.hal.device import read_info
from bedplate.hal.open import load
from bedplate.hal.suite.registry import all_cases
from bedplate.hal.suite.subject import Subject
from bedplate.hal.suite.worker import run_case


def opened(*without: str) -> Device:
    """A cpu device that may not use some of what it can."""
    backend = load("cpu")
    info = read_info(backend, 0)
    return Device(backend, replace(info, capabilities=info.capabilities - set(without)))


@pytest.fixture
def blind() -> Iterator[Device]:
    """A cpu device whose memory the host is not shown."""
    with opened("host_visible") as device:
        yield device


def test_what_goes_up_comes_down(blind: Device) -> None:
    """Any dtype and shape, and no view of it."""
    for array in (np.arange(12, dtype="f4").reshape(3, 4), np.float32(3.5), np.ones((2, 0), "i8")):
        tensor = blind.upload(np.asarray(array))
        assert np.array_equal(blind.download(tensor), array)
    with pytest.raises(Unsupported, match="cannot see"):
        blind.upload(np.ones(3, "f4")).view()


def test_a_strided_tensor_leaves_what_lies_between(blind: Device) -> None:
    """Only its own elements are written."""
    whole = blind.upload(np.zeros(12, "u4"))
    column = Tensor(whole.buffer, 4, (3,), "u4", (4,))
    blind.write(column, np.array([1, 2, 3], "u4"))
    assert blind.download(whole).tolist() == [0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0]
    assert blind.download(column).tolist() == [1, 2, 3]


def test_blocks_and_bits_cross_as_they_are(blind: Device) -> None:
    """bf16 as its bits, a block format as its bytes."""
    bits = np.array([0x3F80, 0x4000], "u2")
    half = blind.empty((2,), DType.BF16)
    blind.write(half, bits)
    assert blind.download(half).tolist() == bits.tolist()
    rows = np.arange(2 * 34, dtype="u1").reshape(2, 34)
    blocks = blind.empty((2, 32), DType.Q8_0)
    blind.write(blocks, rows)
    assert np.array_equal(blind.download(blocks), rows)


def test_bytes_must_fit_their_range(blind: Device) -> None:
    """More or fewer are refused, and nothing is written."""
    buffer = blind.upload(np.zeros(8, "u1")).buffer
    with pytest.raises(InvalidArgument, match="9 bytes for a range of 8"):
        blind.write_bytes(Range(buffer, 0, 8), np.ones(9, "u1"))
    assert blind.read_bytes(Range(buffer, 0, 8)).tolist() == [0] * 8


def test_without_either_way_it_says_so() -> None:
    """Neither host_visible nor pin_host."""
    with opened("host_visible", "pin_host") as device:
        tensor = device.empty((2,), "f4")
        with pytest.raises(Unsupported, match="neither shows its memory to the host nor pins"):
            device.write(tensor, np.ones(2, "f4"))


@pytest.mark.parametrize(
    "name",
    [
        "core.the_host_can_reach_its_memory",
        "queue.copies_move_every_byte",
        "module_native.every_block_runs_once",
    ],
)
def test_cases_do_not_need_host_visible_memory(name: str) -> None:
    """The suite reaches memory by pinned copies where it must."""
    subject = Subject(load("cpu"), 0)
    for name_of_set in ("claims", "capabilities"):
        seen = getattr(subject.info, name_of_set) - {"host_visible"}
        object.__setattr__(subject.info, name_of_set, seen)
    try:
        verdict, reason = run_case(all_cases()[name], subject)
    finally:
        subject.close()
    assert verdict == "pass", reason
