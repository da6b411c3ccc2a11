"""What changed in the ABI since a release, and whether an old peer can live with it.

Generated offsets are compared, not binaries: a tool that looks at two
libraries gives an append and a reorder the same verdict. Allowed is what a
peer of the older version cannot see: a field or function at the end of a
struct that may grow (behind `reserved`, whose place never changes), a new
constant, a new type, a new export. Anything else is refused and named.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bedplate.hal.spec.layout import Layout, layouts
from bedplate.hal.spec.model import Callback, Declaration, Spec, SpecError, Struct, load
from bedplate.hal.spec.tags import SPEC, tags


@dataclass(frozen=True)
class Change:
    """One difference: where, what, and whether it is an append."""

    where: str
    what: str
    appended: bool

    def __str__(self) -> str:
        return f"{'appended' if self.appended else 'REFUSED '}  {self.where}: {self.what}"


def compare(old: Spec, new: Spec) -> list[Change]:
    """Every difference that a peer could see, the version's own rule included."""
    found = [*_constants(old, new), *_structs(old, new), *_signatures(old, new)]
    return [*found, *_version(old, new, found)]


def report(root: Path) -> tuple[list[str], int]:
    """The lines of the report on a source tree, and the number of refusals."""
    known = tags(root)
    touched = [line for tag in known for line in tag.touched()]
    lines = [f"REFUSED   {line}" for line in touched]
    if not known:
        return ["no version of the ABI is tagged: run python -m bedplate.hal.spec --tag"], 1
    if touched:
        return lines, len(touched)
    newest = known[-1]
    try:
        spec = load(root / SPEC)
        layouts(spec)
    except SpecError as error:
        return [f"REFUSED   {SPEC}: {error}"], 1
    changes = compare(newest.spec(), spec)
    refused = sum(not change.appended for change in changes)
    head = (
        f"ABI {spec.major}.{spec.minor} against the tag {newest.name}: "
        f"{len(changes) - refused} appended, {refused} refused"
    )
    return [head, *(f"  {change}" for change in changes)], refused


def _constants(old: Spec, new: Spec) -> Iterator[Change]:
    before = {
        value.name: (group.name, value.number) for group in old.groups for value in group.values
    }
    after = {
        value.name: (group.name, value.number) for group in new.groups for value in group.values
    }
    for name, (group, number) in before.items():
        if name not in after:
            yield Change(name, "the constant is gone", False)
        elif after[name] != (group, number):
            where, value = after[name]
            yield Change(name, f"was {number} of {group}, is {value} of {where}", False)
    for name, (group, number) in after.items():
        if name not in before:
            yield Change(name, f"{number} of {group}", True)


def _structs(old: Spec, new: Spec) -> Iterator[Change]:
    before, after = layouts(old), layouts(new)
    named = {struct.name: struct for struct in new.structs}
    for struct in old.structs:
        if struct.name not in named:
            yield Change(struct.name, "the type is gone", False)
            continue
        yield from _promises(struct, named[struct.name])
        yield from _fields(struct, named[struct.name], before[struct.name], after[struct.name])
    for name in named.keys() - {struct.name for struct in old.structs}:
        yield Change(name, f"a new type of {after[name].size} bytes", True)


def _promises(old: Struct, new: Struct) -> Iterator[Change]:
    """What is said of a struct beside its fields."""
    for name in ("frozen", "scope", "op", "tensors", "key", "needed", "extension"):
        was, now = getattr(old, name), getattr(new, name)
        if was != now:
            yield Change(old.name, f"{name} was {was!r}, is {now!r}", False)


def _fields(old: Struct, new: Struct, before: Layout, after: Layout) -> Iterator[Change]:
    fields = {field.name: field for field in new.fields}
    for field in old.fields:
        where = f"{old.name}.{field.name}"
        if field.name not in fields:
            yield Change(where, f"is gone from offset {before.offsets[field.name]}", False)
            continue
        if _shape(field) != _shape(fields[field.name]):
            yield Change(where, f"was {field.c()}, is {fields[field.name].c()}", False)
        was, now = before.offsets[field.name], after.offsets[field.name]
        if was != now:
            yield Change(where, f"moved from offset {was} to {now}", False)
    known = {field.name for field in old.fields}
    for field in new.fields:
        if field.name in known:
            continue
        offset = after.offsets[field.name]
        what = f"{field.c()} at offset {offset}, {before.size} bytes became {after.size}"
        if old.frozen:
            what += ", in a frozen struct"
        elif offset < before.size:
            what += f", inside the {before.size} bytes that older peers know"
        yield Change(f"{old.name}.{field.name}", what, offset >= before.size and not old.frozen)
    if after.size < before.size:
        yield Change(old.name, f"shrank from {before.size} to {after.size} bytes", False)


def _shape(field: Declaration) -> object:
    """What a compiler makes of a declaration: names of arguments do not count."""
    arguments = field.arguments
    inner = None if arguments is None else tuple(_shape(argument) for argument in arguments)
    return field.type, field.count, inner


def _signatures(old: Spec, new: Spec) -> Iterator[Change]:
    before, after = _declared(old), _declared(new)
    for name, (scope, declaration) in before.items():
        if name not in after:
            yield Change(name, "the function is gone", False)
        elif (scope, _shape(declaration)) != (after[name][0], _shape(after[name][1])):
            was, now = declaration.prototype(), after[name][1].prototype()
            yield Change(name, f"was {was} ({scope}), is {now} ({after[name][0]})", False)
    for name, (scope, declaration) in after.items():
        if name not in before:
            yield Change(name, f"{declaration.prototype()} ({scope})", True)


def _declared(spec: Spec) -> dict[str, tuple[str, Declaration]]:
    found = {each.declaration.name: (each.scope, each.declaration) for each in spec.functions}
    for kind in spec.types:
        if isinstance(kind, Callback):
            found[kind.name] = ("callback", kind.declaration)
    return found


def _version(old: Spec, new: Spec, changes: list[Change]) -> Iterator[Change]:
    was, now = (old.major, old.minor), (new.major, new.minor)
    if now < was or new.major > old.major or new.minor > old.minor + 1:
        what = f"follows {old.major}.{old.minor}; the next is {old.major}.{old.minor + 1}"
        yield Change(f"version {new.major}.{new.minor}", what, False)
    elif now == was and any(change.appended for change in changes):
        what = f"is tagged already; an append needs minor = {old.minor + 1} in {SPEC}"
        yield Change(f"version {new.major}.{new.minor}", what, False)
