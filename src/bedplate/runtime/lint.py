"""A lint: engine code that waits for a whole device or asks the driver for memory.

Either stalls everybody: a device-wide wait serialises streams that have nothing
to do with each other, and a driver allocation waits for the device on most
drivers. Patterns over code, not a type checker: a receiver is a device when its name
says so, so a call behind a name of somebody's own is missed. What must wait or
allocate is allowed in `standards.toml`, see `standards_file`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from bedplate.core.gates import Finding, GateResult, GateVerdict
from bedplate.runtime.source import code_of
from bedplate.runtime.standards_file import FILE, read_standards

_DOT = r"\s*(?:\.|->|::)\s*"
_DEVICE = r"(?:\w*device\w*|(?:\w*_)?dev\d*)\s*(?:\[[^\]\n]*\]|\([^()\n]*\))?"
CALLS = {
    "synchronize": re.compile(
        # A call of anything, or of a name alone where a statement or an argument may begin.
        r"(?:\.|->)\s*(?P<of>synchronize)\s*\("
        r"|(?:^|[;{}()\[=,!&|?]|(?<!:):(?!:)|\b(?:return|await|else|do|and|or|not))\s*"
        r"(?:\w+\s*::\s*)*(?P<bare>synchronize)\s*\("
        r"|\b(?P<named>cuda(?:Device|Stream|Event|Thread)Synchronize"
        r"|cu(?:Ctx|Stream|Event)Synchronize|(?:device|stream|event)Synchronize"
        r"|hip(?:Device|Ctx|Stream|Event)Synchronize|clFinish|clWaitForEvents)\s*\(",
        re.MULTILINE,
    ),
    "allocate": re.compile(
        rf"\b(?i:{_DEVICE}){_DOT}(?P<of>allocate)\s*\("
        r"|(?:->|\.)\s*memory\s*(?:->|\.)\s*(?P<table>create|allocate|map|unmap|reserve|release"
        r"|pin)\s*\("
        r"|\b(?:mem|memory)\s*->\s*(?P<record>create|allocate|map|unmap|reserve|release|pin)\s*\("
        r"|\bcuda\s*\.\s*(?P<cache>empty_cache)\s*\("
        r"|\b(?P<named>cuda(?:Malloc|Free)\w*|cudaHost(?:Alloc|Register|Unregister)"
        r"|cuMem(?:Alloc|Free|Create|Release|Map|Unmap|Host(?:Alloc|Register|Unregister)"
        r"|Address(?:Reserve|Free))\w*"
        r"|hip(?:Malloc|Free|HostMalloc|HostFree|HostAlloc|MemCreate|MemMap|MemUnmap)\w*"
        r"|clCreate(?:Buffer|Image|Pipe)\w*|clSVM(?:Alloc|Free)|clReleaseMemObject)\s*\(",
    ),
}
"""What is looked for, by the name that an exception uses."""

ENDINGS = {".py", ".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".cu", ".cuh", ".rs"}
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
        contract = read_standards(tree)
        folders = [tree / name for name in contract.folders]
        present = [folder for folder in folders if folder.is_dir()]
        if not present:
            return GateResult(
                self.name,
                GateVerdict.NOT_RUN,
                f"{tree} has none of the engine folders {', '.join(contract.folders)}; name yours "
                f"in {FILE}, as runtime_contract.folders",
            )
        allowed = {(entry.path, entry.call) for entry in contract.allow}
        used: set[tuple[str, str]] = set()
        findings = []
        for path in sorted(p for folder in present for p in folder.rglob("*")):
            if path.suffix not in ENDINGS or not path.is_file():
                continue  # a folder, a pipe that nobody writes to
            where = path.relative_to(tree).as_posix()
            for line, call in scan(path.read_text(errors="replace"), path.suffix):
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


def scan(text: str, suffix: str = ".py") -> Iterator[tuple[int, str]]:
    """(line, call) of every forbidden call in a source text, a call once a line.

    Comments and literals do not count; a call may go over lines, and stand in a macro.
    """
    code = code_of(text, suffix)
    found = {
        (code.count("\n", 0, match.start(match.lastgroup or 0)) + 1, call)
        for call, pattern in CALLS.items()
        for match in pattern.finditer(code)
    }
    yield from sorted(found)
