"""`printf`: C's rules, both engines, nvcc's kernels, the ring, and what is out of bounds."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedplate.simt import printing
from bedplate.simt.api import (
    EnginesDiffer,
    LaunchFailed,
    LaunchInvalid,
    Machine,
    PtxUnsupported,
    verify,
)
from bedplate.simt.interpreter.engine import Observer
from bedplate.simt.printing import Call, Conversion
from bedplate.simt.reference import Reference

KERNELS = Path(__file__).parent / "kernels"
HEAD = """.version 8.0
.target sm_90
.address_size 64
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.global .align 1 .b8 format[] = {FORMAT};
.global .align 8 .b8 values[] = {VALUES};
.visible .entry k(.param .u64 first, .param .u64 second, .param .u64 out)
{
    .reg .pred %p;
    .reg .b32 %r<4>;
    .reg .b64 %d<5>;
    ld.param.u64 %d1, [first];
    ld.param.u64 %d2, [second];
    mov.u32 %r1, %tid.x;
    setp.eq.u32 %p, %r1, 1;
    .param .b64 p0;
    st.param.b64 [p0], %d1;
    .param .b64 p1;
    st.param.b64 [p1], %d2;
    .param .b32 r0;
    @%p call.uni (r0), vprintf, (p0, p1);
    @%p ld.param.b32 %r2, [r0];
    ld.param.u64 %d3, [out];
    @%p st.global.u32 [%d3], %r2;
    ret;
}
"""


def ptx(form: bytes, data: bytes) -> str:
    """The kernel with a format and values of its own."""
    listed = [", ".join(map(str, part)) for part in (form + b"\0", data or b"\0")]
    return HEAD.replace("FORMAT", listed[0]).replace("VALUES", listed[1])


@pytest.fixture(
    params=[
        "sm_90a",
        *(pytest.param(arch, marks=pytest.mark.soak) for arch in ("sm_75", "sm_100a")),
    ]
)
def text(request: pytest.FixtureRequest) -> str:
    """The kernels of print.cu, as nvcc 13 made them."""
    return (KERNELS / f"print.{request.param}.ptx").read_text()


def line(i: int, d: float) -> str:
    """What thread i of `say` prints, by Python's own formatting."""
    word = "odd" if i % 2 else "even"
    letter = chr(ord("a") + i % 26)
    return (
        f"{i}: {d * i:5.2f}|{word:<8}|{1 << (30 + i % 8)}%|{letter}|"
        f"{f'0x{i * 17:04x}' if i else '000000'}|{-i:+d}|{d / (i + 1):e}|{-i % 2**32}\n"
    )


@pytest.mark.parametrize("threads", [1, 2])
def test_a_kernel_prints_in_the_order_of_its_blocks(text: str, threads: int) -> None:
    """Warps of a block in turn, lanes from the lowest, and what is behind a barrier last."""
    with Machine(threads=threads, memory=1 << 20) as machine:
        n = machine.array(np.full(64 * 8, -9, np.int32))
        run = machine.load(text)["say"][8, 64](n, 1.25)
    wanted = ""
    for block in range(8):
        for warp in range(2):
            every = range(64 * block + 32 * warp, 64 * block + 32 * warp + 32)
            wanted += "".join(line(i, 1.25) for i in every if i % 3 == 0)
            wanted += "plain %\n" if 5 in every else ""
        wanted += f"behind the barrier of {block}\n"
    assert run.printed == wanted
    assert run.printed_lost == 0


def test_the_text_is_a_gpus(text: str) -> None:
    """An H200 with CUDA 13 printed these lines; its blocks and warps come in any order."""
    wanted = (Path(__file__).parent / "golden" / "print_h200.txt").read_text()
    with Machine(threads=1, memory=1 << 20) as machine:
        n = machine.array(np.full(128, -9, np.int32))
        run = machine.load(text)["say"][2, 64](n, 1.25)
        assert n.numpy()[[0, 3, 5]].tolist() == [9, 9, 0]
    assert sorted(run.printed.splitlines()) == wanted.splitlines()


