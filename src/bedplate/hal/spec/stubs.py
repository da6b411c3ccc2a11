"""The loader's C file that completes tables: absent slots answer UNSUPPORTED."""

from __future__ import annotations

from bedplate.hal.spec.header import NOTE
from bedplate.hal.spec.model import Declaration, Spec, Struct


def _stub(table: Struct, function: Declaration) -> list[str]:
    arguments = function.arguments or ()
    listed = ", ".join(argument.c() for argument in arguments) or "void"
    lines = [f"static int32_t absent_{table.key}_{function.name}({listed}) {{"]
    lines += [f"    (void){argument.name};" for argument in arguments]
    lines += [f'    return bp_hal_absent("{table.key}.{function.name}");', "}", ""]
    return lines


def _fill(table: Struct) -> list[str]:
    lines = [f"void bp_hal_fill_{table.key}({table.name} *out, const {table.name} *given) {{"]
    lines += ["    memset(out, 0, sizeof(*out));", "    if (given) {"]
    lines += ["        uint32_t size = given->head.struct_size;"]
    lines += ["        memcpy(out, given, size < sizeof(*out) ? size : sizeof(*out));", "    }"]
    lines += ["    out->head.struct_version = 1;", "    out->head.struct_size = sizeof(*out);"]
    for function in table.functions:
        lines.append(f"    if (!out->{function.name})")
        lines.append(f"        out->{function.name} = absent_{table.key}_{function.name};")
    return [*lines, "}", ""]


def stubs_h(spec: Spec) -> str:
    """Declarations of the fillers, for the loader alone."""
    lines = [f"/* {NOTE} */", "#ifndef BEDPLATE_HAL_STUBS_H", "#define BEDPLATE_HAL_STUBS_H", ""]
    lines += ["/* clang-format off */", '#include "bedplate/hal.h"', ""]
    lines += ["/* Leaves the text of an absent function and returns BP_UNSUPPORTED. */"]
    lines += ["int32_t bp_hal_absent(const char *function);", ""]
    lines += ["/* Copies what was given, however short, and puts a stub in every empty slot. */"]
    for table in spec.tables:
        lines.append(f"void bp_hal_fill_{table.key}({table.name} *out, const {table.name} *given);")
    return "\n".join([*lines, "", "#endif", ""])


def stubs_c(spec: Spec) -> str:
    """Definitions of the stubs and the fillers."""
    lines = [f"/* {NOTE} */", "/* clang-format off */"]
    lines += ['#include "stubs.h"', "", "#include <string.h>", ""]
    for table in spec.tables:
        for function in table.functions:
            lines += _stub(table, function)
        lines += _fill(table)
    return "\n".join(lines)
