"""Counts of a launch on the reference: every lane looked at, by the pure rules."""

from __future__ import annotations

from bedplate.simt import abi
from bedplate.simt.banks import wavefronts
from bedplate.simt.coalescing import sectors
from bedplate.simt.counts import Count
from bedplate.simt.interpreter.base import Lanes
from bedplate.simt.interpreter.engine import Observer, WarpState
from bedplate.simt.module import Instruction


class Tally(Observer):
    """Watches the reference; `counts` by the number of the instruction."""

    def __init__(self) -> None:
        self.counts: dict[int, Count] = {}

    def _of(self, made: Instruction) -> Count:
        return self.counts.setdefault(made.number, Count())

    def issued(self, warp: WarpState, made: Instruction, mask: int) -> None:
        """One warp more, and its lanes."""
        count = self._of(made)
        count.issues += 1
        count.lanes += mask.bit_count()

    def branched(self, warp: WarpState, made: Instruction, mask: int, taken: int) -> None:
        """Divergent when some lanes go and some stay."""
        self._of(made).divergent += taken not in (0, mask)

    def accessed(
        self, warp: WarpState, made: Instruction, space: str, addresses: Lanes, bytes: int
    ) -> None:
        """Sectors of what is global, wavefronts of what is shared."""
        active = [int(addresses[lane]) for lane in warp.lanes()]
        shared = active if space == "shared" else []
        far = active if space == "global" else []
        if space == "generic":
            shared = [a - abi.SHARED_BASE for a in active if 0 <= a - abi.SHARED_BASE < 1 << 32]
            local = [a for a in active if 0 <= a - abi.LOCAL_BASE < 1 << 32]
            far = [a for a in active if a not in local and a - abi.SHARED_BASE not in shared]
        count = self._of(made)
        count.requests += bool(far)
        count.active += len(far)
        count.sectors += sectors(far)
        count.shared_requests += bool(shared)
        count.shared_active += len(shared)
        count.wavefronts += wavefronts(shared, bytes)
        count.settle(bytes)
