"""One instruction of a PTX text: its name by the table, its operands by their places."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

from bedplate.core import nearest
from bedplate.simt import call, packing
from bedplate.simt.errors import PtxUnsupported
from bedplate.simt.lexer import Word, shortened
from bedplate.simt.literal import float_bits, integer_bits
from bedplate.simt.module import (
    Address,
    Guard,
    Immediate,
    Instruction,
    Name,
    Negated,
    Operand,
    Place,
    Register,
    SourceLine,
    Special,
    Value,
    VariableAddress,
    Vector,
)
from bedplate.simt.scalar import SCALARS, Scalar, fits, widened
from bedplate.simt.signature import base, table
from bedplate.simt.signature.special import SPECIAL

Closed = TypeVar("Closed")

if TYPE_CHECKING:
    from bedplate.simt.parser import Parser


def instruction(parser: Parser, number: int, source: SourceLine | None) -> Instruction:
    """Read one instruction, with its guard, up to its semicolon."""
    place = parser.word.place
    guard = _guard(parser) if parser.accept("@") else None
    name = _name(parser)
    found = table.find(name)
    if not found:
        what, remedy = table.refusal(name)
        where = f"{parser.name}:{place.line}:{place.column}"
        raise PtxUnsupported(f"{where}: {shortened(what)}", remedy=remedy)
    form, slots = found[0]
    if form.opcode == "call":
        return call.read(parser, number, place, guard, source, name)
    if form.opcode == "mov" and packing.braced(parser, name):
        return packing.read(
            parser, number, place, guard, source, name, lambda kind: _value_of(parser, kind)
        )
    types = _types(form, slots)
    operands = _Operands(parser, form, slots, types).read(name)
    parser.expect(";")
    if slots.get("space") == "param" and _names_local(operands.get("m")):
        slots = {**slots, "space": "local"}  # a parameter of a call lies with the caller
    _check_space(parser, name, slots, operands, place)
    if form.opcode == "cp":
        _check_size(parser, name, operands)
    return Instruction(number, form, slots, types, operands, guard, place, source, name)


def _value_of(parser: Parser, kind: Scalar) -> Value:
    """One operand of a type, outside of a form's places."""
    place = base.Operand("a", kind.name, "value", False, False, False)
    return _Operands(parser, packing.PACK, {}, {"a": kind})._value(place)


def _names_local(address: Operand | None) -> bool:
    base = address.base if isinstance(address, Address) else None
    return isinstance(base, VariableAddress) and base.variable.space == "local"


def _check_size(parser: Parser, name: str, found: Mapping[str, Operand | None]) -> None:
    """`cp.async` copies 4, 8 or 16 bytes a lane, beside the first-level cache only 16."""
    size = found.get("n")
    if "d" not in found:
        return
    sizes = (16,) if ".cg." in name else (4, 8, 16)
    if not isinstance(size, Immediate) or size.bits not in sizes:
        listed = " or ".join(map(str, sizes))
        parser.fail(f"{name} copies a constant number of bytes, {listed}")


def _check_space(
    parser: Parser,
    name: str,
    slots: Mapping[str, str],
    operands: Mapping[str, Operand | None],
    place: Place,
) -> None:
    """A variable is accessed in its own space, and parameters only by their names."""
    address, space = operands.get("m"), slots.get("space")
    if not isinstance(address, Address) or space is None:
        return
    if isinstance(address.base, VariableAddress):
        variable = address.base.variable
        if variable.space != space.removesuffix("::cta"):
            parser.fail(f"{name} names {variable.name}, which is .{variable.space}", place)
        if space == "param" and name.startswith("st"):
            parser.fail(f"{name} writes to the parameter {variable.name} of a kernel", place)
        if space == "param" and not 0 <= address.offset <= variable.size - _bytes(name):
            parser.fail(f"{name} reads beyond the parameter {variable.name}", place)
    elif space == "param":
        parser.fail(f"{name} takes the name of a parameter", place)


