"""The Python module `abi.py`: the cffi text, the constants and the layout."""

from __future__ import annotations

from bedplate.hal.spec.header import NOTE
from bedplate.hal.spec.layout import layouts
from bedplate.hal.spec.model import Callback, Spec


def cdef(spec: Spec) -> list[str]:
    """C declarations that cffi reads: types first, then the loader's functions."""
    lines: list[str] = []
    for kind in spec.types:
        if isinstance(kind, Callback):
            prototype = kind.declaration.prototype().replace(kind.name, f"(*{kind.name})", 1)
            lines.append(f"typedef {prototype};")
        else:
            fields = " ".join(f"{field.c()};" for field in kind.fields)
            lines.append(f"typedef struct {kind.name} {{ {fields} }} {kind.name};")
    for function in spec.functions:
        if function.scope == "loader":
            lines.append(f"{function.declaration.prototype()};")
    return lines


def module(spec: Spec) -> str:
    """The text of `abi.py`."""
    lines = [f'"""The HAL\'s ABI as Python sees it.\n\n{NOTE}\n"""', ""]
    lines += ["# fmt: off", "# ruff: noqa: E501  generated: one declaration a line", ""]
    lines += [f'ABI_VERSION = "{spec.major}.{spec.minor}"']
    lines += [f"ABI_MAJOR = {spec.major}", f"ABI_MINOR = {spec.minor}", ""]
    for group in spec.groups:
        lines += [f"{value.name} = {value.text}" for value in group.values]
        title = group.name.upper()
        lines.append(f"{title}_NAMES: dict[int, str] = {{")
        lines += [f'    {value.text}: "{value.name}",' for value in group.values]
        lines += ["}", ""]
    lines.append("OP_ATTRIBUTES: dict[str, str] = {")
    lines += [f'    "{struct.op}": "{struct.name}",' for struct in spec.structs if struct.op]
    lines += ["}", ""]
    lines.append("OP_TENSORS: dict[str, str] = {")
    lines += [f'    "{struct.op}": "{struct.tensors}",' for struct in spec.structs if struct.op]
    lines += ["}", ""]
    lines.append("LAYOUT: dict[str, tuple[int, dict[str, int]]] = {")
    for name, layout in layouts(spec).items():
        offsets = ", ".join(f'"{field}": {offset}' for field, offset in layout.offsets.items())
        lines.append(f'    "{name}": ({layout.size}, {{{offsets}}}),')
    lines += ["}", "", 'CDEF = """', *cdef(spec), '"""', ""]
    return "\n".join(lines)
