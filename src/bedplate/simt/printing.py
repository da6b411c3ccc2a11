"""`printf` of kernels: where a format ends, what its arguments take, and the text afterwards.

A kernel keeps for each lane that prints the address of its format and the bytes of its
arguments, laid out as `vprintf` of CUDA gets them: 4 or 8 bytes each, aligned to that. The
text is made when the launch is over, by the C library, so that flags, width and precision
are C's; strings are read from memory then. NVIDIA's driver knows less than C (no `.*`, `hh`,
`z`, `j`, `t`; seen on an H200) and prints the same where it knows a conversion; like it we
leave `%n` as it is written. Both engines use one table of what a character
of a conversion means, `CLASSES`.

Text comes block by block, in the order in which a block printed. Of a launch the first
`capacity` calls are kept, and the rest are counted.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bedplate.simt import abi
from bedplate.simt.memory import Memory

CAPACITY = 4096
"""Calls of a launch that are kept; 1.2 MiB for a host thread, and CUDA's buffer has 1 MiB."""
MOST_ARGUMENTS = 32
"""As in CUDA; conversions behind them print as they are written."""
MOST_FORMAT = 1 << 16
MOST_TEXT = 1 << 16
"""Bytes of a string that is printed."""
WIDEST = 4096
"""Of a width or precision: text must not cost more than the kernel."""
END, KEEP, LONG, INTEGER, WORD, STAR, CHARACTER = range(7)
"""What a character inside a conversion does: ends it without an argument, keeps it open,
makes integers 8 bytes wide, takes an integer, 8 bytes, 4 bytes and stays open, 4 bytes."""


def _classes() -> bytes:
    made = bytearray(256)
    for kind, characters in (
        (KEEP, b"-+ #.0123456789hL"),
        (LONG, b"lqjzt"),
        (INTEGER, b"diouxX"),
        (WORD, b"eEfFgGaAsp"),
        (STAR, b"*"),
        (CHARACTER, b"c"),
    ):
        for character in characters:
            made[character] = kind
    return bytes(made)


CLASSES = _classes()


@dataclass(frozen=True)
class Conversion:
    """A `%` with all behind it; `arguments` are places of its arguments, stars first."""

    text: bytes
    arguments: Sequence[tuple[int, int]]


