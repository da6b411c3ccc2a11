"""Ops of `bp.ops.1`: attributes, plans, and the order of tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bedplate.hal import abi
from bedplate.hal.buffer import Tensor
from bedplate.hal.errors import InvalidArgument
from bedplate.hal.native import array, ffi, new, read_text

if TYPE_CHECKING:
    from bedplate.hal.device import Device

_IDS = {name: getattr(abi, f"BP_OP_{name.upper()}") for name in abi.OP_ATTRIBUTES}
_HIDDEN = {"head", "pad", "reserved"}


@dataclass(frozen=True, slots=True)
class TensorRole:
    """One tensor of an op: its name, whether it may be absent, whether it is written."""

    name: str
    optional: bool
    written: bool


def op_names() -> list[str]:
    """The vocabulary, in the order of its numbers."""
    return sorted(_IDS, key=_IDS.__getitem__)


def op_tensors(op: str) -> list[TensorRole]:
    """The tensors of an op in order; InvalidArgument for an unknown op."""
    _known(op)
    words = abi.OP_TENSORS[op].split()
    return [TensorRole(word.rstrip("?!"), "?" in word, "!" in word) for word in words]


def pack_attributes(op: str, **values: Any) -> bytes:
    """The packed attribute struct of `op`.

    Fields left out are zero. Raises InvalidArgument for an unknown op, an
    unknown attribute, or a value of the wrong type.
    """
    _known(op)
    kind = abi.OP_ATTRIBUTES[op]
    known = set(abi.LAYOUT[kind][1]) - _HIDDEN
    if wrong := sorted(set(values) - known):
        names = ", ".join(sorted(known)) or "none"
        raise InvalidArgument(f"{op} has no attribute {wrong[0]!r}", remedy=f"it has {names}")
    packed = new(kind)
    for name, value in values.items():
        try:
            setattr(packed, name, value)
        except (TypeError, OverflowError) as cause:
            raise InvalidArgument(f"attribute {name} of {op} is {value!r}: {cause}") from cause
    return bytes(ffi.buffer(packed))


def arrange(
    op: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor], named: Mapping[str, Any]
) -> list[Tensor | None]:
    """The op's tensor list from inputs, outputs and optional ones by name.

    Inputs fill the tensors that must be there and are not pure outputs, in
    order; a tensor of an op that works in place counts as an output.
    """
    roles = op_tensors(op)
    needed_in = [role for role in roles if not role.optional and not role.written]
    needed_out = [role for role in roles if not role.optional and role.written]
    if len(inputs) != len(needed_in) or len(outputs) != len(needed_out):
        raise InvalidArgument(
            f"{op} takes {len(needed_in)} inputs and {len(needed_out)} outputs, "
            f"got {len(inputs)} and {len(outputs)}",
            remedy=f"in order: {abi.OP_TENSORS[op]}",
        )
    rest_in, rest_out = iter(inputs), iter(outputs)
    arranged: list[Tensor | None] = []
    for role in roles:
        if role.optional:
            arranged.append(named.get(role.name))
        else:
            arranged.append(next(rest_out if role.written else rest_in))
    return arranged


class OpPlan:
    """An op checked for exact shapes on a device; use `device.plan_op`.

    `workspace_bytes` is what each command of it must bring, `library` says
    whose code runs it. Only shapes, strides and dtypes of the tensors count.
    """

    def __init__(
        self,
        device: Device,
        name: str,
        tensors: Sequence[Tensor | None],
        attributes: bytes = b"",
    ) -> None:
        _known(name)
        self.device = device
        self.name = name
        self.handle = 0
        self._keep: list[Any] = []
        pointers = [ffi.NULL if tensor is None else self._describe(tensor) for tensor in tensors]
        described = ffi.new("const bp_tensor *[]", pointers)
        raw = ffi.from_buffer(attributes) if attributes else ffi.NULL
        out = new("bp_op_plan")
        status = device.ops.plan(
            device.handle, _IDS[name], described, len(tensors), raw, len(attributes), out
        )
        self._keep.clear()
        device.check(status)
        self.handle = int(out.plan)
        self.tensor_count = len(tensors)
        self.workspace_bytes = int(out.workspace_bytes)
        self.library = read_text(out.library)
        self.deterministic = bool(out.flags & abi.BP_OP_DETERMINISTIC)
        self.capturable = bool(out.flags & abi.BP_OP_CAPTURABLE)

    def _describe(self, tensor: Tensor) -> Any:
        rank = len(tensor.shape)
        shape = array("int64_t", tensor.shape, "shape")
        stride = array("int64_t", tensor.strides, "strides")
        described = new("bp_tensor", dtype=int(tensor.dtype), rank=rank)
        described.shape, described.stride = shape, stride
        self._keep += [shape, stride, described]
        return described

    def release(self) -> None:
        """Give it back; recorded commands of it become stale. Twice is fine."""
        if self.handle and not self.device.closed:
            handle, self.handle = self.handle, 0
            self.device.ops.release(self.device.handle, handle)

    def __del__(self) -> None:
        if hasattr(self, "handle"):
            self.release()


def _known(op: str) -> None:
    if op not in _IDS:
        raise InvalidArgument(f"there is no op {op!r}", remedy=f"use one of {', '.join(_IDS)}")
