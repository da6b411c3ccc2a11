"""Name to op. The table is complete: a schema without a reference fails at import."""

from __future__ import annotations

from importlib import import_module

from bedplate.core import nearest
from bedplate.kernels.errors import UnknownOpError
from bedplate.kernels.op import Op
from bedplate.kernels.vocabulary import SCHEMAS


def _load(name: str) -> Op:
    module = import_module(f"bedplate.kernels.reference.{name}")
    return Op(SCHEMAS[name], module.reference, module.bound, module.cost)


OPS: dict[str, Op] = {name: _load(name) for name in SCHEMAS}
"""Every op of the vocabulary."""


def get(name: str) -> Op:
    """The op called `name`; raises `UnknownOpError` naming the nearest one."""
    if name in OPS:
        return OPS[name]
    raise UnknownOpError(f"no op is called {name!r}", remedy=nearest.hint(name, OPS))