def test_results_are_numbers_of_arguments(text: str) -> None:
    """Stars count; so do strings in constant memory, in memory, and none."""
    with Machine(threads=1, memory=1 << 20) as machine:
        n = machine.array(np.full(4, -9, np.int32))
        run = machine.load(text)["strings"][1, 1](n)
        assert n.numpy().tolist() == [7, 7, 4, 9]
    assert run.printed == (
        "[    constant][3.14     ][-3][250][memory      ][3.14     ][7][3]"
        f"memory co (null) {n.address:#x}\n"
        "1e-07 1E+20 0x1p+0 abc     x -5 7 fedcba9876543210 10\n"
    )


@pytest.mark.parametrize("kernel", ["say", "strings"])
def test_both_engines_print_the_same(text: str, kernel: str) -> None:
    """Call by call, with all that is written beside it."""
    with Machine(threads=1, memory=1 << 20) as machine:
        n = machine.array(np.full(128, -9, np.int32))
        values = [n, 1.25] if kernel == "say" else [n]
        verified = verify(machine.load(text)[kernel], 2, 64, values)
    assert verified.registers > 100


@pytest.mark.parametrize(
    "place", [0, *(pytest.param(n, marks=pytest.mark.soak) for n in (1, 2, 3))]
)
def test_engines_that_print_differently_are_found(
    monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    """Another block, thread, format or value, and one call less."""

    def other(*given: Any) -> Call:
        changed = list(given)
        changed[place] = changed[place] + 1 if place < 3 else b"\4" + changed[place][1:]
        return Call(*changed)

    with Machine(threads=1, memory=1 << 20) as machine:
        loaded = machine.load(ptx(b"%d", bytes(8)))
        out = machine.array(np.zeros(1, np.int32))
        values = [loaded.symbols["format"], loaded.symbols["values"], out]
        verify(loaded["k"], 1, 2, values)
        with monkeypatch.context() as patched:
            patched.setattr(printing, "gathered", _gathered)
            patched.setattr("bedplate.simt.interpreter.printing.printing.Call", other)
            with pytest.raises(EnginesDiffer, match="the reference printed '"):
                verify(loaded["k"], 1, 2, values)
        monkeypatch.setattr(printing, "gathered", lambda rings, most: ([], 0))
        with pytest.raises(EnginesDiffer, match="printed 1 times in a block"):
            verify(loaded["k"], 1, 2, values)


def _gathered(rings: list[tuple[object, object]], capacity: int) -> tuple[list[Call], int]:
    """The ring as it is, whatever `Call` was made to be."""
    (ring, records) = rings[0]
    found = [
        Call(r.block, r.thread, r.format, bytes(r.data)[: r.bytes])
        for r in records[: ring.used]  # type: ignore[index, attr-defined]
    ]
    return found, 0


@pytest.mark.parametrize("threads", [1, 2])
def test_what_finds_no_room_is_counted(threads: int) -> None:
    """The first calls by block are kept, on any number of threads."""
    text = (KERNELS / "print.sm_90a.ptx").read_text()
    with Machine(threads=threads, memory=1 << 20, printf=100) as machine:
        run = machine.load(text)["many"][64, 4](np.int32(3))
    wanted = [f"{b}.{t}.{k}" for b in range(64) for k in range(3) for t in range(4)]
    assert run.printed.splitlines() == wanted[:100]
    assert run.printed_lost == 64 * 12 - 100
    with Machine(threads=threads, memory=1 << 20, printf=0) as machine:
        run = machine.load(text)["many"][2, 4](np.int32(3))
        assert (run.printed, run.printed_lost) == ("", 24)
    with pytest.raises(LaunchInvalid, match="-1 calls of printf"):
        Machine(printf=-1)


def one(form: bytes, data: bytes = b"") -> tuple[str, int]:
    """What a kernel with that format and those values prints, and its result; both engines."""
    with Machine(threads=1, memory=1 << 20) as machine:
        out = machine.array(np.zeros(1, np.int32))
        first, second = (machine.array(np.frombuffer(b + b"\0", "u1")) for b in (form, data))
        kernel = machine.load(ptx(b"", b""))["k"]
        run = kernel[1, 2](first, second, out)
        result = int(out.numpy()[0])
        slow = Reference(kernel, 1, 2, [first, second, out])
        slow.run(Observer())
        assert printing.text(slow.grid.printed, machine.memory) == run.printed
        assert out.numpy().tolist() == [result]
        return run.printed, result


def test_the_guard_of_a_call_is_kept() -> None:
    """One thread of two prints."""
    assert one(b"%d!", (7).to_bytes(4, "little")) == ("7!", 1)


def test_formats_that_are_none_of_cs() -> None:
    """They print as they are written; a lonely percent, one more argument than there may be."""
    data = bytes(range(64)) * 4
    assert one(b"100%") == ("100%", 0)
    assert one(b"%y%%%") == ("%y%%", 0)
    assert one(b"%5", data) == ("%5", 0)
    assert one(b"%-+ #0hhn|", data) == ("%-+ #0hhn|", 0)
    words = "".join(str(int.from_bytes(data[4 * n : 4 * n + 4], "little")) for n in range(32))
    assert one(b"%u" * 34, data) == (words + "%u%u", 32)


def test_fields_are_bounded() -> None:
    """A width of two thousand million is the widest there is."""
    printed, _ = one(b"%2000000000d", (7).to_bytes(4, "little"))
    assert printed == "7".rjust(printing.WIDEST)
    printed, _ = one(b"%*.*f|", b"\xff\xff\xff\x7f" * 2 + np.float64(0.5).tobytes())
    assert len(printed) == printing.WIDEST + 3
    printed, _ = one(b"%*d|%.*d|", np.array([-5, 7, -1, 3], "i4").tobytes())
    assert printed == "7    |3|"


def test_strings_that_cannot_be_read() -> None:
    """An address of nothing, and one of a window's last byte, which has no zero behind it."""
    with Machine(threads=1, memory=1 << 20) as machine:
        loaded = machine.load(ptx(b"<%s>", bytes(8)))
        format_, values = (loaded.symbols[name] for name in ("format", "values"))
        out = machine.array(np.full(256, ord("x"), np.uint8))
        view = machine.memory.view(values, 8)
        assert view is not None
        end = out.address + 255
        for address, wanted in ((8, "<(unreadable)>"), (end, "<x>"), (0, "<(null)>")):
            view[:] = np.frombuffer(address.to_bytes(8, "little"), np.uint8)
            assert loaded["k"][1, 2](format_, values, out).printed == wanted


_LOST = r"0x1234 is in no allocation.*\(1, 0, 0\)"


@pytest.mark.parametrize("which", [0, 1])
def test_a_format_or_values_out_of_bounds_are_a_fault(which: int) -> None:
    """With the thread and the address, also when the ring is full; no format gives -1."""
    for room in (4, 0):
        with Machine(threads=1, memory=1 << 20, printf=room) as machine:
            loaded = machine.load(ptx(b"%d", bytes(4)))
            out = machine.array(np.zeros(1, np.int32))
            values = [loaded.symbols["format"], loaded.symbols["values"], out]
            values[which] = 0x1234
            with pytest.raises(LaunchFailed, match=_LOST) as failed:
                loaded["k"][1, 2](*values)
            assert failed.value.printed_lost == 0
            with pytest.raises(LaunchFailed, match=_LOST):
                verify(loaded["k"], 1, 2, values)
            values[which] = 0
            if which == 0:
                assert loaded["k"][1, 2](*values).printed == ""
                assert out.numpy().tolist() == [-1]


def test_a_failed_launch_says_what_it_printed() -> None:
    """In the error: what the block of the fault and those before it said."""
    text = (KERNELS / "print.sm_90a.ptx").read_text()
    bad = re.sub(r"(\.visible \.entry many\((?:.|\n)*?)\n\tret;", r"\1\n\ttrap;", text)
    with Machine(threads=1, memory=1 << 20) as machine, pytest.raises(LaunchFailed) as failed:
        machine.load(bad)["many"][2, 2](np.int32(1))
    assert failed.value.printed == "0.0.0\n0.1.0\n"


def test_another_vprintf_is_refused() -> None:
    """With other arguments; one with a body is called like any function."""
    with pytest.raises(PtxUnsupported, match="the arguments are not those of vprintf"):
        Machine(memory=1 << 20).load(ptx(b"", b"").replace("(p0, p1)", "(p0)"))


_INTEGERS = st.tuples(
    st.sampled_from(["", "h", "hh", "l", "ll", "q", "j", "z", "t", "L"]),
    st.sampled_from("diouxX"),
    st.integers(-(2**63), 2**63 - 1),
)
_DOUBLES = st.tuples(st.sampled_from(["", "l", "L"]), st.sampled_from("eEfFgGaA"), st.floats())
_CHARACTERS = st.tuples(st.just(""), st.just("c"), st.integers(1, 127))


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["", "-", "+", " ", "#", "0", "-#", "+0", " 0#"]),
            st.sampled_from(["", "1", "12"]),
            st.sampled_from(["", ".", ".0", ".7"]),
            st.one_of(_INTEGERS, _DOUBLES, _CHARACTERS),
            st.sampled_from(["", " and ", "%%", "100%% "]),
        ),
        max_size=6,
    )
)
def test_text_is_that_of_the_c_library(
    parts: list[tuple[str, str, str, tuple[str, str, int | float], str]],
) -> None:
    """The whole format at once, with arguments as C passes them."""
    form, data, given_ = "", bytearray(), []
    for flags, width, precision, (length, letter, value), behind in parts:
        form += f"%{flags}{width}{precision}{length}{letter}{behind}"
        if letter in "eEfFgGaA":
            kind, raw = ctypes.c_double(value), np.float64(value).tobytes()
        elif length in ("l", "ll", "q", "j", "z", "t"):
            kind, raw = ctypes.c_longlong(int(value)), int(value).to_bytes(8, "little", signed=True)
        else:
            word = (int(value) + 2**31) % 2**32 - 2**31
            kind, raw = ctypes.c_int(word), word.to_bytes(4, "little", signed=True)
        data += bytes(-len(data) % len(raw)) + raw
        given_.append(kind)
    # C reads what L says of doubles; kernels have none that are longer.
    plain = re.sub("L(?=[eEfFgGaA])|L(?=[diouxX])", "", form).encode()
    buffer = ctypes.create_string_buffer(8192)
    size = ctypes.CDLL(None).snprintf(buffer, 8192, plain, *given_)
    with Machine(threads=1, memory=1 << 20) as machine:
        array = machine.array(np.frombuffer(form.encode() + b"\0", np.uint8))
        call = Call(0, 0, array.address, bytes(data))
        assert printing.text([call], machine.memory).encode() == buffer.raw[:size]
    assert printing.taken(form.encode()) == (len(parts), len(data))


