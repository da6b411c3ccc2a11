"""Run gates over a tree and say what they found.

A gate that prevents no named incident is a candidate for deletion, and that is
said beside its verdict. A gate that could not run, or that raised, is NOT RUN
with its reason, never a pass; input that is wrong is the caller's to mend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bedplate.core.errors import BedplateError, UsageError
from bedplate.core.gates import Gate, GateResult, GateVerdict


@dataclass(frozen=True, slots=True)
class Verdict:
    """One gate's result, and the incident class that it prevents."""

    result: GateResult
    incident: str

    @property
    def is_candidate_for_deletion(self) -> bool:
        """Whether nobody says what it prevents."""
        return not self.incident.strip()


@dataclass(frozen=True, slots=True)
class Report:
    """All verdicts over a tree, in the order of the gates."""

    tree: Path
    verdicts: tuple[Verdict, ...]

    @property
    def failed(self) -> bool:
        """Whether a gate failed; NOT RUN is no failure, and no pass."""
        return any(v.result.verdict is GateVerdict.FAILED for v in self.verdicts)

    @property
    def is_incomplete(self) -> bool:
        """Whether a gate was NOT RUN: what runs is what was asked for, so all are required."""
        return any(v.result.verdict is GateVerdict.NOT_RUN for v in self.verdicts)


def check(
    tree: Path,
    gates: Iterable[Gate],
    names: Iterable[str] = (),
    told: Callable[[str], None] = lambda _: None,
) -> Report:
    """Run the gates called `names`, or all, over `tree`; `told` hears each name first.

    Raises UsageError for a tree that is no folder, for two gates of one name,
    for an unknown name, and for a file of the tree that a gate reads and cannot.
    """
    if not tree.is_dir():
        raise UsageError(f"{tree} is no folder", remedy="give the root of a source tree")
    by_name: dict[str, Gate] = {}
    for gate in gates:
        if gate.name in by_name:
            raise UsageError(f"two gates are called {gate.name}", remedy="rename one")
        by_name[gate.name] = gate
    wanted = list(names) or list(by_name)
    for name in wanted:
        if name not in by_name:
            known = ", ".join(by_name) or "none"
            raise UsageError(f"no gate is called {name!r}", remedy=f"there are {known}")
    return Report(tree, tuple(_run(tree, (by_name[name] for name in wanted), told)))


def _run(tree: Path, gates: Iterable[Gate], told: Callable[[str], None]) -> Iterator[Verdict]:
    for gate in gates:
        told(gate.name)
        try:
            result = gate.check(tree)
        except UsageError:
            raise
        except (BedplateError, OSError) as error:
            result = GateResult(gate.name, GateVerdict.NOT_RUN, str(error))
        yield Verdict(result, gate.incident)
