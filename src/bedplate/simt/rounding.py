"""Float operations that do not round to nearest.

LLVM assumes round-to-nearest everywhere but in functions that say otherwise, so each such
operation is a small function of its own, in text, that sets the processor's mode around
one constrained operation and sets it back. It costs some tens of cycles for 32 lanes.

Source: LLVM Language Reference, "Constrained Floating-Point Intrinsics", "llvm.set.rounding".
"""

from __future__ import annotations

import re

MODES = {"rz": 0, "rn": 1, "rp": 2, "rm": 3}
"""As `llvm.set.rounding` numbers them."""
_NAME = re.compile(r"round\.(rz|rp|rm)\.(\w+)\.(v32)?(\w+?)(?:\.from\.(v32)?(\w+))?")
_TYPES = {"f16": "half", "f32": "float", "f64": "double"}
_ARITY = {"fma": 3, "sqrt": 1, "fptrunc": 1, "sitofp": 1, "uitofp": 1}


def name(mode: str, operation: str, result: str, source: str | None = None) -> str:
    """The function's name; `result` and `source` are LLVM's suffixes such as v32f32."""
    return f"round.{mode}.{operation}.{result}" + (f".from.{source}" if source else "")


def text(function: str) -> str:
    """The function of that name, in LLVM's assembly."""
    found = _NAME.fullmatch(function)
    if found is None:
        raise ValueError(f"{function} is not the name of a rounding function")
    mode, operation, lanes, result, _, source = found.groups()
    returns = _written(result, lanes)
    taken = _written(source or result, lanes)
    intrinsic = f"llvm.experimental.constrained.{operation}.{lanes or ''}{result}"
    if source:
        intrinsic += f".{lanes or ''}{source}"
    names = [f"%a{number}" for number in range(_ARITY.get(operation, 2))]
    values = ", ".join(f"{taken} {each}" for each in names)
    kinds = ", ".join([taken] * len(names))
    hints = 'metadata !"round.dynamic", metadata !"fpexcept.ignore"'
    return f"""
declare void @llvm.set.rounding(i32)
declare {returns} @{intrinsic}({kinds}, metadata, metadata)
define {returns} @{function}({values}) noinline strictfp {{
  call void @llvm.set.rounding(i32 {MODES[mode]})
  %r = call {returns} @{intrinsic}({values}, {hints}) strictfp
  call void @llvm.set.rounding(i32 1)
  ret {returns} %r
}}
"""


def _written(kind: str, lanes: str | None) -> str:
    of = _TYPES.get(kind, kind)
    return f"<32 x {of}>" if lanes else of
