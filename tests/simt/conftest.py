"""What the tests of the software GPU share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bedplate.simt.api import Machine

KERNELS = Path(__file__).parent / "kernels"


def sliced(names: Iterable[Any], every: int) -> list[Any]:
    """Parameters of which one in `every` runs each time, and the others in `make soak`."""
    return [
        pytest.param(name, marks=[pytest.mark.soak] if place % every else [])
        for place, name in enumerate(names)
    ]


@pytest.fixture
def machine() -> Iterator[Machine]:
    """A machine with little memory and one thread."""
    with Machine(threads=1, memory=1 << 24) as made:
        yield made


@pytest.fixture(params=[pytest.param("sm_75", marks=pytest.mark.soak), "sm_90a"])
def first(request: pytest.FixtureRequest) -> str:
    """The PTX of the first kernels, as the compiler wrote it for an architecture."""
    return (KERNELS / f"first.{request.param}.ptx").read_text()
