"""The spec as typed values, read from TOML and held to the ABI's rules.

A rule that is broken is a `SpecError` naming the struct and field: the
generator never writes a header from a spec that breaks its own promises.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCALARS: dict[str, int] = {
    "char": 1,
    "uint8_t": 1,
    "int32_t": 4,
    "uint32_t": 4,
    "int64_t": 8,
    "uint64_t": 8,
    "float": 4,
}
"""Base types and their bytes. `char` only as text."""

POINTER_BYTES = 8

_DECLARATION = re.compile(
    r"^(?P<type>[A-Za-z_][\w\s*]*?[\s*])(?P<name>[a-z_]\w*)"
    r"(?:\[(?P<count>\d+)\])?(?:\((?P<arguments>.*)\))?$"
)


class SpecError(ValueError):
    """The spec breaks one of the ABI's rules."""


@dataclass(frozen=True)
class Value:
    """One named constant of a group."""

    name: str
    number: int
    text: str
    doc: str


@dataclass(frozen=True)
class Group:
    """Constants that belong together, such as the statuses."""

    name: str
    doc: str
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Declaration:
    """A C declaration: a field, an argument, or a function."""

    type: str
    name: str
    count: int | None = None
    arguments: tuple[Declaration, ...] | None = None
    doc: str = ""

    @property
    def base(self) -> str:
        """The type's name without const and stars."""
        return self.type.replace("const", " ").replace("*", " ").strip()

    @property
    def stars(self) -> int:
        """Levels of indirection."""
        return self.type.count("*")

    def c(self) -> str:
        """The declaration as a C field, without a semicolon."""
        if self.arguments is not None:
            inside = ", ".join(argument.c() for argument in self.arguments)
            return f"{self.glue(self.type)}(*{self.name})({inside})"
        suffix = "" if self.count is None else f"[{self.count}]"
        return f"{self.glue(self.type)}{self.name}{suffix}"

    def prototype(self) -> str:
        """The declaration as a C function, without a semicolon."""
        inside = ", ".join(argument.c() for argument in self.arguments or ())
        return f"{self.glue(self.type)}{self.name}({inside})"

    @staticmethod
    def glue(kind: str) -> str:
        """The type ready to be followed by a name."""
        return kind if kind.endswith("*") else f"{kind} "


@dataclass(frozen=True)
class Struct:
    """A struct or a table of functions."""

    name: str
    doc: str
    fields: tuple[Declaration, ...]
    frozen: bool = False
    scope: str = "backend"
    op: str | None = None
    tensors: str = ""
    key: str | None = None
    needed: bool = False
    extension: str | None = None

    @property
    def is_table(self) -> bool:
        """Whether it holds a backend's functions."""
        return self.key is not None

    @property
    def functions(self) -> tuple[Declaration, ...]:
        """Its function pointers."""
        return tuple(field for field in self.fields if field.arguments is not None)


@dataclass(frozen=True)
class Function:
    """A function exported by a backend, a native module or the loader."""

    scope: str
    doc: str
    declaration: Declaration


@dataclass(frozen=True)
class Callback:
    """A named function-pointer type."""

    name: str
    doc: str
    declaration: Declaration


@dataclass(frozen=True)
class Spec:
    """The whole ABI, in the order of the file."""

    major: int
    minor: int
    groups: tuple[Group, ...]
    types: tuple[Struct | Callback, ...]
    functions: tuple[Function, ...]

    @property
    def structs(self) -> tuple[Struct, ...]:
        """All structs and tables."""
        return tuple(kind for kind in self.types if isinstance(kind, Struct))

    @property
    def tables(self) -> tuple[Struct, ...]:
        """The tables of functions."""
        return tuple(struct for struct in self.structs if struct.is_table)


def declaration(text: str) -> Declaration:
    """Read `C declaration -- meaning`."""
    code, _, doc = text.partition(" -- ")
    match = _DECLARATION.match(code.strip())
    if match is None:
        raise SpecError(f"cannot read the declaration {code!r}")
    kind = re.sub(r"\s+", " ", match["type"]).strip().replace(" *", "*").replace("*", " *", 1)
    kind = kind.replace("* const*", "*const *")
    arguments = None
    if match["arguments"] is not None:
        parts = [part.strip() for part in match["arguments"].split(",") if part.strip()]
        arguments = tuple(declaration(part) for part in parts if part != "void")
    count = int(match["count"]) if match["count"] else None
    return Declaration(kind, match["name"], count, arguments, doc.strip())


