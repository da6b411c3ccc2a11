"""One run of a system's benchmark: its words, its commit, and the records it stores.

Every benchmark's main begins with `begin` and ends with `Trial.finish`. What
the tree or the machine lacks ends it with 3 and one sentence (NOT RUN), before
anything is measured.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from bedplate.core.machine import TreeFacts, machine_facts, tree_facts
from bedplate.core.measurement import Measurement, measured, store
from bedplate.core.samples import Summary

ROOT = Path(__file__).resolve().parents[1]


@dataclass
class Trial:
    """What is common to the records of one run."""

    system: str
    out: Path
    quick: bool
    tree: TreeFacts
    seed: int | None
    common: dict[str, Any]
    records: list[Measurement] = field(default_factory=list)

    def rounds(self, full: int, quick: int) -> int:
        """How many rounds to measure: `quick` of them only try the code."""
        return quick if self.quick else full

    def add(self, summary: Summary, *, rounds: int, **fields: Any) -> Measurement:
        """Make a record of `fields` over the common ones; it is stored at the end."""
        record = measured(summary, rounds=rounds, tree=self.tree, **{**self.common, **fields})
        self.records.append(record)
        return record

    def finish(self) -> int:
        """Store all, name the goals that were missed; 1 when there are some."""
        store(self.out, self.records)
        missed = [record for record in self.records if is_missed(record)]
        for record in missed:
            print(f"goal of {record.name} MISSED: {record.value:.6g}, not {record.goal:g}")
        if not missed and any(record.goal is not None for record in self.records):
            print("every goal met")
        return 1 if missed else 0


def is_missed(record: Measurement) -> bool:
    """Whether a record has a goal on the wrong side of its value."""
    if record.goal is None or record.value is None:
        return False
    if record.better == "higher":
        return record.value < record.goal
    return record.value > record.goal


def begin(
    system: str,
    doc: str | None,
    *,
    programs: tuple[Path, ...] = (),
    seed: int | None = None,
    **common: Any,
) -> Trial:
    """Read `--out`, `--quick` and, where `seed` is its default, `--seed`.

    `common` goes into each record. Exits with 3 without a git tree, whose
    commit a number needs, or without one of `programs`.
    """
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="the file that records go to")
    parser.add_argument("--quick", action="store_true", help="few rounds, to try the code")
    if seed is not None:
        parser.add_argument("--seed", type=int, default=seed)
    words = parser.parse_args()
    tree = tree_facts(ROOT)
    if tree is None:
        not_run("the benchmark wants a git tree, for the commit")
    for program in programs:
        if not program.exists():
            not_run(f"the benchmark wants {program.name}; `make build` makes it")
    given = getattr(words, "seed", None)
    facts = {"system": system, "machine": machine_facts(), "seed": given, **common}
    return Trial(system, words.out, words.quick, tree, given, facts)


def not_run(reason: str) -> NoReturn:
    """End with 3 and the reason."""
    print(f"NOT RUN: {reason}", file=sys.stderr)
    sys.exit(3)
