"""`mov` between a register and the parts of it in braces: `mov.b32 %r1, {%rs1, %rs2};`.

Which of the two it is, only the operands say; so it is read here, not by the table's
modifiers. The forms have opcodes that no text can name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from bedplate.simt.module import Guard, Instruction, Place, Register, SourceLine, Value, Vector
from bedplate.simt.scalar import SCALARS, Scalar
from bedplate.simt.signature.base import Form, Operand, Slot

if TYPE_CHECKING:
    from bedplate.simt.parser import Parser

WHOLE = ("b32", "b64")
_LONGEST = 12
"""Words of four parts, their commas, signs, and the brace that closes them."""
_SLOTS = (Slot("T", WHOLE, False),)
_ONE = Operand("d", "T", "value", False, False, False)
_PARTS = Operand("a", "U", "value", False, True, False)
PACK = Form("packing", "mov.pack", _SLOTS, (_ONE,), (_PARTS,), False, False)
UNPACK = Form(
    "packing",
    "mov.unpack",
    _SLOTS,
    (Operand("d", "U", "value", False, True, False),),
    (Operand("a", "T", "value", False, False, False),),
    False,
    False,
)


def braced(parser: Parser, name: str) -> bool:
    """Whether a `mov` has parts in braces."""
    if name.removeprefix("mov.") not in WHOLE:
        return False
    texts = [word.text for word in parser.following(3)]
    return texts[0] == "{" or texts[1:] == [",", "{"]


def read(
    parser: Parser,
    number: int,
    place: Place,
    guard: Guard | None,
    source: SourceLine | None,
    name: str,
    value: Callable[[Scalar], Value],
) -> Instruction:
    """The instruction after its name; `value` reads one operand of a type."""
    kind = name.removeprefix("mov.")
    whole = SCALARS[kind]
    if parser.at("{"):
        parts, part = _parts(parser, whole, output=True, value=value)
        parser.expect(",")
        operands = {"d": parts, "a": value(whole)}
        form, types = UNPACK, {"T": whole, "U": part, "d": part, "a": whole}
    else:
        register = value(whole)
        if not isinstance(register, Register):
            parser.fail(f"{name} writes to a register", place)
        parser.expect(",")
        parts, part = _parts(parser, whole, output=False, value=value)
        operands = {"d": register, "a": parts}
        form, types = PACK, {"T": whole, "U": part, "d": whole, "a": part}
    parser.expect(";")
    return Instruction(number, form, {"T": kind}, types, operands, guard, place, source, name)


def _parts(
    parser: Parser, whole: Scalar, *, output: bool, value: Callable[[Scalar], Value]
) -> tuple[Vector, Scalar]:
    """The operands in braces, and the type of each: their number says its width."""
    where = parser.expect("{").place
    texts = [word.text for word in parser.following(_LONGEST)]
    count = texts[: texts.index("}")].count(",") + 1 if "}" in texts else 0
    if count not in (2, 4) or whole.bits // count not in (16, 32):
        parser.fail(f"{count} parts do not make .{whole.name}", where)
    part = SCALARS[f"b{whole.bits // count}"]
    found: list[Value | None] = []
    while not parser.accept("}"):
        if output and parser.accept("_"):
            found.append(None)
        else:
            made = value(part)
            if output and not isinstance(made, Register):
                parser.fail("a part that is written must be a register", where)
            found.append(made)
        if not parser.at("}"):
            parser.expect(",")
    return Vector(tuple(found)), part
