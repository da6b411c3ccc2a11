"""A launch as people write it: on a command line, or in a launch file.

    kernel = "saxpy"
    grid = 8
    block = [128]
    args = ["f32:2", "arange:f32[1024]", "y.npy", "u32:1024"]
    shared = 0

An argument is `TYPE:VALUE`, an array `FILL:TYPE[SHAPE]` with a fill of arange, zeros, ones
or random (by the machine's seed), or a file of numpy's, which must lie where it is named.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bedplate.core import nearest
from bedplate.simt.arguments import DeviceArray
from bedplate.simt.errors import LaunchInvalid
from bedplate.simt.literal import integer
from bedplate.simt.machine import Machine

DTYPES = {
    **{f"u{bits}": np.dtype(f"u{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"s{bits}": np.dtype(f"i{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"f{bits}": np.dtype(f"f{bits // 8}") for bits in (16, 32, 64)},
}
FILLS = ("arange", "zeros", "ones", "random")
_ARRAY = re.compile(r"(\w+):(\w+)\[([\d,x ]+)\]")
_SCALAR = re.compile(r"(\w+):(.+)")
_KEYS = ("kernel", "grid", "block", "args", "shared")


@dataclass(frozen=True)
class Request:
    """What to launch; `folder` is where files are looked for."""

    kernel: str | None
    grid: tuple[int, ...]
    block: tuple[int, ...]
    args: Sequence[str] = ()
    shared: int = 0
    folder: Path = field(default_factory=Path)


def read(path: Path) -> Request:
    """The request of a launch file; raises `LaunchInvalid` with the key."""
    try:
        found: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as cause:
        raise LaunchInvalid(f"cannot read {path}: {cause.strerror}") from cause
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as cause:
        raise LaunchInvalid(f"{path} is no TOML: {cause}") from cause
    for key in found:
        if key not in _KEYS:
            raise LaunchInvalid(f"{path}: {key!r} is unknown", remedy=nearest.hint(key, _KEYS))
    return Request(
        _typed(path, found, "kernel", str, None),
        sizes(found.get("grid", 1), f"{path}: grid"),
        sizes(found.get("block", 1), f"{path}: block"),
        [str(item) for item in _typed(path, found, "args", list, [])],
        _typed(path, found, "shared", int, 0),
        path.parent,
    )


def _typed(path: Path, found: Mapping[str, Any], key: str, kind: type, default: Any) -> Any:
    value = found.get(key, default)
    if value is not default and not isinstance(value, kind):
        raise LaunchInvalid(f"{path}: {key} is {value!r}, not of type {kind.__name__}")
    return value


def sizes(value: Any, what: str) -> tuple[int, ...]:
    """Sizes of a grid or a block: a number, a list, or text such as `8,4`."""
    if isinstance(value, str):
        value = [item.strip() for item in value.split(",")]
    items = value if isinstance(value, list) else [value]
    try:
        return tuple(int(item) for item in items)
    except (TypeError, ValueError):
        raise LaunchInvalid(
            f"{what} is {value!r}", remedy="write one to three numbers, such as 8,4"
        ) from None


def value(machine: Machine, text: str, folder: Path) -> Any:
    """An argument from its text: a numpy scalar, or an array in the machine's memory."""
    if text.endswith(".npy"):
        return machine.array(_file(folder / text))
    if found := _ARRAY.fullmatch(text):
        return machine.array(_filled(machine, text, *found.groups()))
    if found := _SCALAR.fullmatch(text):
        kind, number = found.groups()
        dtype = _dtype(text, kind)
        try:
            plain = float(number) if dtype.kind == "f" else _whole(number)
            made = np.array(plain).astype(dtype)
        except (ValueError, OverflowError):
            raise LaunchInvalid(f"the argument {text!r}: {number!r} is no {kind}") from None
        if dtype.kind != "f" and int(made) != plain:
            raise LaunchInvalid(f"the argument {text!r} does not fit {kind}")
        return made[()]
    raise LaunchInvalid(
        f"the argument {text!r} is not understood",
        remedy="write f32:2, arange:f32[1024], or the name of a .npy file",
    )


def _whole(text: str) -> int:
    return -integer(text[1:]) if text.startswith("-") else integer(text)


def _dtype(text: str, kind: str) -> np.dtype[Any]:
    if kind not in DTYPES:
        raise LaunchInvalid(
            f"the argument {text!r} has no type {kind!r}", remedy=nearest.hint(kind, DTYPES)
        )
    return DTYPES[kind]


def _filled(machine: Machine, text: str, fill: str, kind: str, shape: str) -> Any:
    dtype = _dtype(text, kind)
    size = tuple(int(item) for item in re.split(r"[x,]", shape.replace(" ", "")) if item)
    count = int(np.prod(size, dtype=np.int64))
    if fill == "arange":
        return np.arange(count).astype(dtype).reshape(size)
    if fill == "random":
        drawn = np.random.default_rng(machine.seed).random(size)
        scaled = drawn if dtype.kind == "f" else drawn * np.iinfo(dtype).max
        return scaled.astype(dtype)
    if fill in ("zeros", "ones"):
        return np.full(size, int(fill == "ones"), dtype)
    raise LaunchInvalid(
        f"the argument {text!r} has no fill {fill!r}", remedy=nearest.hint(fill, FILLS)
    )


def _file(path: Path) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except OSError as cause:
        raise LaunchInvalid(f"cannot read {path}: {cause.strerror or cause}") from cause
    except ValueError as cause:
        raise LaunchInvalid(f"{path} is no array of numpy's: {cause}") from cause


def changed(values: Sequence[Any], before: Sequence[Any]) -> list[tuple[int, DeviceArray]]:
    """The arrays among the arguments that a launch wrote to, with their numbers."""
    found = []
    for number, (item, old) in enumerate(zip(values, before, strict=True)):
        if isinstance(item, DeviceArray) and item.view().tobytes() != old:
            found.append((number, item))
    return found
