"""A record that says how many of something agreed; no compiler is needed to write it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bedplate.core.machine import TreeFacts, machine_facts
from bedplate.core.measurement import measured, store
from bedplate.core.samples import Summary


def counted(out: Path, tree: TreeFacts, name: str, unit: str, value: float, **fields: Any) -> None:
    """Add one number, counted once, to a results file."""
    record = measured(
        Summary(1, value, value, value, None),
        rounds=1,
        tree=tree,
        system="simt",
        machine=machine_facts(),
        name=name,
        unit=unit,
        better="higher",
        **fields,
    )
    store(out, [record])