def _bytes(name: str) -> int:
    """Of all that a load such as `ld.param.v4.u64` takes."""
    parts = name.split(".")
    count = next((int(part[1:]) for part in parts if part in ("v2", "v4", "v8")), 1)
    return count * int(parts[-1].lstrip("abcdefghijklmnopqrstuvwxyz")) // 8


def _guard(parser: Parser) -> Guard:
    negated = parser.accept("!")
    word = parser.expect_name("a predicate")
    register = parser.register(word.text)
    if register is None or register.type.kind != "pred":
        parser.fail(f"{word.text} is not a predicate register", word.place)
    return Guard(register, negated)


def _name(parser: Parser) -> str:
    """`mad.lo.s32`, and `shared::cta` inside of it."""
    parts = [parser.expect_name("an instruction").text]
    while parser.accept("."):
        part = parser.take()
        text = part.text
        while parser.at(":"):
            parser.take()
            parser.expect(":")
            text += f"::{parser.take().text}"
        if part.kind not in ("name", "integer"):
            parser.fail(f"{part.text!r} is not a modifier", part.place)
        parts.append(text)
    return ".".join(parts)


def _types(form: base.Form, slots: Mapping[str, str]) -> dict[str, Scalar]:
    """The type of each operand by its name, and of the slots T and U."""
    types = {slot: SCALARS[slots[slot]] for slot in ("T", "U") if slot in slots}
    for place in (*form.outputs, *form.inputs):
        if place.type in SCALARS:
            types[place.name] = SCALARS[place.type]
        elif place.type == "2T":
            types[place.name] = widened(types["T"])
        elif place.type in types:
            types[place.name] = types[place.type]
    return types