def pieces(text: bytes) -> Iterator[bytes | Conversion]:
    """A format as plain text and conversions, with (offset, size) of every argument."""
    offset = count = start = at = 0
    while at < len(text):
        if text[at] != ord("%"):
            at += 1
            continue
        if at > start:
            yield text[start:at]
        start, long, places = at, False, []
        at += 1
        while at < len(text):
            kind = CLASSES[text[at]]
            at += 1
            long |= kind == LONG
            size = 8 if kind == WORD or (kind == INTEGER and long) else 4
            if kind in (INTEGER, WORD, STAR, CHARACTER) and count < MOST_ARGUMENTS:
                offset = -(-offset // size) * size
                places.append((offset, size))
                offset, count = offset + size, count + 1
            if kind not in (KEEP, LONG, STAR):
                break
        yield Conversion(text[start:at], places)
        start = at
    if at > start:
        yield text[start:]


def taken(text: bytes) -> tuple[int, int]:
    """How many arguments a format takes, and how many bytes they have."""
    places = [
        place for one in pieces(text) if isinstance(one, Conversion) for place in one.arguments
    ]
    return len(places), sum(places[-1]) if places else 0


# After the launch.


@dataclass(frozen=True)
class Call:
    """One lane's call."""

    block: int
    thread: int
    format: int
    data: bytes


def text(calls: Sequence[Call], memory: Memory) -> str:
    """What calls print together."""
    made = b"".join(_line(call, memory) for call in calls)
    return made.decode("utf-8", "replace")


def told(call: Call, memory: Memory) -> tuple[int, ...]:
    """A call as numbers: who and what, and its arguments without what lies between them."""
    wanted = string(memory, call.format, MOST_FORMAT) or b""
    places = (
        place for one in pieces(wanted) if isinstance(one, Conversion) for place in one.arguments
    )
    values = (int.from_bytes(call.data[at : at + size], "little") for at, size in places)
    return (call.block, call.thread, call.format, len(call.data), *values)


def gathered(rings: Sequence[Any], capacity: int) -> tuple[list[Call], int]:
    """The calls that rings of a launch's threads hold, by block, and how many were lost."""
    calls: list[Call] = []
    for ring, records in rings:
        for record in records[: min(ring.used, capacity)]:
            data = bytes(record.data)[: record.bytes]
            calls.append(Call(record.block, record.thread, record.format, data))
    # A thread's blocks ascend, so what its ring lost comes behind what all rings keep.
    calls.sort(key=lambda call: call.block)
    total = sum(ring.used for ring, _ in rings)
    kept = calls[:capacity]
    return kept, total - len(kept)


def ring(capacity: int) -> tuple[abi.Ring, Any]:
    """An empty ring for one host thread, and its records."""
    records = (abi.PrintRecord * max(capacity, 1))()
    return abi.Ring(ctypes.addressof(records), capacity, 0), records


def string(memory: Memory, address: int, most: int) -> bytes | None:
    """The bytes at an address up to a zero, at most so many; None when nothing is there."""
    for base, data in memory.spans():
        if base <= address < base + len(data):
            part: np.ndarray[Any, Any] = data[address - base : address - base + most]
            return part.tobytes().partition(b"\0")[0]
    return None


def _line(call: Call, memory: Memory) -> bytes:
    wanted = string(memory, call.format, MOST_FORMAT) or b""
    made = []
    for piece in pieces(wanted):
        made.append(piece if isinstance(piece, bytes) else _converted(piece, call.data, memory))
    return b"".join(made)


_SPEC = re.compile(
    rb"%([-+ #0]*)(\*|\d*)(?:(\.)(\*|\d*))?(hh|h|l|ll|q|j|z|t|L)?([a-zA-Z%])", re.DOTALL
)


def _converted(piece: Conversion, data: bytes, memory: Memory) -> bytes:
    found = _SPEC.fullmatch(piece.text)
    if found is None:
        return piece.text
    flags, width, point, precision, length, letter = found.groups()
    if letter == b"%":
        return b"%"
    stars = [width, precision].count(b"*")
    values = [int.from_bytes(data[at : at + size], "little") for at, size in piece.arguments]
    if len(values) != stars + 1:  # no conversion of C's, or more arguments than a call has
        return piece.text
    if width == b"*":
        given = _signed(values.pop(0), 32)
        flags, width = flags + b"-" * (given < 0), b"%d" % abs(given)
    if precision == b"*":
        given = _signed(values.pop(0), 32)
        point, precision = (point, b"%d" % given) if given >= 0 else (None, b"")
    head = b"%" + flags + _bounded(width)
    if point:
        head += b"." + (_bounded(precision) or b"0")
    return _printed(head, length or b"", letter, values[0], memory)


def _bounded(digits: bytes | None) -> bytes:
    return b"%d" % min(int(digits), WIDEST) if digits else b""


def _printed(head: bytes, length: bytes, letter: bytes, bits: int, memory: Memory) -> bytes:
    if letter in b"eEfFgGaA":
        return _by_c(head + letter, ctypes.c_double(np.uint64(bits).view(np.float64)))
    if letter == b"p":
        return _by_c(head + letter, ctypes.c_void_p(bits))
    if letter == b"s":
        content = b"(null)"
        if bits:
            seen = string(memory, bits, MOST_TEXT)
            content = b"(unreadable)" if seen is None else seen
        return _by_c(head + letter, ctypes.c_char_p(content))
    if letter == b"c":
        return _by_c(head + letter, ctypes.c_int(_signed(bits, 32)))
    if length in (b"", b"h", b"hh", b"L"):
        return _by_c(head + length.replace(b"L", b"") + letter, ctypes.c_int(_signed(bits, 32)))
    return _by_c(head + b"ll" + letter, ctypes.c_longlong(_signed(bits, 64)))


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) & 1 else value


_snprintf = ctypes.CDLL(None).snprintf
_ROOM = MOST_TEXT + WIDEST + 1


def _by_c(form: bytes, value: Any) -> bytes:
    """One conversion by the C library, whose rules are the ones that count."""
    buffer = ctypes.create_string_buffer(_ROOM)
    size = _snprintf(buffer, ctypes.c_size_t(_ROOM), form, value)
    return form if size < 0 else buffer.raw[: min(size, _ROOM - 1)]
