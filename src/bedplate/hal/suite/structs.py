"""The size rule as cases: one set for every struct that crosses the boundary.

For each struct: a caller that knows less is served, one that knows more with
zeros is served, one that knows more with something in it is refused, and so is
one that uses a reserved word, an impossible size or another version.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bedplate.hal import abi
from bedplate.hal.native import ffi
from bedplate.hal.suite.registry import Case, Tier, register
from bedplate.hal.suite.subject import Subject, expect

EXTRA_BYTES = 24
"""weathernext #185: one side knows a tail of this size, the other does not."""

Use = Callable[[Subject, Any], int]
"""Calls the function with the struct at that address and gives its status."""


@dataclass(frozen=True, slots=True)
class StructRule:
    """A struct, how to make a good one, and the call that reads it."""

    capability: str
    kind: str
    make: Callable[[Subject], tuple[Any, Any]]
    use: Use
    needs: tuple[str, ...] = ()
    catches: tuple[str, ...] = ()
    prepare: str | None = None
    """The kind of code to use first, for structs that carry code or launch it."""


def add(rule: StructRule) -> None:
    """Register the six cases of a struct."""
    short = rule.kind.removeprefix("bp_")
    for title, doc, body, tier in (
        ("shorter", "a caller that knows less is served", _shorter, "quick"),
        ("longer", "a caller that knows more, with zeros, is served", _longer, "quick"),
        ("unknown_tail", "a non-zero unknown tail is INVALID_EXT", _tail, "quick"),
        ("reserved", "a non-zero reserved word is INVALID_EXT", _reserved, "quick"),
        ("head", "a struct_size that no struct can have is refused", _head, "full"),
        ("version", "a struct_version other than 1 is another struct", _version, "quick"),
    ):
        polarity = "positive" if title in ("shorter", "longer") else "negative"
        known = tuple(lie for lie in rule.catches if lie.startswith(title))
        register(
            Case(
                name=f"{rule.capability}.{short}_{title}",
                capability=rule.capability,
                polarity=polarity,  # type: ignore[arg-type]
                tier=_tier(tier),
                body=_bind(body, rule),
                doc=f"{rule.kind}: {doc}.",
                catches=known,
                needs=rule.needs,
            )
        )


def _tier(text: str) -> Tier:
    return "full" if text == "full" else "quick"


def _bind(
    body: Callable[[Subject, StructRule], None], rule: StructRule
) -> Callable[[Subject], None]:
    def run(subject: Subject) -> None:
        if rule.prepare is not None:
            subject.use_code(rule.prepare)
        body(subject, rule)

    return run


def _copy(subject: Subject, rule: StructRule, size: int) -> tuple[Any, Any, Any]:
    """The good struct in `size` bytes: its address, its storage, and what it points to."""
    good, keep = rule.make(subject)
    known = abi.LAYOUT[rule.kind][0]
    storage = ffi.new("char[]", max(size, known) + EXTRA_BYTES)
    ffi.memmove(storage, good, min(size, known))
    head = ffi.cast("bp_head *", storage)
    head.struct_size = size
    return ffi.cast(f"{rule.kind} *", storage), storage, (good, keep)


def _shorter(subject: Subject, rule: StructRule) -> None:
    offset = abi.LAYOUT[rule.kind][1]["reserved"]
    pointer, storage, keep = _copy(subject, rule, offset)
    # What lies behind the caller's struct is not its business.
    for at in range(offset, len(storage)):
        storage[at] = b"\xff"
    subject.works(rule.use(subject, pointer), f"a {rule.kind} of {offset} bytes")
    rest = bytes(ffi.buffer(storage))[offset:]
    expect(rest == b"\xff" * len(rest), f"bytes behind a {rule.kind} of {offset} were written")
    del keep


def _longer(subject: Subject, rule: StructRule) -> None:
    size = abi.LAYOUT[rule.kind][0] + EXTRA_BYTES
    pointer, _storage, keep = _copy(subject, rule, size)
    subject.works(rule.use(subject, pointer), f"a {rule.kind} of {size} bytes, tail zero")
    del keep


def _tail(subject: Subject, rule: StructRule) -> None:
    size = abi.LAYOUT[rule.kind][0] + EXTRA_BYTES
    pointer, storage, keep = _copy(subject, rule, size)
    storage[size - 1] = b"\x01"
    what = f"a {rule.kind} with a 1 at offset {size - 1}"
    text = subject.refuses(rule.use(subject, pointer), abi.BP_INVALID_EXT, what)
    expect(str(size - 1) in text, f"the refusal does not name offset {size - 1}: {text}")
    del keep


def _reserved(subject: Subject, rule: StructRule) -> None:
    known, offsets = abi.LAYOUT[rule.kind]
    for word in range(4):
        pointer, _storage, keep = _copy(subject, rule, known)
        pointer.reserved[word] = 1
        status = rule.use(subject, pointer)
        what = f"a {rule.kind} with reserved[{word}] = 1"
        text = subject.refuses(status, abi.BP_INVALID_EXT, what)
        place = offsets["reserved"] + 8 * word
        expect(str(place) in text, f"the refusal does not name offset {place}: {text}")
        del keep


def _head(subject: Subject, rule: StructRule) -> None:
    known = abi.LAYOUT[rule.kind][0]
    for size in (0, 4, 7, 12, known - 4, known + 1):
        pointer, _storage, keep = _copy(subject, rule, known)
        pointer.head.struct_size = size
        status = rule.use(subject, pointer)
        subject.refuses(status, abi.BP_INVALID_ARGUMENT, f"a {rule.kind} of struct_size {size}")
        del keep


def _version(subject: Subject, rule: StructRule) -> None:
    known = abi.LAYOUT[rule.kind][0]
    for version in (0, 2, (1 << 32) - 1):
        pointer, _storage, keep = _copy(subject, rule, known)
        pointer.head.struct_version = version
        status = rule.use(subject, pointer)
        what = f"a {rule.kind} of struct_version {version}"
        subject.refuses(status, abi.BP_INVALID_ARGUMENT, what)
        del keep
