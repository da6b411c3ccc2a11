"""What a check found: one sentence in the words of compute-sanitizer, and where.

Findings are told once for each pair of places in the text, with how often they were seen,
in the order of first appearance; the first thread that did it stands for all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from bedplate.core.launch import Triple

Check = Literal["memory", "race", "sync", "init"]
Level = Literal["error", "warning", "info"]
CHECKS: tuple[Check, ...] = ("memory", "race", "sync", "init")
SCHEMA = "bedplate.simt-check/1"


@dataclass(frozen=True)
class Site:
    """An instruction in a text, and the thread that ran it."""

    file: str
    line: int
    ptx_line: int
    text: str
    block: Triple
    thread: Triple


@dataclass(frozen=True)
class Finding:
    """`kind` is a word that programs may test; `other` is the second place of a race."""

    check: Check
    kind: str
    level: Level
    message: str
    kernel: str
    site: Site
    advice: str
    address: int | None = None
    other: Site | None = None
    state: Sequence[str] = ()
    count: int = 1

    @property
    def where(self) -> str:
        """File and line."""
        return f"{self.site.file}:{self.site.line}"

    def lines(self) -> list[str]:
        """As compute-sanitizer prints it."""
        site = self.site
        found = [
            self.message if self.level == "error" else f"{self.level.title()}: {self.message}",
            f"    at {self.kernel} in {site.file}:{site.line} ({site.text})",
            f"    by thread {_triple(site.thread)} in block {_triple(site.block)}",
        ]
        if self.other is not None:
            found.append(
                f"    and {self.other.file}:{self.other.line} ({self.other.text}) by thread "
                f"{_triple(self.other.thread)} in block {_triple(self.other.block)}"
            )
        if self.address is not None:
            found.append(f"    Address {self.address:#x}")
        found += [f"    {line}" for line in self.state]
        found.append(f"    {self.advice}")
        if self.count > 1:
            found.append(f"    seen {self.count} times")
        return [f"========= {line}" for line in found]


def _triple(value: Triple) -> str:
    return f"({','.join(map(str, value))})"


@dataclass
class Findings:
    """Findings without doubles."""

    kernel: str
    _found: dict[Any, Finding] = field(default_factory=dict)

    def add(self, finding: Finding) -> None:
        """Keep it, or count it when its places are known."""
        other = finding.other and (finding.other.file, finding.other.line)
        site = finding.site
        key = finding.check, finding.kind, finding.level, site.file, site.line, other
        known = self._found.get(key)
        if known is not None:
            finding = replace(known, count=known.count + finding.count)
        self._found[key] = finding

    @property
    def all(self) -> list[Finding]:
        """In the order of first appearance."""
        return list(self._found.values())


def sarif(findings: Sequence[Finding]) -> Mapping[str, Any]:
    """Findings as SARIF 2.1.0. Source: OASIS, "Static Analysis Results Interchange Format"."""
    rules = sorted({f"{finding.check}/{finding.kind}" for finding in findings})
    levels = {"error": "error", "warning": "warning", "info": "note"}
    return {
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {"name": "bedplate simt", "rules": [{"id": rule} for rule in rules]}
                },
                "results": [
                    {
                        "ruleId": f"{finding.check}/{finding.kind}",
                        "level": levels[finding.level],
                        "message": {"text": f"{finding.message}. {finding.advice}"},
                        "locations": [
                            {
                                "physicalLocation": {
                                    "artifactLocation": {"uri": site.file},
                                    "region": {"startLine": max(site.line, 1)},
                                }
                            }
                            for site in (finding.site, finding.other)
                            if site is not None
                        ],
                    }
                    for finding in findings
                ],
            }
        ],
    }


def junit(kernel: str, checks: Sequence[str], findings: Sequence[Finding]) -> str:
    """Findings as JUnit's XML: a case for each check, failed by errors and warnings."""
    from xml.sax.saxutils import escape, quoteattr

    cases, failures = [], 0
    for check in checks:
        bad = [f for f in findings if f.check == check and f.level != "info"]
        failures += bool(bad)
        text = "\n".join(line for finding in bad for line in finding.lines())
        inner = ""
        if bad:
            inner = f"<failure message={quoteattr(bad[0].message)}>{escape(text)}</failure>"
        name = f"classname={quoteattr(kernel)} name={quoteattr(check)}"
        cases.append(f"<testcase {name}>{inner}</testcase>")
    head = f'<testsuite name="bedplate simt" tests="{len(cases)}" failures="{failures}">'
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + head + "".join(cases) + "</testsuite>\n"
