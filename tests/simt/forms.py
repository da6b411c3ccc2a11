"""A kernel that runs each lanewise form of the table on hard operands.

The operands of 32 lanes are a rotation of each type's interesting values, another for
each operand and each block, so that pairs meet. Both engines run the kernel and every
register is compared; what the results should be is `test_exact`'s and `test_integer`'s
matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from bedplate.simt.operands import _types
from bedplate.simt.scalar import SCALARS
from bedplate.simt.signature import table
from bedplate.simt.signature.base import Form

SINGLES = """
00000000 80000000 3F800000 BF800000 00000001 80000001 007FFFFF 00800000 7F7FFFFF 7F800000
FF800000 7FC00001 7F800001 FFC12345 3F800800 40490FDB C2F6E979 7E800001 7F000001 3EAAAAAB
80800000 34000000 4B7FFFFF 4F000000 CF000000 3F7FFFFF 00000002 0B000000 33D6BF95
"""
DOUBLES = """
0000000000000000 8000000000000000 3FF0000000000000 BFF0000000000000 0000000000000001
8000000000000001 000FFFFFFFFFFFFF 0010000000000000 7FEFFFFFFFFFFFFF 7FF0000000000000
FFF0000000000000 7FF8000000000001 7FF0000000000001 FFF8123456789ABC 400921FB54442D18
3FD5555555555555 C05EDCCCCCCCCCCD 3FEFFFFFFFFFFFFF 41DFFFFFFFC00000 C1E0000000000000
3CA0000000000001 0020000000000001
"""
HALVES = """
0000 8000 3C00 BC00 0001 8001 03FF 0400 7BFF 7C00 FC00 7E01 7D01 FE12 3555 4248 C2F7 3BFF
3F80 BF80 007F 0080 7F7F 7F80 FF80 7FC1 7F81 4049
"""
FLOATS = {
    kind: [int(word, 16) for word in text.split()]
    for kind, text in (("f16", HALVES), ("bf16", HALVES), ("f32", SINGLES), ("f64", DOUBLES))
}
WHOLE = (0, 1, 2, 3, 5, 7, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 32767, 32768, 65535)
EXTREMES = (-1, -2, -3, -128, -32768, (1 << 31) - 1, -(1 << 31), (1 << 63) - 1, -(1 << 63))


def values(kind: str, start: int) -> list[int]:
    """32 operands of a type as bits, beginning somewhere in its list."""
    scalar = SCALARS[kind]
    listed: Sequence[int] = FLOATS.get(kind) or (*WHOLE, *EXTREMES, 0x12345678, 0xDEADBEEF, 20)
    return [listed[(start + lane) % len(listed)] & scalar.mask for lane in range(32)]


def spellings(form: Form) -> list[str]:
    """Names of a form in which every choice of every place stands at least once."""
    widest = max((len(slot.choices) + slot.optional for slot in form.slots), default=1)
    found = []
    for turn in range(widest):
        name = form.opcode
        for place, slot in enumerate(form.slots):
            choices = [*slot.choices, *([""] if slot.optional else [])]
            chosen = choices[(turn + place * (turn // len(choices))) % len(choices)]
            name += f".{chosen}" if chosen else ""
        found.append(name)
    return list(dict.fromkeys(found))


def lanewise() -> Iterator[tuple[str, Form, dict[str, str]]]:
    """Every lanewise form, spelled often enough, with what stands in its places."""
    for form in table.FORMS:
        if form.lanewise and form.opcode != "cvta":
            for name in spellings(form):
                slots = form.match(name.split(".")[1:])
                assert slots is not None, name
                yield name, form, slots


def kernel(chosen: Sequence[tuple[str, Form, dict[str, str]]]) -> tuple[str, np.ndarray]:
    """A kernel that runs the instructions, and the table of operands that it reads."""
    head = [".version 9.0", ".target sm_90", ".address_size 64"]
    head.append(".visible .entry k(.param .u64 table)\n{")
    body = ["ld.param.u64 %rd1, [table];", "mov.u32 %t, %tid.x;", "mov.u32 %c, %ctaid.x;"]
    body += ["mad.lo.u32 %t, %c, 32, %t;", "mul.wide.u32 %rd2, %t, 8;"]
    body += ["add.s64 %rd1, %rd1, %rd2;", "setp.lt.u32 %q, %t, 17;"]
    declared = [".reg .b32 %t, %c;", ".reg .b64 %rd1, %rd2, %x;", ".reg .pred %q;"]
    rows: list[list[int]] = []
    for number, (name, form, slots) in enumerate(chosen):
        types = _types(form, slots)
        inputs, outputs = [], []
        for place in form.inputs:
            if place.kind == "carry":
                continue
            kind = types[place.name].name
            if kind == "pred":
                inputs.append("%q")
                continue
            register = f"%i{number}{place.name}"
            declared.append(f".reg .{_register(kind)} {register};")
            body.append(f"ld.global.{_loaded(kind)} {register}, [%rd1+{len(rows) * 1024}];")
            rows.append([v for block in range(4) for v in values(kind, 5 * len(rows) + 9 * block)])
            inputs.append(register)
        for place in form.outputs:
            if place.kind == "carry":
                continue
            kind = types[place.name].name
            declared.append(f".reg .{_register(kind)} %o{number}{place.name};")
            outputs.append(f"%o{number}{place.name}")
        body.append(f"{name} {'|'.join(outputs)}, {', '.join(inputs)};")
    text = "\n".join([*head, *declared, *body, "ret;", "}"])
    return text, np.array(rows or [[0] * 128], np.uint64)


def _register(kind: str) -> str:
    """The type of a register that holds a type; there are none of 8 bits."""
    return f"{kind[0]}16" if kind[1:] == "8" else _loaded(kind)


def _loaded(kind: str) -> str:
    """Half floats are loaded as bits."""
    return "b16" if kind in ("f16", "bf16") else kind
