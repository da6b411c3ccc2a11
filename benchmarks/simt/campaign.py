"""Engine against engine: a million operand tuples for each form, and no difference.

    python -m benchmarks.simt.campaign --out results.json [--quick] [--state FILE]

Compared are the compiled kernel of each spelling and the reference's function of its form,
called on all tuples at once: integer and carry arithmetic, conversions in all roundings, and
floats to nearest. A difference ends the run with form, operands and both results. With
`--state` a run goes on where an earlier one of the same commit was stopped.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from benchmarks.simt import fuzz, progress, tuples

import bedplate.simt.interpreter.classes  # noqa: F401 - registers the reference
from bedplate.simt import nans
from bedplate.simt.api import Machine
from bedplate.simt.interpreter.base import EVALUATES
from bedplate.simt.module import Instruction
from bedplate.simt.operands import _types
from bedplate.simt.scalar import SCALARS
from bedplate.simt.signature import table
from bedplate.simt.signature.base import Form

GROUPS = ("integer", "carry", "conversion", "floating")
COUNT, QUICK = tuples.MOST, 2 * tuples.CHUNK


class Differs(Exception):
    """The engines do not agree."""


def spellings() -> Iterator[tuple[str, Form, dict[str, str]]]:
    """What is compared: every spelling, of floats those that round to nearest."""
    for form in table.FORMS:
        if form.group not in GROUPS or form.opcode == "cvta":
            continue
        for name in form.spellings():
            slots = form.match(name.split(".")[1:])
            assert slots is not None
            if form.group == "floating" and slots.get("rnd", "rn") != "rn":
                continue
            if not fuzz.APPROXIMATE.search(name):
                yield name, form, slots


def _operand(kind: str, bits: np.ndarray) -> np.ndarray:
    if kind == "pred":
        return (bits & 1).astype(bool)
    return bits.view(SCALARS[kind].dtype)


def _evaluated(made: Instruction, operands: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    """The reference's results; values that come more than once are computed once."""
    function = EVALUATES[made.form.group, made.opcode]
    back: Any = slice(None)
    if len(operands) == 1 and operands[0].dtype != bool:
        bits = operands[0].view(f"u{operands[0].itemsize}")
        different, back = np.unique(bits, return_inverse=True)
        operands = [different.view(operands[0].dtype)]
    with np.errstate(all="ignore"):
        results = function(made, *operands)
    several = results if isinstance(results, tuple) else (results,)
    return tuple(np.asarray(result)[back] for result in several)


def reference(
    made: Instruction, told: dict[str, Any], given: list[np.ndarray], types: dict[str, Any]
) -> list[np.ndarray]:
    """What the reference makes of all tuples, as bits of the outputs' kinds."""
    places = [place for place in made.form.inputs if place.kind != "carry"]
    operands = [
        _operand(types[place.name].name, data) for place, data in zip(places, given, strict=False)
    ]
    if len(places) < len(made.form.inputs):
        first, second = given[-2:]
        if made.opcode == "subc":
            operands.append(first < second)
        else:
            operands.append(first.astype("u8") + second >= 1 << 32)
    found = []
    results = _evaluated(made, operands)
    for place, result in zip(made.form.outputs, results, strict=False):
        if place.kind == "carry":
            sign = -1 if made.opcode in ("sub", "subc") else 1
            found.append((sign * result.astype("i8")).astype("u4"))
        elif result.dtype == bool:
            found.append(result.astype("u4"))
        else:
            bits = np.ascontiguousarray(result).view(f"u{result.itemsize}").copy()
            if result.dtype.kind == "f" and nans.writes_number(made):
                bits[np.isnan(result)] = nans.CANONICAL[8 * result.itemsize]
            found.append(bits)
    widths = [tuples.WORDS[tuples.bits(kind)] for kind in told["outputs"]]
    return [bits.astype(width) for bits, width in zip(found, widths, strict=True)]


def compare(machine: Machine, name: str, form: Form, slots: dict[str, str], count: int) -> None:
    """Both engines on the first tuples of a form."""
    text, told = fuzz.kernel(name, "k", form, slots)
    told["count"] = count
    loaded = machine.load(fuzz.HEAD + text)
    # the kernel's own arithmetic writes other registers
    (made,) = (
        made
        for block in loaded["k"].graph.blocks
        for made in block.all
        if made.outputs and made.outputs[0][0].name.startswith("%o")
    )
    assert made.form is form
    given = tuples.inputs(told)
    fast = fuzz.expected(machine, loaded, told, count, False)
    slow = reference(made, told, given, _types(form, slots))
    for one, other in zip(fast, slow, strict=True):
        for at in np.nonzero(one != other)[0][:1]:
            operands = ", ".join(f"{data[at]:#x}" for data in given)
            raise Differs(
                f"{name} of ({operands}): compiled {one[at]:#x}, reference {other[at]:#x}"
            )


def campaign(count: int, done: progress.Done, every: int = 1) -> int:
    """Compare each form, or some; how many there are."""
    listed = list(spellings())[::every]
    with Machine(threads=1, memory=256 << 20) as machine:
        for number in range(done.next, len(listed)):
            compare(machine, *listed[number], count)
            done.advance(number + 1, len(listed))
    return len(listed)


def main() -> int:
    """Run, print and store; 1 at the first difference."""
    parser = argparse.ArgumentParser(description="engine against engine")
    progress.words(parser)
    given = parser.parse_args()
    count = QUICK if given.quick else COUNT
    done = progress.Done.begin(given.state)
    try:
        forms = campaign(count, done)
    except Differs as fault:
        print(f"DIFFER: {fault}", file=sys.stderr)
        return 1
    quality = {"differences": 0, "tuples of each": count}
    done.store(given.out, name="equal_engines", unit="forms", value=forms, quality=quality)
    print(json.dumps(quality | {"forms": forms, "seconds": round(done.seconds, 1)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
