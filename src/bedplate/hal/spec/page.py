"""The reference page of the ABI, in Markdown."""

from __future__ import annotations

from bedplate.hal.spec.header import NOTE
from bedplate.hal.spec.layout import layouts
from bedplate.hal.spec.model import Callback, Spec


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def page(spec: Spec) -> str:
    """Constants, structs with offsets, tables and exported functions."""
    known = layouts(spec)
    lines = [f"<!-- {NOTE} -->", "# HAL ABI", ""]
    lines += [
        f"Version {spec.major}.{spec.minor}. Sizes and offsets in bytes. How it is meant to be"
    ]
    lines += ["used is in [the HAL reference](hal.md).", "", "## Constants", ""]
    for group in spec.groups:
        lines += [
            f"### {group.name}",
            "",
            group.doc,
            "",
            "| name | value | meaning |",
            "|---|---|---|",
        ]
        for value in group.values:
            lines.append(f"| `{value.name}` | {value.text} | {_cell(value.doc)} |")
        lines.append("")
    for title, tables in (("Structs", False), ("Tables", True)):
        lines += [f"## {title}", ""]
        for kind in spec.types:
            if isinstance(kind, Callback):
                if not tables:
                    lines += [f"### {kind.name}", "", kind.doc, ""]
                    lines += ["```c", f"{kind.declaration.prototype()};", "```", ""]
            elif kind.is_table == tables:
                note = " Frozen." if kind.frozen else ""
                note += " Every backend has it." if kind.needed else ""
                note += f' Reached by `ext("{kind.extension}")`.' if kind.extension else ""
                lines += [f"### {kind.name}", "", f"{kind.doc}{note}", ""]
                if kind.op:
                    lines += [
                        f"Tensors in order (`?` may be absent, `!` is written): `{kind.tensors}`.",
                        "",
                    ]
                lines += [f"Size {known[kind.name].size}.", ""]
                lines += ["| offset | field | meaning |", "|---|---|---|"]
                for field in kind.fields:
                    offset = known[kind.name].offsets[field.name]
                    lines.append(f"| {offset} | `{field.c()}` | {_cell(field.doc)} |")
                lines.append("")
    lines += ["## Functions", ""]
    for function in spec.functions:
        lines += ["```c", f"{function.declaration.prototype()};", "```", "", function.doc, ""]
    return "\n".join(lines)
