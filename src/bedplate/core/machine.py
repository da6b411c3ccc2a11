"""Facts of this machine and tree that a stored number must carry.

The machine's name is made of its processor, its family and model, and its core
count: virtual machines often call different processors by one name. It is never
made of its host name: results are published, host names are not ours to publish.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")
RESULTS = "benchmarks/results"
"""Where benchmarks write: the second of two in a row finds the first one's file there."""

# As in native/hal/cpu/isa.c, by the kernel's names of the features.
_LEVELS = {
    "avx2": {"avx2", "fma", "f16c"},
    "avx512": {"avx512f", "avx512bw", "avx512dq", "avx512vl"},
    "avx512_bf16": {"avx512_vnni", "avx512_bf16"},
}


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """`load` is the one-minute load average when the facts were read, `isa` the best level
    of the CPU kernels that the processor has: avx512_bf16, avx512, avx2 or generic."""

    name: str
    cpu: str
    cores: int
    kernel: str
    load: float
    isa: str


@dataclass(frozen=True, slots=True)
class TreeFacts:
    """The commit of a source tree and whether sources differ from it; stored results are none."""

    commit: str
    dirty: bool


def machine_facts(source: Path = CPUINFO) -> MachineFacts:
    """Processor, usable cores, kernel release and load of this machine."""
    fields = _first_processor(source)
    cpu, cores = cpu_model(source), len(os.sched_getaffinity(0))
    slug = re.sub(r"\b(processor|cpu|core)\b|\(.*?\)|@.*", "", cpu, flags=re.IGNORECASE)
    slug = re.sub(r"[^a-z0-9]+", "-", slug.lower()).strip("-") or platform.machine()
    if "cpu family" in fields and "model" in fields:
        slug += f"-f{fields['cpu family']}m{fields['model']}"
    name, load = f"{slug}-{cores}c", os.getloadavg()[0]
    return MachineFacts(name, cpu, cores, platform.release(), load, isa_level(source))


def cpu_model(source: Path = CPUINFO) -> str:
    """The processor's own name, or the architecture where none is given."""
    return _first_processor(source).get("model name") or platform.machine()


def isa_level(source: Path = CPUINFO) -> str:
    """The best level whose features, and those of all levels below it, the kernel lists."""
    found = set(_first_processor(source).get("flags", "").split())
    best = "generic"
    for level, features in _LEVELS.items():
        if not found.issuperset(features):
            break
        best = level
    return best


def _first_processor(source: Path) -> dict[str, str]:
    """The fields of the first processor; source: proc(5), /proc/cpuinfo."""
    block = source.read_text(encoding="utf-8").strip().partition("\n\n")[0]
    lines = [line.partition(":") for line in block.splitlines()]
    return {name.strip(): " ".join(value.split()) for name, _, value in lines}


def tree_facts(tree: Path) -> TreeFacts | None:
    """The commit of the git tree at `tree`, or None outside of one."""
    try:
        commit = _git(tree, "rev-parse", "HEAD")
        changed = _git(tree, "status", "--porcelain", "-uall", "--", ".", f":!{RESULTS}")
        return TreeFacts(commit, bool(changed))
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(tree: Path, *arguments: str) -> str:
    command = ["git", "-C", str(tree), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