def parse(document: Mapping[str, Any]) -> Spec:
    """A checked `Spec` from the TOML document."""
    order: list[Struct | Callback] = []
    for key in ("struct", "table"):
        order += [_struct(entry) for entry in document.get(key, ())]
    order += [_callback(entry) for entry in document.get("callback", ())]
    functions = tuple(
        Function(entry["scope"], entry["doc"], declaration(entry["declaration"]))
        for entry in document.get("function", ())
    )
    groups = tuple(_group(entry) for entry in document.get("group", ()))
    abi = document["abi"]
    spec = Spec(abi["major"], abi["minor"], groups, tuple(_sorted(order)), functions)
    _check(spec)
    return spec


def load(path: Path) -> Spec:
    """Read and check the spec file."""
    with path.open("rb") as file:
        return parse(tomllib.load(file))


def _struct(entry: Mapping[str, Any]) -> Struct:
    plain = {key: value for key, value in entry.items() if key != "fields"}
    return Struct(fields=tuple(declaration(text) for text in entry["fields"]), **plain)


def _callback(entry: Mapping[str, Any]) -> Callback:
    return Callback(entry["name"], entry["doc"], declaration(entry["declaration"]))


def _group(entry: Mapping[str, Any]) -> Group:
    values = []
    for line in entry["values"]:
        code, _, doc = line.partition(" -- ")
        name, _, number = code.partition(" = ")
        values.append(Value(name.strip(), int(number, 0), number.strip(), doc.strip()))
    return Group(entry["name"], entry["doc"], tuple(values))


def needs(kind: Struct | Callback) -> set[str]:
    """Names of the types that must be complete, or declared, before `kind`."""
    fields: Iterable[Declaration]
    if isinstance(kind, Callback):
        fields = kind.declaration.arguments or ()
    else:
        fields = [part for field in kind.fields for part in (field, *(field.arguments or ()))]
    return {field.base for field in fields if field.base.startswith("bp_")} - {kind.name}


def _sorted(kinds: list[Struct | Callback]) -> list[Struct | Callback]:
    """The file's order, moved only as far as C's declare-before-use asks."""
    done: dict[str, Struct | Callback] = {}
    by_name = {kind.name: kind for kind in kinds}

    def place(kind: Struct | Callback, above: tuple[str, ...]) -> None:
        if kind.name in done:
            return
        if kind.name in above:
            raise SpecError(f"{kind.name} needs itself through {' > '.join(above)}")
        for name in sorted(needs(kind), key=list(by_name).index):
            place(by_name[name], (*above, kind.name))
        done[kind.name] = kind

    known = set(by_name)
    for kind in kinds:
        if missing := needs(kind) - known:
            raise SpecError(f"{kind.name} uses the unknown type {sorted(missing)[0]}")
    for kind in kinds:
        place(kind, ())
    return list(done.values())


def _check(spec: Spec) -> None:
    names: set[str] = set()
    for group in spec.groups:
        numbers: set[int] = set()
        for value in group.values:
            if value.name in names or value.number in numbers:
                raise SpecError(f"{value.name} repeats a name or a number of {group.name}")
            names.add(value.name)
            numbers.add(value.number)
    callbacks = {kind.name for kind in spec.types if isinstance(kind, Callback)}
    known = {struct.name for struct in spec.structs} | callbacks
    for struct in spec.structs:
        _check_struct(struct, known, callbacks)


def _check_struct(struct: Struct, known: set[str], callbacks: set[str]) -> None:
    seen = [field.name for field in struct.fields]
    if len(set(seen)) != len(seen):
        raise SpecError(f"{struct.name} repeats a field")
    if not struct.frozen:
        first = struct.fields[0]
        if (first.type, first.name) != ("bp_head", "head"):
            raise SpecError(f"{struct.name} does not start with bp_head head")
        reserved = [field for field in struct.fields if field.name == "reserved"]
        if not reserved or (reserved[0].type, reserved[0].count) != ("uint64_t", 4):
            raise SpecError(f"{struct.name} has no uint64_t reserved[4]")
    for field in struct.fields:
        for part in (field, *(field.arguments or ())):
            base = part.base
            if base == "void" and part.stars:
                continue
            if base == "void" and part is field and field.arguments is not None:
                continue
            if base not in SCALARS and base not in known:
                raise SpecError(f"{struct.name}.{field.name} uses the type {base}")
        for argument in field.arguments or ():
            if argument.base not in SCALARS | dict.fromkeys(callbacks, 8) and not argument.stars:
                raise SpecError(f"{struct.name}.{field.name} takes a struct by value")
