"""What a PTX text says: variables, functions, instructions with typed operands.

Everything is resolved: a register is an object, an immediate the bits of its type, an
instruction the form of the table that took it. Nothing here knows an engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from bedplate.simt.scalar import Scalar
from bedplate.simt.signature.base import Form


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the PTX text, from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A place in the source that the PTX was made from, as `.loc` says."""

    file: str
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Register:
    """A register of a function; `index` is its number there, names may repeat in scopes."""

    name: str
    type: Scalar
    index: int


@dataclass(frozen=True, slots=True)
class Immediate:
    """A constant, as the bits of `type`."""

    bits: int
    type: Scalar


@dataclass(frozen=True, slots=True)
class Special:
    """A register that the machine sets."""

    name: str
    type: Scalar


@dataclass(frozen=True, slots=True)
class Variable:
    """A named piece of memory; `space` is param, shared, local, const or global."""

    name: str
    space: str
    type: Scalar
    size: int
    align: int
    initial: bytes | None = None
    external: bool = False


@dataclass(frozen=True, slots=True)
class VariableAddress:
    """The address of a variable, in its own space, plus `offset` bytes."""

    variable: Variable
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Address:
    """`[base + offset]`."""

    base: Register | VariableAddress | Immediate
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Vector:
    """`{a, b, ...}`; a None is the sink `_`."""

    elements: tuple[Value | None, ...]


@dataclass(frozen=True, slots=True)
class Negated:
    """`!p`."""

    register: Register


@dataclass(frozen=True, slots=True)
class Name:
    """A label, or a function."""

    text: str


Value = Register | Immediate | Special | VariableAddress | Negated
Operand = Value | Address | Vector | Name


@dataclass(frozen=True, slots=True)
class Guard:
    """`@p` or `@!p`."""

    register: Register
    negated: bool


@dataclass(frozen=True)
class Instruction:
    """One instruction; operands by the names that its form gives them.

    `number` counts the instructions of a function, in the order of the text.
    """

    number: int
    form: Form
    slots: Mapping[str, str]
    types: Mapping[str, Scalar]
    operands: Mapping[str, Operand | None]
    guard: Guard | None
    place: Place
    source: SourceLine | None
    text: str

    @property
    def opcode(self) -> str:
        """The first part of the name."""
        return self.form.opcode

    @cached_property
    def type(self) -> Scalar:
        """The type that the slot T holds."""
        return self.types["T"]

    def has(self, modifier: str) -> bool:
        """Whether an optional word is there."""
        return modifier in self.slots

    @cached_property
    def outputs(self) -> tuple[tuple[Register, Scalar], ...]:
        """The registers that it writes, each with the type it is written as."""
        found: list[tuple[Register, Scalar]] = []
        for place in self.form.outputs:
            operand = self.operands.get(place.name)
            items = operand.elements if isinstance(operand, Vector) else (operand,)
            found += [(r, self.types[place.name]) for r in items if isinstance(r, Register)]
        return tuple(found)

    @cached_property
    def inputs(self) -> tuple[Operand, ...]:
        """What it reads, without its guard; vectors taken apart."""
        found: list[Operand] = []
        for place in self.form.inputs:
            operand = self.operands.get(place.name)
            if isinstance(operand, Vector):
                found += [item for item in operand.elements if item is not None]
            elif operand is not None:
                found.append(operand)
        return tuple(found)

    @cached_property
    def reads(self) -> tuple[Register, ...]:
        """The registers that it reads, its guard's among them."""
        found = [] if self.guard is None else [self.guard.register]
        for operand in self.inputs:
            if isinstance(operand, Register):
                found.append(operand)
            elif isinstance(operand, Negated):
                found.append(operand.register)
            elif isinstance(operand, Address) and isinstance(operand.base, Register):
                found.append(operand.base)
        return tuple(found)


@dataclass(frozen=True)
class Function:
    """A kernel (`entry`) or a device function.

    `labels` maps a name to the number of the instruction it stands before. `limits` are
    the directives `.maxntid`, `.reqntid` and the like.
    """

    name: str
    entry: bool
    parameters: Sequence[Variable]
    variables: Sequence[Variable]
    registers: Sequence[Register]
    instructions: Sequence[Instruction]
    labels: Mapping[str, int]
    limits: Mapping[str, tuple[int, ...]]
    place: Place
    results: Sequence[Variable] = ()


@dataclass(frozen=True)
class Module:
    """A PTX text."""

    name: str
    version: tuple[int, int]
    target: str
    variables: Mapping[str, Variable]
    functions: Mapping[str, Function]
    files: Mapping[int, str] = field(default_factory=dict)

    @property
    def kernels(self) -> list[str]:
        """The names of the entries, in the order of the text."""
        return [name for name, function in self.functions.items() if function.entry]
