"""A lint: engine code that waits for a whole device or asks the driver for memory.

Either stalls everybody: a device-wide wait serialises streams that have nothing
to do with each other, and a driver allocation waits for the device on most
drivers. What must do so is allowed by name, with a reason, in the tree's
`standards.toml`:

    [[runtime_contract.allow]]
    path = "src/engine/load.py"
    call = "synchronize"
    reason = "weights are uploaded before the first request"
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bedplate.core.errors import UsageError
from bedplate.core.gates import Finding, GateResult, GateVerdict

CALLS = {
    "synchronize": (
        r"\.synchronize\s*\(|\b(?:cuda(?:Device|Stream)Synchronize|cu(?:Ctx|Stream)Synchronize"
        r"|hip(?:Device|Stream)Synchronize|clFinish)\s*\("
    ),
    "allocate": (
        r"\bdevice\.allocate\s*\(|\bcuda(?:Malloc|Free)\w*\s*\(|\bcuMem(?:Alloc|Free|Create|Map"
        r"|Unmap)\w*\s*\(|\bhip(?:Malloc|Free)\w*\s*\(|\bclCreateBuffer\s*\("
    ),
}
"""What is looked for, by the name that an exception uses."""

FOLDERS = ("src/bedplate/serving", "src/bedplate/kernels", "native/serving", "native/kernels")
"""The engine code of this house; `standards.toml` may name others."""
ENDINGS = {".py", ".c", ".h", ".cc", ".cpp", ".hpp", ".cu", ".cuh", ".rs"}
FILE = "standards.toml"
REMEDY = {
    "synchronize": "wait for a timeline's value, or allow it in standards.toml with a reason",
    "allocate": "take it from a pool before the steady state, or allow it with a reason",
}


class RuntimeContract:
    """The gate `runtime_contract`: the lint over a tree's engine code."""

    name = "runtime_contract"
    incident = "a device that runs out of memory after days, and streams that wait for each other"

    def check(self, tree: Path) -> GateResult:
        """NOT RUN for a tree without engine code; raises UsageError for a bad standards.toml."""
        settings = _settings(tree)
        folders = [tree / name for name in settings.get("folders", FOLDERS)]
        present = [folder for folder in folders if folder.is_dir()]
        if not present:
            return GateResult(
                self.name, GateVerdict.NOT_RUN, f"{tree} has none of {', '.join(map(str, folders))}"
            )
        allowed = _allowed(settings)
        used: set[tuple[str, str]] = set()
        findings = []
        for path in sorted(p for folder in present for p in folder.rglob("*")):
            if path.suffix not in ENDINGS:
                continue
            where = path.relative_to(tree).as_posix()
            for line, call in scan(path.read_text(errors="replace")):
                if (where, call) in allowed:
                    used.add((where, call))
                    continue
                findings.append(Finding(where, line, f"engine code calls {call}", REMEDY[call]))
        for where, call in sorted(allowed - used):
            findings.append(
                Finding(
                    where, None, f"nothing there calls {call} any more", f"take it out of {FILE}"
                )
            )
        if findings:
            return GateResult(
                self.name, GateVerdict.FAILED, f"{len(findings)} findings", tuple(findings)
            )
        return GateResult(self.name, GateVerdict.PASSED)


def scan(text: str) -> Iterator[tuple[int, str]]:
    """(line, call) of every forbidden call in a source text; comments do not count."""
    for number, line in enumerate(text.splitlines(), start=1):
        code = re.split(r"#(?!include)|//|^\s*\*", line, maxsplit=1)[0]
        for call, pattern in CALLS.items():
            if re.search(pattern, code):
                yield number, call


def _settings(tree: Path) -> dict[str, Any]:
    path = tree / FILE
    if not path.exists():
        return {}
    try:
        found = tomllib.loads(path.read_text()).get("runtime_contract", {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as cause:
        raise UsageError(f"{path} cannot be read: {cause}") from cause
    if not isinstance(found, dict):
        raise UsageError(f"{path}: runtime_contract is no table")
    return found


def _allowed(settings: dict[str, Any]) -> set[tuple[str, str]]:
    allowed = set()
    for entry in settings.get("allow", []):
        where, call, reason = (str(entry.get(key, "")) for key in ("path", "call", "reason"))
        if call not in CALLS:
            raise UsageError(f"{FILE}: no call is named {call!r}", remedy=f"use {', '.join(CALLS)}")
        if not reason.strip():
            raise UsageError(f"{FILE}: {where} may {call} for no reason", remedy="say why it must")
        allowed.add((where, call))
    return allowed
