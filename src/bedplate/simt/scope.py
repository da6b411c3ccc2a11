"""The names that PTX text has made known, and the state spaces that it makes them in."""

from __future__ import annotations

from dataclasses import dataclass, field

from bedplate.simt.module import Register, Variable
from bedplate.simt.scalar import Scalar

SPACES = ("global", "const", "shared", "local", "param")


@dataclass
class Scope:
    """The names that are known inside one pair of braces."""

    registers: dict[str, Register] = field(default_factory=dict)
    ranges: dict[str, tuple[int, Scalar]] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
