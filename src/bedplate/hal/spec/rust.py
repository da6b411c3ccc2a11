"""The Rust file: the same types as `repr(C)`, with their sizes asserted."""

from __future__ import annotations

from bedplate.hal.spec.header import NOTE
from bedplate.hal.spec.layout import layouts
from bedplate.hal.spec.model import Callback, Declaration, Group, Spec, Struct

SCALARS = {
    "char": "u8",
    "uint8_t": "u8",
    "int32_t": "i32",
    "uint32_t": "u32",
    "int64_t": "i64",
    "uint64_t": "u64",
    "float": "f32",
    "void": "c_void",
}
KEYWORDS = {"type", "move", "ref", "match", "use"}


def name(text: str) -> str:
    """`bp_op_plan` as Rust writes a type: `BpOpPlan`."""
    return "".join(part.capitalize() for part in text.split("_"))


def spelled(field: Declaration) -> str:
    """The Rust type of a field or argument."""
    if field.arguments is not None:
        inside = ", ".join(spelled(argument) for argument in field.arguments)
        back = "" if field.type == "void" else f" -> {pointer(field.type, field.base)}"
        return f'Option<unsafe extern "C" fn({inside}){back}>'
    text = pointer(field.type, field.base)
    return f"[{text}; {field.count}]" if field.count is not None else text


def pointer(kind: str, base: str) -> str:
    """A C type as Rust writes it; const binds to what it stands before or after."""
    text = SCALARS.get(base) or name(base)
    levels = [part.strip() for part in kind.split("*")]
    # levels[0] qualifies the base, levels[i] the pointer made by star i.
    for depth in range(len(levels) - 1):
        text = f"*const {text}" if "const" in levels[depth] else f"*mut {text}"
    return text


def _struct(struct: Struct) -> list[str]:
    lines = [f"/// {struct.doc}", "#[repr(C)]", "#[derive(Clone, Copy)]"]
    lines.append(f"pub struct {name(struct.name)} {{")
    for field in struct.fields:
        if field.doc:
            lines.append(f"    /// {field.doc}")
        raw = "r#" if field.name in KEYWORDS else ""
        lines.append(f"    pub {raw}{field.name}: {spelled(field)},")
    return [*lines, "}", ""]


def _group(group: Group) -> list[str]:
    lines = [f"// {group.doc}"]
    for value in group.values:
        kind = "i32" if group.name == "status" else "u32"
        lines.append(f"/// {value.doc}")
        lines.append(f"pub const {value.name}: {kind} = {value.text};")
    return [*lines, ""]


def rust(spec: Spec) -> str:
    """The whole file."""
    lines = [f"// {NOTE}", "//! The C ABI of the HAL, as Rust sees it.", ""]
    lines += ["#![allow(dead_code)]", "", "use std::ffi::c_void;", "use std::mem::size_of;", ""]
    lines += [f"pub const BP_ABI_MAJOR: u32 = {spec.major};"]
    lines += [f"pub const BP_ABI_MINOR: u32 = {spec.minor};", ""]
    for group in spec.groups:
        lines += _group(group)
    for kind in spec.types:
        if isinstance(kind, Callback):
            lines += [
                f"/// {kind.doc}",
                f"pub type {name(kind.name)} = {spelled(kind.declaration)};",
                "",
            ]
        else:
            lines += _struct(kind)
    for struct, layout in layouts(spec).items():
        lines.append(f"const _: () = assert!(size_of::<{name(struct)}>() == {layout.size});")
    return "\n".join([*lines, ""])
