"""The oracle of an op: its reference result and how far others may be off.

Provided by the numpy reference of kernels; asked by hal's conformance suite.
Without one the op cases are NOT RUN.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class OpOracle(Protocol):
    """What every implementation of an op is compared with."""

    def reference(
        self, op: str, arrays: Sequence[Array | None], attributes: Mapping[str, Any]
    ) -> Sequence[Array]:
        """The outputs of the op, in the op's order.

        `arrays` are the inputs in the op's order, None for an optional one.
        Raises `BedplateError` for an unknown op or shapes that disagree.
        """
        ...

    def bound(
        self, op: str, arrays: Sequence[Array | None], attributes: Mapping[str, Any]
    ) -> Sequence[NDArray[np.float64]]:
        """The largest allowed |result - reference|, element by element.

        Derived from the dtypes and the length of the sums, never chosen.
        """
        ...
