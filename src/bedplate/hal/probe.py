"""The first query of a file, in a process of its own.

A library that crashes or hangs when it is opened or asked takes the probe
with it, not us. The answer is cached by the file's hash; the cache is safe to
delete, and one that cannot be read or written is as good as none.
"""

from __future__ import annotations

import json
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bedplate.core import files
from bedplate.core.paths import cache_dir, native_library_dir
from bedplate.hal import abi

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


def probe(path: Path, sha256: str) -> ProbeResult:
    """What a file answers, from the cache or by asking it in a child.

    Only answers are cached: a file that failed may work when its driver is
    there, so it is asked again.
    """
    cached = cache_dir() / "hal" / f"{sha256}.json"
    try:
        return ProbeResult(None, int(json.loads(cached.read_text())["devices"]))
    except (OSError, ValueError, KeyError, TypeError):
        result = ask(path)
    if result.reason is None:
        try:
            cached.parent.mkdir(parents=True, exist_ok=True)
            files.replace(cached, json.dumps({"devices": result.devices}))
        except OSError:
            pass
    return result


def ask(path: Path, deadline_s: float = DEADLINE_S) -> ProbeResult:
    """Ask in a child process."""
    command = [str(native_library_dir() / "bedplate_hal_probe"), str(path)]
    try:
        child = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=deadline_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return ProbeResult(f"it did not answer its first query within {deadline_s:g} s")
    except OSError as cause:
        return ProbeResult(f"its first query could not be asked: {cause.strerror}")
    lines = child.stdout.decode(errors="replace").splitlines()
    facts = dict(line.split("=", 1) for line in lines if "=" in line)
    if child.returncode < 0:
        name = signal.Signals(-child.returncode).name
        return ProbeResult(f"it died of {name} when it was queried")
    if child.returncode != 0 or not facts.get("devices", "").isdigit():
        reason = facts.get("reason") or f"its query ended with {child.returncode}"
        unavailable = facts.get("status") == str(abi.BP_UNAVAILABLE)
        return ProbeResult(reason, unavailable=unavailable)
    return ProbeResult(None, int(facts["devices"]))
