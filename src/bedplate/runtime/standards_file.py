"""A tree's `standards.toml`: where its engine code is, and what may break the contract.

    [runtime_contract]
    folders = ["src/engine"]

    [[runtime_contract.allow]]
    path = "src/engine/load.py"
    call = "synchronize"
    reason = "weights are uploaded before the first request"

A key that nobody knows or a value of the wrong kind is refused with file and key:
an exception that is not heard would read like one that is.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path, PurePosixPath
from typing import Literal

import msgspec

from bedplate.core import nearest
from bedplate.core.errors import UsageError

FILE = "standards.toml"
MOST_BYTES = 1 << 20
FOLDERS = ("src/bedplate/serving", "src/bedplate/kernels", "native/serving", "native/kernels")
"""The engine code of this house."""


class Allowed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file that may make one kind of call, and why."""

    path: str
    call: Literal["allocate", "synchronize"]
    reason: str


class Contract(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `runtime_contract`."""

    folders: tuple[str, ...] = FOLDERS
    allow: tuple[Allowed, ...] = ()


class Standards(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    runtime_contract: Contract = Contract()


def read_standards(tree: Path) -> Contract:
    """The contract of a tree; without a file the house's. Raises UsageError with file and key."""
    path = tree / FILE
    if not path.exists():
        return Contract()
    if not path.is_file():
        raise UsageError(f"{path} is no file", remedy="write TOML into it, or remove it")
    try:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
        if len(raw) > MOST_BYTES:
            raise UsageError(f"{path} has more than {MOST_BYTES:,} bytes", remedy="cut it")
        found = msgspec.convert(tomllib.loads(raw.decode()), Standards).runtime_contract
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as cause:
        raise UsageError(f"{path} cannot be read: {cause}", remedy="make it TOML") from cause
    except msgspec.ValidationError as cause:
        raise _refused(path, str(cause)) from cause
    for name in found.folders:
        pure = PurePosixPath(name)
        if not name or pure.is_absolute() or ".." in pure.parts:
            raise UsageError(
                f"{path}, runtime_contract.folders: {name!r} is no folder of the tree",
                remedy="name folders below the tree's root",
            )
    for number, entry in enumerate(found.allow):
        if not entry.reason.strip():
            raise UsageError(
                f"{path}, runtime_contract.allow[{number}].reason: {entry.path} may "
                f"{entry.call} for no reason",
                remedy="say why it must",
            )
    return found


def _refused(path: Path, text: str) -> UsageError:
    """What msgspec says, as `FILE, KEY: what is wrong`."""
    what, _, place = text.partition(" - at `$")
    where = place.rstrip("`").lstrip(".")
    remedy = f"see the exceptions in docs/reference/runtime.md, or remove it from {path.name}"
    if unknown := re.fullmatch(r"Object contains unknown field `(.*)`", what):
        kind = Allowed if "allow[" in where else Contract if where else Standards
        where = ".".join(part for part in (where, unknown[1]) if part)
        what, remedy = "unknown key", nearest.hint(unknown[1], kind.__struct_fields__)
    elif lacks := re.fullmatch(r"Object missing required field `(.*)`", what):
        where, what, remedy = f"{where}.{lacks[1]}", "it is missing", "add it"
    elif value := re.fullmatch(r"Invalid enum value (.*)", what):
        what, remedy = f"no call is named {value[1]}", "use allocate or synchronize"
    else:
        what = what[:1].lower() + what[1:].replace("`", "").replace("object", "table")
    return UsageError(f"{path}, {where}: {what}", remedy=remedy)
