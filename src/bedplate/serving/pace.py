"""How long a step may take before it counts as hanging.

From what steps of about its size took on this machine, so that a large model on a slow
processor is not replaced in the middle of its work, and a small one that hangs is seen
soon. Only where nothing was measured yet an estimate stands in, which every processor
meets.
"""

from __future__ import annotations

LEAST_STALL_NS = 10_000_000_000  # granted on top: a busy machine, a page that must be read
# Prompts read at the end of a long context cost several times those at its begin.
SLACK = 8
SLOWEST_FLOP_PER_NS = 10  # portable loops on two cores give several times that
_FORGET = 64  # a step is forgotten by a 64th with each one after it


def stall_after_ns(parameters: int, rows: int) -> int:
    """The allowance for a step of `rows` tokens before anything is measured.

    Two operations a weight and row, at a speed that every processor reaches.
    """
    return LEAST_STALL_NS + 2 * parameters * rows // SLOWEST_FLOP_PER_NS


class Pace:
    """The longest steps lately, by size. Only the engine's thread uses it."""

    def __init__(self, parameters: int) -> None:
        """For a model of `parameters` weights."""
        self._parameters = parameters
        self._worst_ns: dict[int, int] = {}  # by the bits of the step's rows

    def took(self, rows: int, duration_ns: int) -> None:
        """A step of `rows` tokens ran."""
        size = rows.bit_length()
        known = self._worst_ns.get(size, 0)
        self._worst_ns[size] = max(duration_ns, known - known // _FORGET)

    def allowed_ns(self, rows: int) -> int:
        """How long a step of `rows` tokens may take.

        Ten seconds and `SLACK` times the longest step of its size, or of the next larger
        size that ran; else the longest of the next smaller size, in proportion.
        """
        if not self._worst_ns:
            return stall_after_ns(self._parameters, rows)
        size = rows.bit_length()
        larger = [known for known in self._worst_ns if known >= size]
        if larger:
            return LEAST_STALL_NS + SLACK * self._worst_ns[min(larger)]
        smaller = max(self._worst_ns)
        grown = self._worst_ns[smaller] << (size - smaller + 1)
        return LEAST_STALL_NS + SLACK * grown
