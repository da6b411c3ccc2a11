"""What an instruction looks like: the one description that everything else is made of.

A form is a line of text, so that the table reads like the ISA's own syntax lines:

    add  rnd=rn|rz|rm|rp? ftz? sat? T=f32   : d = a, b

Left of the colon stand the opcode and its modifiers in order: a bare word must be
there, `?` makes it optional, `name=x|y` is a choice of that name. Right of it stand the
operands: outputs before `=`, then inputs. An operand's type is `T` unless `:` says
another: `U` (the second type), `2T` (twice as wide), or a scalar. `[m]` is an address,
`^c` the carry flag, which is not written in the text,
`d*` a vector when a `.v` modifier is there, `d*4` always one of four, `a>` may be a wider
register, `&x` a name.

The parser accepts exactly what the table says; the engines, the reference page and the
coverage report read the same forms.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from bedplate.simt.scalar import SCALARS

OperandKind = Literal["value", "address", "name", "carry"]


@dataclass(frozen=True, slots=True)
class Slot:
    """One place for a modifier; without choices it is the word `name` itself."""

    name: str
    choices: tuple[str, ...]
    optional: bool

    @property
    def written(self) -> str:
        """As the reference page shows it."""
        text = self.choices[0] if len(self.choices) == 1 else "{" + ",".join(self.choices) + "}"
        return f"[.{text}]" if self.optional else f".{text}"


@dataclass(frozen=True, slots=True)
class Operand:
    """One place for an operand."""

    name: str
    type: str
    kind: OperandKind
    optional: bool
    vector: bool
    wider: bool
    count: int = 0
    """Elements of a vector; 0: as many as the modifier says."""


@dataclass(frozen=True)
class Form:
    """One line of the table.

    `group` is the class of instructions, which names the file of the table, of the
    lowering and of the interpreter. `lanewise`: a lane's result depends on that lane's
    operands only, so equal operands give equal results. `arithmetic`: a result of f16 or
    f32 that is not a number is the canonical one, whatever the operands' payloads were.
    """

    group: str
    opcode: str
    slots: tuple[Slot, ...]
    outputs: tuple[Operand, ...]
    inputs: tuple[Operand, ...]
    lanewise: bool
    arithmetic: bool

    @cached_property
    def written(self) -> str:
        """The opcode with its modifiers, as people read it."""
        return self.opcode + "".join(slot.written for slot in self.slots)

    def match(self, parts: Sequence[str]) -> dict[str, str] | None:
        """Slot name to what stands there, or None when this form does not take `parts`."""
        return _match(self.slots, tuple(parts))

    def reach(self, parts: Sequence[str]) -> int:
        """How many of `parts` this form accepts from the left; for an error's words."""
        for count in range(len(parts), 0, -1):
            for end in range(len(self.slots) + 1):
                if _match(self.slots[:end], tuple(parts[:count])) is not None:
                    return count
        return 0

    def spellings(self) -> Iterator[str]:
        """Every full name that this form takes."""
        yield from _spell(self.opcode, self.slots)


def _match(slots: tuple[Slot, ...], parts: tuple[str, ...]) -> dict[str, str] | None:
    if not slots:
        return None if parts else {}
    slot, rest = slots[0], slots[1:]
    if parts and parts[0] in slot.choices:
        found = _match(rest, parts[1:])
        if found is not None:
            return {slot.name: parts[0], **found}
    return _match(rest, parts) if slot.optional else None


def _spell(prefix: str, slots: tuple[Slot, ...]) -> Iterator[str]:
    if not slots:
        yield prefix
        return
    if slots[0].optional:
        yield from _spell(prefix, slots[1:])
    for choice in slots[0].choices:
        yield from _spell(f"{prefix}.{choice}", slots[1:])


def forms(
    group: str,
    text: str,
    *,
    lanewise: bool = False,
    arithmetic: bool = False,
    words: Mapping[str, str] | None = None,
) -> tuple[Form, ...]:
    """The forms of a text, one a line; `$NAME` stands for a list in `words`."""
    for name, listed in (words or {}).items():
        text = re.sub(rf"\${name}\b", listed.replace(" ", "|"), text)
    made = []
    for line in text.strip().splitlines():
        head, _, tail = line.partition(" :")
        opcode, *modifiers = head.split()
        outputs, equals, inputs = tail.rpartition("=")
        made.append(
            Form(
                group,
                opcode,
                tuple(map(_slot, modifiers)),
                tuple(_operands(outputs)) if equals else (),
                tuple(_operands(inputs)),
                lanewise,
                arithmetic,
            )
        )
    return tuple(made)


def _slot(text: str) -> Slot:
    optional = text.endswith("?")
    name, equals, choices = text.rstrip("?").partition("=")
    return Slot(name, tuple(choices.split("|")) if equals else (name,), optional)


_OPERAND = re.compile(r"(&|\^)?(\[)?(\w+)\]?(\*\d*)?(>)?(?::(\w+))?(\?)?")


_KINDS: dict[str | None, OperandKind] = {None: "value", "&": "name", "^": "carry"}


def _operands(text: str) -> Iterator[Operand]:
    for item in filter(None, (part.strip() for part in text.split(","))):
        found = _OPERAND.fullmatch(item)
        if found is None:
            raise ValueError(f"the signature table has an operand {item!r}")
        named, bracket, name, vector, wider, scalar, optional = found.groups()
        kind: OperandKind = "address" if bracket else _KINDS[named]
        scalar = "pred" if kind == "carry" else scalar or "T"
        if scalar not in ("T", "U", "2T") and scalar not in SCALARS:
            raise ValueError(f"the signature table has a type {scalar!r}")
        count = int((vector or "*")[1:] or 0)
        yield Operand(name, scalar, kind, bool(optional), bool(vector), bool(wider), count)
