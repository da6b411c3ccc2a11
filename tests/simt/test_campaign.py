"""A slice of the campaign of engine against engine; all of it is a soak test."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.simt import campaign, progress, tuples

from bedplate.simt.api import Machine
from bedplate.simt.interpreter.base import EVALUATES
from bedplate.simt.signature import table


@pytest.mark.parametrize(
    ("count", "every"),
    [(tuples.CHUNK, 97), pytest.param(campaign.COUNT, 1, marks=pytest.mark.soak)],
    ids=["slice", "soak"],
)
def test_no_difference(count: int, every: int) -> None:
    """Every form, or each 97th with few tuples."""
    done = progress.Done.begin(None)
    assert campaign.campaign(count, done, every) == done.next >= 8


def test_one_wrong_bit_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the form, the operands and both results."""
    right = EVALUATES["integer", "xor"]

    def wrong(made: object, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        result: np.ndarray = right(made, a, b)
        return np.where((a & 0xFF) == 0x21, result ^ 8, result)

    monkeypatch.setitem(EVALUATES, ("integer", "xor"), wrong)
    form, slots = table.find("xor.b32")[0]
    with (
        Machine(threads=1, memory=64 << 20) as machine,
        pytest.raises(campaign.Differs, match=r"xor\.b32 of \(0x\w*21, .*compiled .* reference"),
    ):
        campaign.compare(machine, "xor.b32", form, slots, tuples.CHUNK)
