"""The first query of a file, in a process of its own.

A library that crashes or hangs when it is opened or asked takes the probe
with it, not us. The answer is cached by the file's hash and says who asked: after
an upgrade it is asked again, since another version asks more. The cache is safe
to delete, and one that cannot be read or written, or that others could have
written, is as good as none.
"""

from __future__ import annotations

import functools
import hashlib
import json
import subprocess
from dataclasses import dataclass

from bedplate.core import files
from bedplate.core.legible import signal_name
from bedplate.core.paths import cache_dir, native_library_dir
from bedplate.hal import abi, trust
from bedplate.hal.errors import HalError
from bedplate.hal.trust import TrustedFile

PROGRAM = "bedplate_hal_probe"

MOST_BYTES = 4096
"""Far more than an answer takes."""

DEADLINE_S = 10.0
"""Loading and answering takes milliseconds; a driver that wakes up may take seconds."""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """`reason` is None when the file answered.

    `unavailable` when it did, and says that its devices cannot work here.
    """

    reason: str | None
    devices: int = 0
    unavailable: bool = False


def probe(file: TrustedFile, sha256: str) -> ProbeResult:
    """What a file answers, from the cache or by asking it in a child.

    Only answers are cached: a file that failed may work when its driver is
    there, so it is asked again.
    """
    cached = cache_dir() / "hal" / f"{sha256}.json"
    try:
        with trust.opened(cached) as known:
            found = json.loads(known.read(MOST_BYTES))
        if found["asked_by"] != asked_by():
            raise ValueError("the answer to another version's questions")
        return ProbeResult(None, _count(found["devices"]))
    except (HalError, OSError, ValueError, KeyError, TypeError, RecursionError):
        result = ask(file)
    if result.reason is None:
        try:
            cached.parent.mkdir(parents=True, exist_ok=True)
            files.replace(cached, json.dumps({"devices": result.devices, "asked_by": asked_by()}))
        except OSError:
            pass
    return result


@functools.cache
def asked_by() -> str:
    """The ABI version, and the hash of what asks: the probe's program and the loader it links."""
    made_of = hashlib.sha256()
    for name in (PROGRAM, "libbedplate_hal.so"):
        made_of.update((native_library_dir() / name).read_bytes())
    return f"{abi.ABI_VERSION} {made_of.hexdigest()[:32]}"


def ask(file: TrustedFile, deadline_s: float = DEADLINE_S) -> ProbeResult:
    """Ask in a child process, which inherits the open file."""
    program = str(native_library_dir() / PROGRAM)
    try:
        child = subprocess.run(
            [program, str(file.path), str(file.descriptor)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=deadline_s,
            check=False,
            pass_fds=(file.descriptor,),
        )
    except subprocess.TimeoutExpired:
        return ProbeResult(f"it did not answer its first query within {deadline_s:g} s")
    except OSError as cause:
        return ProbeResult(f"its first query could not be asked: {cause.strerror}")
    lines = child.stdout.decode(errors="replace").splitlines()
    facts = dict(line.split("=", 1) for line in lines if "=" in line)
    if child.returncode < 0:
        return ProbeResult(f"it died of {signal_name(-child.returncode)} when it was queried")
    try:
        devices = _count(int(facts.get("devices", "")))
    except ValueError:
        devices = None
    if child.returncode != 0 or devices is None:
        reason = facts.get("reason") or f"its query ended with {child.returncode}"
        unavailable = facts.get("status") == str(abi.BP_UNAVAILABLE)
        return ProbeResult(reason, unavailable=unavailable)
    return ProbeResult(None, devices)


def _count(value: object) -> int:
    """A number of devices; ValueError for what is none."""
    if type(value) is not int or not 0 <= value < 1 << 32:
        raise ValueError(f"{value!r} is no number of devices")
    return value
