"""The C headers: `hal.h` for backends and hosts, `hal_loader.h` for hosts."""

from __future__ import annotations

from bedplate.hal.spec.layout import layouts
from bedplate.hal.spec.model import Callback, Spec, Struct

NOTE = "Generated from native/hal/spec.toml by python -m bedplate.hal.spec; do not edit."
WIDTH = 100


def comment(text: str, indent: str = "") -> list[str]:
    """A C comment, broken at the line width."""
    if not text:
        return []
    words, lines, line = text.split(), [], f"{indent}/*"
    for word in words:
        if len(line) + 1 + len(word) > WIDTH - 3:
            lines.append(line)
            line = f"{indent} *"
        line += f" {word}"
    return [*lines, f"{line} */"]


def _type(kind: Struct | Callback) -> list[str]:
    lines = comment(kind.doc)
    if isinstance(kind, Callback):
        prototype = kind.declaration.prototype().replace(kind.name, f"(*{kind.name})", 1)
        return [*lines, f"typedef {prototype};", ""]
    lines.append(f"typedef struct {kind.name} {{")
    for field in kind.fields:
        lines += comment(field.doc, "    ")
        lines.append(f"    {field.c()};")
    return [*lines, f"}} {kind.name};", ""]


def _guarded(guard: str, doc: str, includes: list[str], body: list[str]) -> str:
    head = [
        f"/* {NOTE}",
        " *",
        *[f" * {line}" if line else " *" for line in doc.split("\n")],
        " */",
    ]
    head += [f"#ifndef {guard}", f"#define {guard}", ""]
    head += [f"#include {name}" for name in includes] + [""]
    opening = ["#ifdef __cplusplus", 'extern "C" {', "#endif", ""]
    closing = ["#ifdef __cplusplus", "}", "#endif", "", f"#endif /* {guard} */"]
    return "\n".join([*head, "/* clang-format off */", *opening, *body, *closing]) + "\n"


def _types(spec: Spec, scope: str) -> list[str]:
    lines: list[str] = []
    for kind in spec.types:
        if isinstance(kind, Callback) or kind.scope == scope:
            if isinstance(kind, Callback) and scope != "backend":
                continue
            lines += _type(kind)
    return lines


def hal_h(spec: Spec) -> str:
    """`bedplate/hal.h`: everything a backend, a native module or a host needs."""
    body = [f"#define BP_ABI_MAJOR {spec.major}u", f"#define BP_ABI_MINOR {spec.minor}u", ""]
    for group in spec.groups:
        body += comment(group.doc)
        for value in group.values:
            number = value.text if value.number < 0 or value.name == "BP_OK" else f"{value.text}u"
            number = f"({number})" if value.number < 0 else number
            body.append(f"#define {value.name} {number} /* {value.doc} */")
        body.append("")
    body += _types(spec, "backend")
    body += ["#if defined(__GNUC__)", '#define BP_EXPORT __attribute__((visibility("default")))']
    body += ["#else", "#define BP_EXPORT", "#endif", ""]
    for function in spec.functions:
        if function.scope != "loader":
            body += comment(function.doc)
            body += [f"BP_EXPORT {function.declaration.prototype()};", ""]
    doc = (
        "The C ABI between Bedplate and an accelerator. A backend is one shared library that\n"
        "exports bedplate_hal_backend_query. Nothing here unwinds, aborts or takes a struct by\n"
        "value; every function may be called from any thread unless it says otherwise."
    )
    return _guarded("BEDPLATE_HAL_H", doc, ["<stddef.h>", "<stdint.h>"], body)


def loader_h(spec: Spec) -> str:
    """`bedplate/hal_loader.h`: what libbedplate_hal offers a host."""
    body = _types(spec, "loader")
    for function in spec.functions:
        if function.scope == "loader":
            body += comment(function.doc)
            body += [f"BP_EXPORT {function.declaration.prototype()};", ""]
    doc = "The loader, libbedplate_hal: opens a backend and hands back a table without holes."
    return _guarded("BEDPLATE_HAL_LOADER_H", doc, ['"bedplate/hal.h"'], body)


def layout_h(spec: Spec) -> str:
    """`bedplate/hal_layout.h`: every size and offset, asserted by the compiler."""
    lines = ["#if UINTPTR_MAX != UINT64_MAX", '#error "the HAL needs 64-bit pointers"', "#endif"]
    lines += ["#ifdef __cplusplus", "#define BP_LAYOUT(fact) static_assert(fact, #fact)"]
    lines += ["#else", "#define BP_LAYOUT(fact) _Static_assert(fact, #fact)", "#endif"]
    known = layouts(spec)
    for struct in spec.structs:
        lines.append(f"BP_LAYOUT(sizeof({struct.name}) == {known[struct.name].size});")
        for name, offset in known[struct.name].offsets.items():
            lines.append(f"BP_LAYOUT(offsetof({struct.name}, {name}) == {offset});")
    lines += ["#undef BP_LAYOUT", ""]
    doc = "Sizes and offsets of the ABI. Include it once anywhere; it makes no code."
    return _guarded("BEDPLATE_HAL_LAYOUT_H", doc, ['"bedplate/hal_loader.h"'], lines)
