"""What each op takes: tensors in order, their extents and formats, attributes.

An extent is a symbol bound by its first use ("T", "H") or derived from one
("2F", "D/2", "S+1"). Checking a call against its schema needs shapes and
format names only, so it is the same for numpy arrays and device tensors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bedplate.kernels.errors import AttributeValueError, DtypeError, ShapeError

_EXTENT = re.compile(r"(?P<times>\d+)?(?P<symbol>[A-Z]\w*)(/(?P<over>\d+))?(\+(?P<plus>\d+))?")


@dataclass(frozen=True)
class TensorRule:
    """One tensor of an op. `role` is in, out or inout."""

    name: str
    shape: tuple[str | int, ...]
    formats: tuple[str, ...]
    role: str = "in"
    optional: bool = False


@dataclass(frozen=True)
class AttributeRule:
    """One attribute of `kind` f32, u32 or u64; None as default makes it required."""

    name: str
    kind: str
    default: float | int | None
    minimum: float
    maximum: float


@dataclass(frozen=True)
class TensorFacts:
    """What a schema looks at: logical shape and format name."""

    shape: tuple[int, ...]
    format: str


@dataclass(frozen=True)
class Schema:
    """The full signature of one op."""

    name: str
    tensors: tuple[TensorRule, ...]
    attributes: tuple[AttributeRule, ...] = ()

    @property
    def inputs(self) -> tuple[TensorRule, ...]:
        """Rules of the tensors that are read (in and inout), in order."""
        return tuple(t for t in self.tensors if t.role != "out")

    @property
    def outputs(self) -> tuple[TensorRule, ...]:
        """Rules of the tensors that are written (out and inout), in order."""
        return tuple(t for t in self.tensors if t.role != "in")

    def index(self, name: str) -> int:
        """Position of the tensor `name`."""
        return [t.name for t in self.tensors].index(name)

    def bind(self, tensors: Sequence[TensorFacts | None]) -> dict[str, int]:
        """Check all tensors and return the extent of every symbol.

        Raises `ShapeError` or `DtypeError` naming the op, tensor and value.
        """
        if len(tensors) != len(self.tensors):
            names = ", ".join(t.name + ("?" if t.optional else "") for t in self.tensors)
            raise ShapeError(
                f"{self.name} takes {len(self.tensors)} tensors ({names}), got {len(tensors)}"
            )
        extents: dict[str, int] = {}
        for rule, facts in zip(self.tensors, tensors, strict=True):
            if facts is None:
                if not rule.optional:
                    raise ShapeError(f"{self.name}: tensor {rule.name} is required")
                continue
            if facts.format not in rule.formats:
                raise DtypeError(
                    f"{self.name}: {rule.name} is {facts.format},"
                    f" accepted: {', '.join(rule.formats)}"
                )
            if len(facts.shape) != len(rule.shape):
                raise ShapeError(
                    f"{self.name}: {rule.name} has rank {len(facts.shape)},"
                    f" expected {_shape_text(rule.shape)}"
                )
            for axis, (extent, size) in enumerate(zip(rule.shape, facts.shape, strict=True)):
                self._bind_extent(rule, axis, extent, size, extents)
        return extents

    def _bind_extent(
        self, rule: TensorRule, axis: int, extent: str | int, size: int, extents: dict[str, int]
    ) -> None:
        where = f"{self.name}: {rule.name} is {size} long in axis {axis}"
        if isinstance(extent, int):
            if size != extent:
                raise ShapeError(f"{where}, expected {extent}")
            return
        match = _EXTENT.fullmatch(extent)
        assert match is not None, extent
        times, over = int(match["times"] or 1), int(match["over"] or 1)
        scaled = (size - int(match["plus"] or 0)) * over
        symbol = match["symbol"]
        if scaled % times or scaled < 0:
            raise ShapeError(f"{where}, which is no value of {extent}")
        if extents.setdefault(symbol, scaled // times) != scaled // times:
            raise ShapeError(f"{where}, expected {extent} with {symbol} = {extents[symbol]}")

    def attribute_values(self, given: Mapping[str, float | int]) -> dict[str, float | int]:
        """Given attributes with defaults filled in; raises `AttributeValueError`."""
        known = {a.name: a for a in self.attributes}
        for name in given:
            if name not in known:
                accepted = ", ".join(known) or "none"
                raise AttributeValueError(
                    f"{self.name} has no attribute {name}, accepted: {accepted}"
                )
        values: dict[str, float | int] = {}
        for name, rule in known.items():
            value = given.get(name, rule.default)
            if value is None:
                raise AttributeValueError(f"{self.name}: attribute {name} is required")
            if not rule.minimum <= value <= rule.maximum:
                raise AttributeValueError(
                    f"{self.name}: {name} is {value}, accepted: {rule.minimum} to {rule.maximum}"
                )
            values[name] = value
        return values


def _shape_text(shape: tuple[str | int, ...]) -> str:
    return "[" + ", ".join(str(e) for e in shape) + "]"
