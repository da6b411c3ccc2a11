"""The size rule of the ABI, as a property over arbitrary sizes and bytes.

The model is the sentence of the reference: sizes are multiples of 8, the
callee reads the smaller of both sizes, takes the missing tail as zero, and
refuses a non-zero unknown tail or reserved word with its offset.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedplate.hal import abi
from bedplate.hal.api import Device, open_device
from bedplate.hal.native import ffi, library

MOST = 65_536


@dataclass(frozen=True)
class Rule:
    """A struct, a filling that is accepted, and the call that reads it."""

    kind: str
    fields: dict[str, int]
    call: Callable[[Device, Any], int]


def _out() -> Any:
    return ffi.new("uint64_t *")


RULES = [
    Rule(
        "bp_memory_info",
        {"bytes": 64},
        lambda d, s: d.api.mem.create(d.handle, s, _out()),
    ),
    Rule("bp_queue_info", {}, lambda d, s: d.api.queue.create(d.handle, s, _out())),
    Rule("bp_batch", {"tag": 3}, lambda d, s: d.api.queue.submit(d.handle, d.queue().handle, s)),
]


def expected(kind: str, size: int, raw: bytes) -> tuple[int, int | None]:
    """Status and named offset by the model."""
    known, offsets = abi.LAYOUT[kind]
    if size < 8 or size > MOST or size % 8:
        return abi.BP_INVALID_ARGUMENT, None
    for at in range(known, size):
        if raw[at]:
            return abi.BP_INVALID_EXT, at
    for word in range(4):
        place = offsets["reserved"] + 8 * word
        if any(raw[place : min(place + 8, size)]):
            return abi.BP_INVALID_EXT, place
    return abi.BP_OK, None


@pytest.fixture(scope="module")
def device() -> Any:
    """One device for all examples."""
    with open_device("cpu", trust_claims=True) as opened:
        yield opened


@pytest.mark.parametrize("rule", RULES, ids=[rule.kind for rule in RULES])
@given(data=st.data())
def test_callees_keep_the_rule(device: Device, rule: Rule, data: st.DataObject) -> None:
    """Every size from 0 to far beyond, with single bytes set where the model looks."""
    known, offsets = abi.LAYOUT[rule.kind]
    size = data.draw(st.one_of(st.integers(0, known + 40), st.sampled_from([MOST, MOST + 1])))
    storage = ffi.new("char[]", max(size, known) + 8)
    pointer = ffi.cast(f"{rule.kind} *", storage)
    pointer.head.struct_version = 1
    pointer.head.struct_size = size
    for name, value in rule.fields.items():
        setattr(pointer, name, value)
    spots = st.integers(offsets["reserved"], max(size, known) - 1)
    for at in data.draw(st.lists(spots, max_size=2)):
        storage[at] = bytes([data.draw(st.integers(1, 255))])
    status, offset = expected(rule.kind, size, bytes(ffi.buffer(storage)))
    # A struct cut inside its own fields is read with zeros there, which may mean something else.
    if status == abi.BP_OK and size < offsets["reserved"] and rule.fields:
        return
    assert rule.call(device, pointer) == status
    if offset is not None:
        text = ffi.new("char[]", 512)
        device.api.core.last_error(text, 512, _out())
        assert f"offset {offset}" in ffi.string(text).decode()


@given(version=st.integers(0, 2**32 - 1))
def test_versions_other_than_one_are_refused(device: Device, version: int) -> None:
    """A struct grows by its size; a version is another struct."""
    info = ffi.new("bp_memory_info *", {"bytes": 64})
    info.head.struct_size = ffi.sizeof(info[0])
    info.head.struct_version = version
    wanted = abi.BP_OK if version == 1 else abi.BP_INVALID_ARGUMENT
    assert device.api.mem.create(device.handle, info, _out()) == wanted


TABLES = ("core", "mem", "queue", "timeline", "module", "capture")


def adopted(device: Device, table: str, size: int) -> tuple[Any, Any]:
    """A table as given, of `size` bytes, and as the loader completes it."""
    api, short = ffi.new("bp_api *"), ffi.new(f"bp_{table} *")
    ffi.memmove(api, device.api, ffi.sizeof("bp_api"))
    ffi.memmove(short, getattr(device.api, table), ffi.sizeof(f"bp_{table}"))
    short.head.struct_size = size
    setattr(api, table, short)
    out = ffi.new("const bp_api **")
    assert library().bp_hal_adopt(api, abi.ABI_MAJOR, abi.ABI_MINOR, out) == abi.BP_OK
    return short, getattr(out[0], table)


@given(data=st.data())
def test_the_loader_completes_any_table(device: Device, data: st.DataObject) -> None:
    """Older backends have shorter tables: what is missing is a stub, what is there stays."""
    table = data.draw(st.sampled_from(TABLES))
    known, offsets = abi.LAYOUT[f"bp_{table}"]
    size = data.draw(st.integers(1, known // 8)) * 8
    _, stubs = adopted(device, table, 8)
    short, whole = adopted(device, table, size)
    for field, offset in offsets.items():
        if field not in ("head", "reserved"):
            wanted = getattr(short if offset < size else stubs, field)
            assert getattr(whole, field) == wanted != ffi.NULL


@given(major=st.integers(0, 3), minor=st.integers(0, 9), ours=st.integers(0, 9))
def test_majors_agree_and_the_smaller_minor_counts(
    device: Device, major: int, minor: int, ours: int
) -> None:
    """ROCm/hip-ep #875: negotiated down, nothing null; another major is refused."""
    api = ffi.new("bp_api *")
    ffi.memmove(api, device.api, ffi.sizeof("bp_api"))
    api.major, api.minor = major, minor
    out = ffi.new("const bp_api **")
    status = library().bp_hal_adopt(api, 0, ours, out)
    if major != 0:
        assert (status, out[0]) == (abi.BP_VERSION, ffi.NULL)
    else:
        assert status == abi.BP_OK
        assert (out[0].major, out[0].minor) == (0, min(minor, ours, abi.ABI_MINOR))


def test_a_stub_answers_unsupported(device: Device) -> None:
    """level-zero #196: the slot is there, the call is refused by name."""
    api, adopted = ffi.new("bp_api *"), ffi.new("const bp_api **")
    ffi.memmove(api, device.api, ffi.sizeof("bp_api"))
    api.capture = ffi.NULL
    assert library().bp_hal_adopt(api, 0, abi.ABI_MINOR, adopted) == abi.BP_OK
    status = adopted[0].capture.begin(device.handle, 1)
    text = ffi.new("char[]", 512)
    library().bp_hal_last_error(text, 512, _out())
    assert status == abi.BP_UNSUPPORTED
    assert ffi.string(text).decode() == "this backend has no capture.begin"
    library().bp_hal_last_error(text, 512, _out())
    assert ffi.string(text) == b""
