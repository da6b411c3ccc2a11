"""Batches: commands recorded once, submitted any number of times.

Recording builds the native structs; submitting is one native call. A batch
keeps its buffers, kernels and plans alive. It must not be changed while a
submit of it runs; it may be submitted to several queues of one device.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bedplate.hal import abi
from bedplate.hal.buffer import Buffer, Range, Tensor
from bedplate.hal.errors import InvalidArgument
from bedplate.hal.native import ffi, new
from bedplate.hal.ops import op_tensors

if TYPE_CHECKING:
    from bedplate.hal.module import Kernel
    from bedplate.hal.ops import OpPlan


class Scalar(bytes):
    """A launch argument given by value, packed little-endian."""

    @classmethod
    def packed(cls, code: str, value: float) -> Scalar:
        """`value` by a struct code; InvalidArgument when it does not fit."""
        try:
            return cls(struct.pack(f"<{code}", value))
        except struct.error as cause:
            raise InvalidArgument(f"{value!r} is not an argument of type {code}") from cause


def U32(value: int) -> Scalar:  # noqa: N802  named as the type it makes
    """A uint32 argument."""
    return Scalar.packed("I", value)


def I32(value: int) -> Scalar:  # noqa: N802  as above
    """An int32 argument."""
    return Scalar.packed("i", value)


def U64(value: int) -> Scalar:  # noqa: N802  as above
    """A uint64 argument."""
    return Scalar.packed("Q", value)


def I64(value: int) -> Scalar:  # noqa: N802  as above
    """An int64 argument."""
    return Scalar.packed("q", value)


def F32(value: float) -> Scalar:  # noqa: N802  as above
    """A float argument."""
    return Scalar.packed("f", value)


Place = Tensor | Buffer | Range
Argument = Place | bytes | np.generic | None
"""A tensor, buffer or range becomes an address, None a null one, bytes a value."""


def as_range(place: Place) -> Range:
    """The range behind a tensor, a buffer, or itself."""
    if isinstance(place, Tensor):
        return place.range
    if isinstance(place, Buffer):
        return Range(place, 0, place.bytes)
    return place


class Batch:
    """An ordered list of commands."""

    def __init__(self) -> None:
        self._commands: list[Any] = []
        self._keep: list[Any] = []
        self._reads: list[Range] = []
        self._writes: list[Range] = []
        self._pointers: Any = None

    def __len__(self) -> int:
        return len(self._commands)

    def clear(self) -> None:
        """Forget every command."""
        self._commands.clear()
        self._keep.clear()
        self._reads.clear()
        self._writes.clear()
        self._pointers = None

    def uses(self) -> tuple[list[Range], list[Range]]:
        """What the commands read and what they write, for tools that look for hazards.

        A kernel may write whatever it is given; an op reads what it writes.
        """
        return list(self._reads), list(self._writes)

    def launch(
        self,
        kernel: Kernel,
        grid: Sequence[int],
        arguments: Sequence[Argument] = (),
        *,
        block: Sequence[int] = (1, 1, 1),
        shared_bytes: int = 0,
    ) -> None:
        """Run `kernel` over a grid of blocks. Grid and block may be shorter than 3."""
        packed = ffi.new("bp_argument[]", max(len(arguments), 1))
        for place, argument in zip(packed, arguments, strict=False):
            self._argument(place, argument)
        command = new(
            "bp_launch_command",
            kind=abi.BP_COMMAND_LAUNCH,
            kernel=kernel.handle,
            dynamic_shared_bytes=shared_bytes,
        )
        command.grid = _three(grid, "grid")
        command.block = _three(block, "block")
        command.arguments, command.argument_count = packed, len(arguments)
        self._add(command, packed, kernel)

    def op(
        self,
        plan: OpPlan,
        tensors: Sequence[Place | None],
        workspace: Place | None = None,
    ) -> None:
        """Run a plan on tensors of the shapes it was made for, in the op's order."""
        bindings = ffi.new("bp_range[]", max(len(tensors), 1))
        roles = op_tensors(plan.name)
        for number, (place, tensor) in enumerate(zip(bindings, tensors, strict=False)):
            if tensor is not None:
                written = number >= len(roles) or roles[number].written
                self._range(place, as_range(tensor), written=written)
        command = new("bp_op_command", kind=abi.BP_COMMAND_OP, plan=plan.handle)
        command.bindings, command.binding_count = bindings, len(tensors)
        if workspace is not None:
            self._range(command.workspace, as_range(workspace), written=True)
        self._add(command, bindings, plan)

    def copy(self, destination: Place, source: Place, bytes: int | None = None) -> None:
        """Copy `bytes`, or the whole source, between two places of the device."""
        to, source_range = as_range(destination), as_range(source)
        length = source_range.length if bytes is None else bytes
        command = new("bp_copy_command", kind=abi.BP_COMMAND_COPY)
        self._range(command.destination, Range(to.buffer, to.offset, length), written=True)
        source_part = Range(source_range.buffer, source_range.offset, length)
        self._range(command.source, source_part, written=False)
        self._add(command)

    def fill(self, destination: Place, pattern: int, bytes: int | None = None) -> None:
        """Repeat a 32-bit pattern over the first `bytes`, or all, of a place."""
        to = as_range(destination)
        length = to.length if bytes is None else bytes
        command = new("bp_fill_command", kind=abi.BP_COMMAND_FILL, pattern_bytes=4)
        command.pattern = pattern & 0xFFFFFFFF
        self._range(command.destination, Range(to.buffer, to.offset, length), written=True)
        self._add(command)

    def timestamp(self, destination: Place) -> None:
        """Write the device's clock, u64 nanoseconds, into the first 8 bytes of a place."""
        to = as_range(destination)
        command = new("bp_timestamp_command", kind=abi.BP_COMMAND_TIMESTAMP)
        self._range(command.destination, Range(to.buffer, to.offset, 8), written=True)
        self._add(command)

    def kept(self) -> tuple[Any, ...]:
        """What it keeps alive now."""
        return tuple(self._keep)

    def pointers(self) -> Any:
        """`const bp_command *const *` of all commands, made when first asked."""
        if self._pointers is None:
            prefixes = [ffi.cast("const bp_command *", command) for command in self._commands]
            self._pointers = ffi.new("const bp_command *[]", prefixes)
        return self._pointers

    def _add(self, command: Any, *keep: Any) -> None:
        self._commands.append(command)
        self._keep += keep
        self._pointers = None

    def _range(self, place: Any, span: Range, *, written: bool) -> None:
        place.memory = span.buffer.handle
        try:
            place.offset, place.length = span.offset, span.length
        except OverflowError as cause:
            raise InvalidArgument(f"a range of {span.length} bytes at {span.offset}") from cause
        self._keep.append(span.buffer)
        (self._writes if written else self._reads).append(span)

    def _argument(self, place: Any, argument: Argument) -> None:
        if argument is None:
            place.kind = abi.BP_ARGUMENT_RANGE
        elif isinstance(argument, Tensor | Buffer | Range):
            place.kind = abi.BP_ARGUMENT_RANGE
            self._range(place.range, as_range(argument), written=True)
        elif isinstance(argument, bytes | np.generic):
            raw = argument if isinstance(argument, bytes) else argument.tobytes()
            data = ffi.new("char[]", raw)
            place.kind, place.bytes, place.data = abi.BP_ARGUMENT_BYTES, len(raw), data
            self._keep.append(data)
        else:
            raise InvalidArgument(
                f"a launch argument cannot be {argument!r}",
                remedy="give a tensor, a buffer, bytes, or a number as U32(3) or F32(0.5)",
            )


def _three(counts: Sequence[int], what: str) -> list[int]:
    if not 1 <= len(counts) <= 3 or any(not 1 <= n < 1 << 32 for n in counts):
        raise InvalidArgument(f"a {what} of {list(counts)}", remedy="give 1 to 3 numbers from 1")
    return [*counts, *[1] * (3 - len(counts))]
