"""Offsets and sizes by the C rules of 64-bit Linux (LP64, natural alignment).

Padding that a compiler would add by itself is refused: every hole has a name,
so two compilers cannot disagree and a copy leaves no byte undefined.
"""

from __future__ import annotations

from dataclasses import dataclass

from bedplate.hal.spec.model import POINTER_BYTES, SCALARS, Declaration, Spec, SpecError, Struct


@dataclass(frozen=True)
class Layout:
    """Where the fields of a struct lie, in bytes."""

    size: int
    alignment: int
    offsets: dict[str, int]


def layouts(spec: Spec) -> dict[str, Layout]:
    """The layout of every struct of the spec; SpecError on an unnamed hole."""
    done: dict[str, Layout] = {}
    for struct in spec.structs:
        done[struct.name] = _layout(struct, done)
    return done


def _measure(field: Declaration, done: dict[str, Layout]) -> tuple[int, int]:
    if field.arguments is not None or field.stars:
        size = alignment = POINTER_BYTES
    elif field.base in SCALARS:
        size = alignment = SCALARS[field.base]
    elif field.base in done:
        size, alignment = done[field.base].size, done[field.base].alignment
    else:
        # A callback type is a function pointer.
        size = alignment = POINTER_BYTES
    return size * (field.count or 1), alignment


def _layout(struct: Struct, done: dict[str, Layout]) -> Layout:
    offset, widest = 0, 1
    offsets: dict[str, int] = {}
    for field in struct.fields:
        size, alignment = _measure(field, done)
        if offset % alignment:
            raise SpecError(f"{struct.name} has an unnamed hole before {field.name}; add a pad")
        offsets[field.name] = offset
        offset += size
        widest = max(widest, alignment)
    if offset % widest:
        raise SpecError(f"{struct.name} has an unnamed hole at its end; add a pad")
    return Layout(offset, widest, offsets)
