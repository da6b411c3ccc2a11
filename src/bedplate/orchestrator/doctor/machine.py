"""The machine and what is installed on it: Python, packages, native code, backends, memory."""

from __future__ import annotations

import importlib.metadata
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from bedplate.core.command import quoted
from bedplate.core.paths import native_library_dir
from bedplate.core.units import format_bytes
from bedplate.hal.api import HalError, examine, open_device
from bedplate.orchestrator.doctor.finding import Finding, failed, lacks, not_run, ok

OLDEST_PYTHON = (3, 11)
_LIBRARIES = ("libbedplate_hal.so", "libbedplate_serving.so", "bedplate_hal_probe")
_REQUIREMENT = re.compile(r"^([A-Za-z0-9._-]+)>=([0-9.]+)$")


def python() -> Iterator[Finding]:
    """The interpreter's version."""
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < OLDEST_PYTHON:
        oldest = ".".join(map(str, OLDEST_PYTHON))
        yield lacks("python", f"Python {version}", f"use Python {oldest} or newer")
    else:
        yield ok("python", f"Python {version}")


def packages(requirements: Sequence[str] | None = None) -> Iterator[Finding]:
    """Every package that Bedplate needs is there and new enough."""
    wanted = requirements or importlib.metadata.requires("bedplate") or []
    wrong = [text for text in map(_lacking, wanted) if text]
    if wrong:
        yield lacks("packages", "; ".join(wrong), "run `make build`, or `pip install .` again")
    else:
        own = importlib.metadata.version("bedplate")
        yield ok("packages", f"bedplate {own} and the {len(wanted)} packages it needs")


def _lacking(requirement: str) -> str | None:
    match = _REQUIREMENT.match(requirement)
    if match is None:
        return f"{requirement!r} is not understood"
    name, least = match[1], match[2]
    try:
        found = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return f"{name} is not installed"
    return f"{name} is {found}, below {least}" if _numbers(found) < _numbers(least) else None


def _numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)]


def native_libraries() -> Iterator[Finding]:
    """The compiled parts lie where they belong."""
    folder = native_library_dir()
    missing = [name for name in _LIBRARIES if not (folder / name).is_file()]
    if missing:
        found = f"{', '.join(missing)} missing in {folder}"
        yield lacks("native libraries", found, "run `make build`, or `pip install .` again")
        return
    kernels = sorted(path.name for path in (folder / "kernels").glob("*.so"))
    yield ok("native libraries", f"all there, with {len(kernels)} kernel modules")


def backends() -> Iterator[Finding]:
    """Every backend that the HAL found: taken, without what it drives, or refused."""
    findings = examine()
    for found in findings:
        name = f"backend {found.backend or found.path.name}"
        if found.verdict == "refused":
            remedy = f"mend or remove {found.path}; see {quoted('hal doctor')}"
            yield failed(name, found.reason or "refused", remedy)
        elif found.verdict == "taken":
            yield ok(name, f"taken, found by {found.origin}")
        elif found.verdict == "unavailable":
            yield not_run(name, found.reason or "it cannot work here")
    if not findings:
        yield lacks("backends", "none was found", "run `make build`, or `pip install .` again")


def processor() -> Iterator[Finding]:
    """The level that kernels use, and the threads."""
    try:
        with open_device("cpu") as device:
            facts = device.info.properties
    except HalError as error:
        forced = os.environ.get("BEDPLATE_CPU_ISA")
        remedy = "unset BEDPLATE_CPU_ISA" if forced else f"see {quoted('hal doctor')}"
        yield lacks("processor", error.message, error.remedy or remedy)
        return
    level, best = facts.get("cpu.isa", "unknown"), facts.get("cpu.best_isa", "unknown")
    threads, cores = int(facts.get("cpu.threads", "0")), len(os.sched_getaffinity(0))
    text = f"{device.info.name}, level {level}, {threads} threads on {cores} cores"
    if threads > cores:
        remedy = f"unset BEDPLATE_HAL_CPU_THREADS, or give at most {cores}"
        yield failed("processor", text, remedy)
    elif level != best:
        yield ok("processor", f"{text}; {best} would be possible, BEDPLATE_CPU_ISA forces less")
    else:
        yield ok("processor", text)


def memory(needed_bytes: int | None, model: str) -> Iterator[Finding]:
    """What is free against what the model needs at least."""
    free = available_bytes()
    if needed_bytes is None or free is None:
        reason = (
            "the model's need is unknown" if free is not None else "/proc/meminfo is unreadable"
        )
        yield not_run("memory", reason)
        return
    text = f"{format_bytes(free)} free, {model} needs {format_bytes(needed_bytes)} at least"
    if free < needed_bytes:
        yield lacks("memory", text, "free memory, or serve a smaller model or a shorter context")
    else:
        yield ok("memory", text)


def available_bytes(
    proc: Path = Path("/proc"), cgroup: Path = Path("/sys/fs/cgroup")
) -> int | None:
    """Memory that new processes may take: the kernel's estimate, within a control group's limit.

    Sources: proc(5), MemAvailable; the kernel's documentation of cgroup v2, memory.max.
    """
    try:
        text = (proc / "meminfo").read_text()
        free = int(text.partition("MemAvailable:")[2].split()[0]) * 1024
    except (OSError, IndexError, ValueError):
        return None
    try:
        limit = (cgroup / "memory.max").read_text().strip()
        if limit != "max":
            used = int((cgroup / "memory.current").read_text())
            free = min(free, max(0, int(limit) - used))
    except (OSError, ValueError):
        pass  # no control group that says anything
    return free
