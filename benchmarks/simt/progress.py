"""A long campaign's progress: a line with the time that is left, a state to go on from, a record.

The state names the commit that it belongs to; with another one a campaign begins anew. The
record says how many cases agreed, with commit and machine, as other numbers do.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import llvmlite
import numpy as np
from benchmarks.simt.record import counted
from benchmarks.trial import ROOT, not_run

from bedplate.core.machine import tree_facts

EVERY_S = 10.0


def words(parser: argparse.ArgumentParser) -> None:
    """The options of every campaign."""
    parser.add_argument("--out", type=Path, required=True, help="the file that records go to")
    parser.add_argument("--quick", action="store_true", help="few cases, to try the code")
    parser.add_argument("--state", type=Path, help="a file to go on from")


@dataclass
class Done:
    """What of a campaign is done."""

    commit: str
    state: Path | None
    next: int = 0
    seconds: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)
    _shown: float = field(default_factory=time.monotonic)
    _since: float = field(default_factory=time.monotonic)
    _first: int = 0

    @classmethod
    def begin(cls, state: Path | None) -> Done:
        """The state of a file, or of a beginning."""
        tree = tree_facts(ROOT)
        if tree is None:
            not_run("the campaign wants a git tree, for the commit")
        made = cls(tree.commit, state)
        if state is not None and state.exists():
            told = json.loads(state.read_text())
            if told["commit"] == tree.commit:
                made.next = made._first = told["next"]
                made.seconds, made.counts = told["seconds"], told["counts"]
        return made

    def advance(self, upto: int, count: int) -> None:
        """All before `upto` are done; shown and kept every few seconds."""
        self.next = upto
        now = time.monotonic()
        if upto < count and now - self._shown < EVERY_S:
            return
        self.seconds += now - self._since
        self._shown = self._since = now
        left = (count - upto) * self.seconds / upto
        filled = 30 * upto // count
        bar = "#" * filled + "." * (30 - filled)
        print(f"[{bar}] {upto} of {count}, {left:.0f} s left", file=sys.stderr, flush=True)
        if self.state is not None:
            told = {"commit": self.commit, "next": upto, "seconds": self.seconds}
            self.state.write_text(json.dumps(told | {"counts": self.counts}))

    def store(self, out: Path, *, name: str, unit: str, value: float, **fields: Any) -> None:
        """Add the record of a whole campaign to a results file."""
        tree = tree_facts(ROOT)
        assert tree is not None
        fields["conditions"] = {"threads": 1}
        fields.setdefault("quality", {})["seconds"] = round(self.seconds)
        versions = {"llvmlite": llvmlite.__version__, "numpy": np.__version__}
        counted(out, tree, name, unit, value, versions=versions, **fields)
