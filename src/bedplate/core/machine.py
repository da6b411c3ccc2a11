"""Facts of this machine and tree that a stored number must carry.

The machine's name is made of its processor and core count, never of its host
name: results are published, host names are not ours to publish.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """`load` is the one-minute load average when the facts were read."""

    name: str
    cpu: str
    cores: int
    kernel: str
    load: float


@dataclass(frozen=True, slots=True)
class TreeFacts:
    """The commit of a source tree and whether files differ from it."""

    commit: str
    dirty: bool


def machine_facts() -> MachineFacts:
    """Processor, usable cores, kernel release and load of this machine."""
    cpu = cpu_model()
    cores = len(os.sched_getaffinity(0))
    slug = re.sub(r"\b(processor|cpu|core)\b|\(.*?\)|@.*", "", cpu, flags=re.IGNORECASE)
    slug = re.sub(r"[^a-z0-9]+", "-", slug.lower()).strip("-") or platform.machine()
    return MachineFacts(f"{slug}-{cores}c", cpu, cores, platform.release(), os.getloadavg()[0])


def cpu_model(source: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's own name, or the architecture where none is given."""
    for line in source.read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return " ".join(line.partition(":")[2].split())
    return platform.machine()


def tree_facts(tree: Path) -> TreeFacts | None:
    """The commit of the git tree at `tree`, or None outside of one."""
    try:
        commit = _git(tree, "rev-parse", "HEAD")
        return TreeFacts(commit, bool(_git(tree, "status", "--porcelain")))
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(tree: Path, *arguments: str) -> str:
    command = ["git", "-C", str(tree), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
