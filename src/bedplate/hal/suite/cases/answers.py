"""The size rule of structs that a backend fills: it writes what the caller has, and no more.

bp_memory_info and bp_device_properties have cases of their own beside their
functions; here are the answers of modules, kernels and plans.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bedplate.hal import abi
from bedplate.hal.native import ffi
from bedplate.hal.suite.cases.launch import loaded
from bedplate.hal.suite.cases.op_use import raw_convert
from bedplate.hal.suite.registry import Body, Case, Polarity, register
from bedplate.hal.suite.structs import EXTRA_BYTES
from bedplate.hal.suite.subject import Subject, expect

BAD = abi.BP_INVALID_ARGUMENT
Ask = Callable[[Subject, Any], int]


@dataclass(frozen=True, slots=True)
class Answer:
    """A struct, its capability, the field behind which a short one ends, and who fills it."""

    kind: str
    capability: str
    last: str
    ask: Ask

    def room(self, size: int) -> tuple[Any, Any]:
        """A struct of that size in storage full of 0x7F: its pointer, and the storage."""
        storage = ffi.new("char[]", b"\x7f" * (max(size, abi.LAYOUT[self.kind][0]) + 64))
        head = ffi.cast("bp_head *", storage)
        head.struct_version, head.struct_size = 1, size
        return ffi.cast(f"{self.kind} *", storage), storage


def _shorter(answer: Answer) -> Body:
    def body(s: Subject) -> None:
        size = abi.LAYOUT[answer.kind][1][answer.last]
        pointer, storage = answer.room(size)
        s.works(answer.ask(s, pointer), f"a {answer.kind} of {size} bytes")
        raw = bytes(ffi.buffer(storage))
        expect(raw[8:size] != b"\x7f" * (size - 8), "the part that the caller has is missing")
        rest = raw[size:]
        expect(rest[:-1] == b"\x7f" * (len(rest) - 1), "bytes behind the caller's were written")

    return body


def _longer(answer: Answer) -> Body:
    def body(s: Subject) -> None:
        known = abi.LAYOUT[answer.kind][0]
        pointer, storage = answer.room(known + EXTRA_BYTES)
        s.works(answer.ask(s, pointer), f"a {answer.kind} of {known + EXTRA_BYTES} bytes")
        raw = bytes(ffi.buffer(storage))
        expect(raw[known : known + EXTRA_BYTES] == bytes(EXTRA_BYTES), "the tail is not zero")
        expect(raw[known + EXTRA_BYTES] == 0x7F, "bytes behind the caller's were written")

    return body


def _head(answer: Answer) -> Body:
    def body(s: Subject) -> None:
        for version, size in ((1, 0), (1, 4), (0, 64), (2, 64)):
            pointer, storage = answer.room(size)
            pointer.head.struct_version = version
            status = answer.ask(s, pointer)
            s.refuses(status, BAD, f"a {answer.kind} of version {version} and size {size}")
            rest = bytes(ffi.buffer(storage))[8:-1]
            expect(rest == b"\x7f" * len(rest), "a refused struct was written")

    return body


def _module_info(s: Subject, out: Any) -> int:
    return int(s.api.module.info(s.handle, loaded(s), out))


def _kernel_info(s: Subject, out: Any) -> int:
    return int(s.api.module.kernel_info(s.handle, s.kernel("nothing").handle, out))


def _op_plan(s: Subject, out: Any) -> int:
    tensors, keep = raw_convert()
    array = ffi.new("const bp_tensor *[]", tensors)
    status = s.device.ops.plan(s.handle, abi.BP_OP_CONVERT, array, 3, ffi.NULL, 0, out)
    del keep
    return int(status)


for _answer in (
    Answer("bp_module_info", "module_native", "reserved", _module_info),
    Answer("bp_kernel_info", "module_native", "static_shared_bytes", _kernel_info),
    Answer("bp_op_plan", "ops", "library", _op_plan),
):
    _cases: tuple[tuple[str, Polarity, str, Callable[[Answer], Body]], ...] = (
        ("shorter", "positive", "a caller that knows less is written no more", _shorter),
        ("longer", "positive", "what a newer caller has beyond becomes zero", _longer),
        ("head", "negative", "an impossible size or version is refused, nothing is written", _head),
    )
    for _title, _polarity, _doc, _make in _cases:
        register(
            Case(
                name=f"{_answer.capability}.{_answer.kind.removeprefix('bp_')}_answer_{_title}",
                capability=_answer.capability,
                polarity=_polarity,
                tier="quick",
                body=_make(_answer),
                doc=f"{_answer.kind}: {_doc}.",
            )
        )