class _Operands:
    """Reads the operands of one instruction."""

    def __init__(
        self,
        parser: Parser,
        form: base.Form,
        slots: Mapping[str, str],
        types: Mapping[str, Scalar],
    ) -> None:
        self.parser = parser
        self.form = form
        self.types = types
        self.lanes = int(slots["vec"][1]) if "vec" in slots else 1

    def read(self, name: str) -> dict[str, Operand | None]:
        parser, form = self.parser, self.form
        found: dict[str, Operand | None] = {}
        outputs, inputs = list(form.outputs), list(form.inputs)
        for position, place in enumerate(outputs):
            if place.kind == "carry":
                found[place.name] = parser.carry()
                continue
            if position and not parser.accept("|"):
                found[place.name] = None
                continue
            found[place.name] = self._output(place)
        for position, place in enumerate(inputs):
            if place.kind == "carry":
                found[place.name] = parser.carry()
                continue
            if (position or outputs) and not parser.accept(","):
                if not place.optional:
                    parser.fail(f"{name} lacks its operand {place.name}")
                found[place.name] = None
                continue
            found[place.name] = self._input(place)
        if not parser.at(";"):
            parser.fail(f"{name} has no operand for {parser.word.text!r}")
        return found

    def _output(self, place: base.Operand) -> Operand | None:
        if place.vector and (self.lanes > 1 or place.count):
            return self._vector(place, output=True)
        if place.vector and self.parser.accept("{"):
            return self._closed(self._destination(place))
        return self._destination(place)

    def _closed(self, only: Closed) -> Closed:
        """A list of one in braces is the one; Triton writes `ld.global.b32 { %r1 }` so."""
        self.parser.expect("}")
        return only

    def _destination(self, place: base.Operand) -> Register | None:
        """A register to write; `_` is none."""
        parser = self.parser
        word = parser.expect_name("a register")
        if word.text == "_":
            return None
        register = parser.register(word.text)
        if register is None:
            parser.fail(f"{word.text} is not a register of this function", word.place)
        self._check(word.text, word.place, register.type, place)
        return register

    def _check(self, text: str, where: Place, got: Scalar, place: base.Operand) -> None:
        wanted = self.types[place.name]
        if not fits(got, wanted, wider=place.wider):
            self.parser.fail(
                f"{text} is .{got.name}, and operand {place.name} of {self.form.opcode} "
                f"is .{wanted.name}",
                where,
            )

    def _vector(self, place: base.Operand, *, output: bool) -> Vector:
        parser = self.parser
        where = parser.expect("{").place
        elements: list[Value | None] = []
        while not parser.accept("}"):
            elements.append(self._destination(place) if output else self._value(place))
            if not parser.at("}"):
                parser.expect(",")
        count = place.count or self.lanes
        if len(elements) != count:
            wanted = f"{count} must be" if place.count else f".v{count} is"
            parser.fail(f"{len(elements)} operands stand where {wanted}", where)
        return Vector(tuple(elements))

    def _input(self, place: base.Operand) -> Operand:
        parser = self.parser
        if place.kind == "name":
            return Name(parser.expect_name("a name").text)
        if place.kind == "address":
            return self._address()
        if place.vector and (self.lanes > 1 or place.count):
            return self._vector(place, output=False)
        if place.vector and self.parser.accept("{"):
            return self._closed(self._value(place))
        return self._value(place)

    def _value(self, place: base.Operand) -> Value:
        parser, wanted = self.parser, self.types[place.name]
        word = parser.word
        if parser.accept("!"):
            name = parser.expect_name("a predicate")
            register = parser.register(name.text)
            if register is None or wanted.kind != "pred" or register.type.kind != "pred":
                parser.fail(f"!{name.text} is not a predicate here", word.place)
            return Negated(register)
        if word.kind == "name":
            return self._named(place)
        return Immediate(self._immediate(wanted), wanted)

    def _immediate(self, wanted: Scalar) -> int:
        """The bits of a constant of type `wanted`."""
        parser = self.parser
        place = parser.word.place
        try:
            if parser.word.kind == "float":
                return float_bits(parser.take().text, wanted)
            if parser.at("-"):
                parser.take()
                if parser.word.kind == "float":
                    return float_bits(f"-{parser.take().text}", wanted)
                return integer_bits(-parser.expect_integer(), wanted)
            if wanted.kind == "float":
                parser.fail(f"{parser.word.text!r} is not a constant of type .{wanted.name}")
            return integer_bits(parser.expect_integer(), wanted)
        except ValueError as cause:
            parser.fail(str(cause), place)

    def _named(self, place: base.Operand) -> Value:
        parser = self.parser
        word = parser.take()
        text = _special(parser, word)
        if text in SPECIAL:
            special = Special(text, SCALARS[SPECIAL[text]])
            self._check(text, word.place, special.type, place)
            return special
        if (register := parser.register(word.text)) is not None:
            self._check(word.text, word.place, register.type, place)
            return register
        if (variable := parser.variable(word.text)) is not None:
            return VariableAddress(variable, self._offset())
        if text.startswith("%") and "." in text:
            parser.fail(f"{text} is no register; {nearest.hint(text, SPECIAL)}", word.place)
        return parser.fail(f"{word.text} is not a name of this function", word.place)

    def _offset(self) -> int:
        parser = self.parser
        if parser.accept("+"):
            return parser.expect_integer()
        return parser.expect_integer() if parser.at("-") else 0

    def _address(self) -> Address:
        parser = self.parser
        parser.expect("[")
        word = parser.word
        base: Register | VariableAddress | Immediate
        if word.kind == "integer":
            base = Immediate(parser.expect_integer(), SCALARS["u64"])
        else:
            name = parser.expect_name("an address").text
            register, variable = parser.register(name), parser.variable(name)
            if register is not None:
                base = register
                if register.type.kind not in ("bits", "unsigned", "signed") or (
                    register.type.bits not in (32, 64)
                ):
                    parser.fail(f"{name} is .{register.type.name}, not an address", word.place)
            elif variable is not None:
                base = VariableAddress(variable)
            else:
                parser.fail(f"{name} is not a name of this function", word.place)
        offset = self._offset()
        parser.expect("]")
        return Address(base, offset)


def _special(parser: Parser, word: Word) -> str:
    """`%tid.x` is three words."""
    if word.text.startswith("%") and parser.at(".") and parser.register(word.text) is None:
        parser.take()
        return f"{word.text}.{parser.expect_name('an axis').text}"
    return word.text