@given(st.binary(max_size=40).map(lambda raw: raw.replace(b"\0", b"%")))
def test_any_bytes_are_a_format(raw: bytes) -> None:
    """Pieces are the format again; arguments ascend, aligned, and never more than allowed."""
    found = list(printing.pieces(raw))
    assert b"".join(p.text if isinstance(p, Conversion) else p for p in found) == raw
    places = [place for p in found if isinstance(p, Conversion) for place in p.arguments]
    assert len(places) <= printing.MOST_ARGUMENTS
    end = 0
    for at, size in places:
        assert at >= end
        assert at % size == 0
        end = at + size
    assert printing.taken(raw) == (len(places), end)
    with Machine(threads=1, memory=1 << 20) as machine:
        array = machine.array(np.frombuffer(raw + b"\0", np.uint8))
        printing.text([Call(0, 0, array.address, bytes(end))], machine.memory)


@pytest.mark.parametrize(
    "form",
    [b"%*%d", b"%l%d", b"%hhd%ld%c%s", b"%5.3%%n", b"%.*lld%lc", b"%#-+ 0z%p%lx%q", b"\xff%\xff%d"],
)
def test_the_engines_agree_on_odd_formats(form: bytes) -> None:
    """On how many arguments there are and how long they are."""
    _, size = printing.taken(form)
    assert one(form, bytes(max(size - 1, 0)))[1] == printing.taken(form)[0]


def test_rings_of_several_threads_are_one_list() -> None:
    """By block, a block's calls in their order; the first are kept whoever has them."""
    rings = []
    for blocks, used in (([0, 0, 3, 3, 4], 7), ([1, 2, 2, 5], 4)):
        ring, records = printing.ring(5)
        for number, (record, block) in enumerate(zip(records, blocks, strict=False)):
            record.block, record.thread, record.bytes = block, number, 2
            record.data[:3] = (1, 2, 3)
        ring.used = used
        rings.append((ring, records))
    calls, lost = printing.gathered(rings, 5)
    assert [(call.block, call.thread) for call in calls] == [(0, 0), (0, 1), (1, 0), (2, 1), (2, 2)]
    assert calls[0].data == b"\1\2"
    assert lost == 7 + 4 - 5
