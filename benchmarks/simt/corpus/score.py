"""How much foreign PTX runs, in both engines, to the right results.

A text is what a tool wrote for an architecture, a launch one of its kernels. Each launch
runs in both engines, compared register by register (`verify`), and then alone on the fast
machine; a launch is right when the engines agree and every array holds what numpy says. What
stands in the way is the first word of it: the parser's, the engines' or numpy's.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.simt.corpus.cases import CASES, Array, Bf16, Case

from bedplate.core.errors import BedplateError
from bedplate.simt.api import Machine, verify

TEXTS = Path(__file__).with_name("texts.zip")


@dataclass(frozen=True)
class Launch:
    """A kernel of a text; `text` is all that the tool wrote into one file."""

    tool: str
    kernel: str
    arch: str
    text: str

    @property
    def name(self) -> str:
        """For people and for tests."""
        return f"{self.tool}.{self.kernel}.{self.arch}"


@dataclass(frozen=True)
class Outcome:
    """`stage` is `parse`, `run`, `wrong` or `right`; `why` is one sentence unless right."""

    launch: Launch
    stage: str
    why: str = ""


def launches(texts: Path = TEXTS) -> Iterator[Launch]:
    """All of the corpus, in the order of names."""
    with zipfile.ZipFile(texts) as archive:
        for entry in sorted(archive.namelist()):
            parts = entry.removesuffix(".ptx").split(".")
            text = archive.read(entry).decode("utf-8")
            for kernel in re.findall(r"\.entry (\w+)", text):
                yield Launch(parts[0], kernel, parts[-1], text)


def alone(launch: Launch) -> str:
    """The text with this kernel and no other, so that one does not answer for its neighbours."""
    pieces = re.split(r"(?m)^(?=\s*\.visible \.entry )", launch.text)
    kept = [
        pieces[0],
        *(p for p in pieces[1:] if re.match(rf"\s*\S+ \.entry {launch.kernel}\b", p)),
    ]
    if len(pieces) > 2 and re.search(r"\.(func|section)\b", "".join(pieces[1:])):
        return launch.text
    return "".join(kept)


def try_launch(launch: Launch, *, both: bool = True) -> Outcome:
    """Run it, in both engines or fast; every error of the machine's own is an outcome."""
    case = CASES[launch.tool, launch.kernel]()
    found = re.match(r"// shared (\d+)", launch.text)
    shared = int(found[1]) if found else case.shared
    stage = "parse"
    with Machine(launch.arch, threads=1, memory=1 << 24) as machine:
        try:
            kernel = machine.load(alone(launch), f"{launch.name}.ptx")[launch.kernel]
            stage = "run"
            if both:
                verify(
                    kernel, case.grid, case.block, _values(machine, case)[0], dynamic_shared=shared
                )
            values, arrays = _values(machine, case)
            kernel[case.grid, case.block, shared](*values)
        except BedplateError as error:
            return Outcome(launch, stage, str(error).partition("; known are")[0])
        for index, wanted in case.expected.items():
            held = arrays[index].numpy()
            if isinstance(wanted, Bf16):
                held = wanted.read(held)
            expected = np.asarray(wanted.values if isinstance(wanted, Bf16) else wanted)
            if not np.allclose(held, expected, case.rtol, case.atol):
                apart = ~np.isclose(held, expected, case.rtol, case.atol)
                at = tuple(int(i[0]) for i in np.nonzero(apart))
                why = f"argument {index} at {at} is {held[at]} and not {expected[at]}"
                return Outcome(launch, "wrong", why)
    return Outcome(launch, "right")


def _values(machine: Machine, case: Case) -> tuple[list[Any], dict[int, Any]]:
    values: list[Any] = []
    arrays: dict[int, Any] = {}
    for index, value in enumerate((*case.values, *case.extra)):
        if isinstance(value, Array):
            arrays[index] = machine.array(value.data)
            data = value.data
            sizes = (data.size, data.itemsize)
            values += [np.uint64(0), np.uint64(0), *map(np.uint64, sizes), arrays[index]]
            values += [np.uint64(v) for v in (*data.shape, *data.strides)]
        elif isinstance(value, np.ndarray):
            arrays[index] = machine.array(value)
            values.append(arrays[index])
        else:
            values.append(value)
    return values, arrays
