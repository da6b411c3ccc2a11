"""What the OpenCL ICD loader would read here, and whether it can be used.

The loader opens every library that a registration file names, which runs that
library's code, so people want to see the list first. Nothing is opened here.
The rules are those of ocl-icd (libOpenCL(7)) and of Khronos' loader:
`OCL_ICD_VENDORS` (else `OPENCL_VENDOR_PATH`, else `/etc/OpenCL/vendors`) is a
directory of `*.icd` files, with or without a trailing slash, or one such file,
or a library itself; the first line of a file names a library.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from bedplate.core.legible import legible
from bedplate.hal import trust
from bedplate.hal.errors import HalError

VENDORS = Path("/etc/OpenCL/vendors")
MOST_BYTES = 4096
"""Longer than any path; the rest of a registration file is not looked at."""


@dataclass(frozen=True, slots=True)
class Registration:
    """A file, or the variable, that names a platform's library.

    `reason` says why the loader will find no platform by it, or what is odd;
    `verdict` is `read`, `odd` or `useless`.
    """

    origin: str
    path: Path
    library: str | None
    verdict: str
    reason: str | None


def registrations(environment: Mapping[str, str] | None = None) -> list[Registration]:
    """Everything that the loader would read, in the order of names; what does not print is
    escaped."""
    return [
        replace(
            found,
            path=Path(legible(str(found.path))),
            library=legible(found.library) if found.library else None,
            reason=legible(found.reason) if found.reason else None,
        )
        for found in _registrations(environment)
    ]


def _registrations(environment: Mapping[str, str] | None) -> list[Registration]:
    known = os.environ if environment is None else environment
    folder = Path(known.get("OPENCL_VENDOR_PATH") or VENDORS)
    chosen = known.get("OCL_ICD_VENDORS")
    if not chosen:
        origin = "OPENCL_VENDOR_PATH" if known.get("OPENCL_VENDOR_PATH") else "system"
        return [_read(origin, path) for path in _files(folder)]
    place = Path(chosen)
    if os.path.isdir(place):
        return [_read("OCL_ICD_VENDORS", path) for path in _files(place)]
    if chosen.endswith(".icd"):
        beside = folder / chosen
        is_beside = "/" not in chosen and os.path.exists(beside)
        return [_read("OCL_ICD_VENDORS", beside if is_beside else place)]
    return [_library("OCL_ICD_VENDORS", place, chosen, None)]


def _files(folder: Path) -> Iterator[Path]:
    try:
        names = sorted(entry.name for entry in os.scandir(folder))
    except OSError:
        return
    for name in names:
        if name.endswith(".icd"):
            yield folder / name


def _read(origin: str, path: Path) -> Registration:
    try:
        # A pipe would wait for its other end.
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return Registration(origin, path, None, "useless", "it is not a regular file")
            raw = file.read(MOST_BYTES)
    except OSError as cause:
        return Registration(origin, path, None, "useless", f"it cannot be read: {cause.strerror}")
    if not raw:
        return Registration(origin, path, None, "useless", "it is empty, so it names no library")
    line, newline, rest = raw.partition(b"\n")
    name = line.decode(errors="replace")
    if not name.strip():
        return Registration(origin, path, None, "useless", "its first line names no library")
    if name != name.strip():
        shown = "a carriage return" if name.rstrip(" \t").endswith("\r") else "blanks"
        reason = f"{shown} around the library's name, which some loaders take for a part of it"
        return _library(origin, path, name.strip(), reason)
    if rest.strip():
        return _library(origin, path, name, "loaders read its first line only")
    if not newline:
        return _library(origin, path, name, "it has no final newline, where old loaders cut a byte")
    return _library(origin, path, name, None)


def _library(origin: str, path: Path, name: str, odd: str | None) -> Registration:
    if "/" not in name:
        where = _searched(name)
        if where is None:
            reason = f"{name} is a bare name and in no directory that the dynamic linker was told"
            return Registration(origin, path, name, "useless", reason)
        name_path = where
    else:
        name_path = Path(name)
    if not os.path.exists(name_path):
        return Registration(origin, path, name, "useless", f"the library {name} does not exist")
    if odd is None:
        try:
            trust.check_file(name_path.resolve())
        except HalError as error:
            odd = error.message
    return Registration(origin, path, name, "odd" if odd else "read", odd)


def _searched(name: str) -> Path | None:
    """Where the dynamic linker finds a bare name: its variable, its configuration, its defaults."""
    folders = [Path(text) for text in os.environ.get("LD_LIBRARY_PATH", "").split(":") if text]
    for file in sorted(Path("/etc/ld.so.conf.d").glob("*.conf")):
        lines = file.read_text(errors="replace").splitlines()
        folders += [Path(line.strip()) for line in lines if line.strip().startswith("/")]
    folders += [Path(text) for text in ("/lib", "/usr/lib", "/lib64", "/usr/lib64")]
    for folder in folders:
        if os.path.exists(folder / name):
            return folder / name
    return None
