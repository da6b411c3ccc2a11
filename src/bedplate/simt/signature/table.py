"""The table of all forms, and the word for what is not in it."""

from __future__ import annotations

from collections import defaultdict

from bedplate.core import nearest
from bedplate.simt.signature import (
    atomic,
    carry,
    comparison,
    control,
    conversion,
    floating,
    integer,
    matrix,
    movement,
    sync,
)
from bedplate.simt.signature.base import Form

FORMS: tuple[Form, ...] = (
    *integer.FORMS,
    *carry.FORMS,
    *floating.FORMS,
    *comparison.FORMS,
    *conversion.FORMS,
    *movement.FORMS,
    *control.FORMS,
    *atomic.FORMS,
    *sync.FORMS,
    *matrix.FORMS,
)
BY_OPCODE: dict[str, list[Form]] = defaultdict(list)
for _form in FORMS:
    BY_OPCODE[_form.opcode].append(_form)


def find(name: str) -> list[tuple[Form, dict[str, str]]]:
    """The forms that take the instruction `name`, with what stands in each slot."""
    opcode, *parts = name.split(".")
    matched = ((form, form.match(parts)) for form in BY_OPCODE.get(opcode, ()))
    return [(form, slots) for form, slots in matched if slots is not None]


def refusal(name: str) -> tuple[str, str]:
    """What is wrong with an instruction that no form takes, and what is near it."""
    opcode, *parts = name.split(".")
    if opcode not in BY_OPCODE:
        return f"the instruction {opcode!r} is not supported", nearest.hint(opcode, BY_OPCODE)
    candidates = BY_OPCODE[opcode]
    best = max(candidates, key=lambda form: form.reach(parts))
    reached = best.reach(parts)
    near = f"the nearest form is {best.written}"
    fewer = (".".join([opcode, *parts[:n], *parts[n + 1 :]]) for n in range(len(parts)))
    near = next((f"the nearest form is {less}" for less in fewer if find(less)), near)
    if reached < len(parts):
        return f"{name!r} is not supported: .{parts[reached]} cannot stand there", near
    return f"{name!r} is not complete", near
