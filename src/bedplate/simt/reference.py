"""A launch on the reference: one block after the other, with whoever watches.

It writes the memory that the fast machine would write, a thousand times slower, and tells
an `Observer` every issue, write, access and branch. What ends it early is an exception of
the observer's; memory stays as it is then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import bedplate.simt.interpreter.classes  # noqa: F401 - registers the reference
from bedplate.simt import abi, arguments, printing
from bedplate.simt.interpreter.engine import Fault, Grid, Observer
from bedplate.simt.interpreter.scheduled import WARPS
from bedplate.simt.machine import DEFAULT_BUDGET, Kernel, LaunchShape
from bedplate.simt.uniformity import Layout


class Reference:
    """A launch that is checked and packed, and not yet run."""

    def __init__(
        self,
        kernel: Kernel,
        grid_shape: Any,
        block_shape: Any,
        values: Sequence[Any],
        *,
        dynamic_shared: int = 0,
        budget: int = DEFAULT_BUDGET,
    ) -> None:
        """Raises `LaunchInvalid` as a launch does."""
        self.kernel = kernel
        self.shape = LaunchShape.of(kernel, grid_shape, block_shape, dynamic_shared)
        places = kernel.places
        parameters = arguments.pack(
            kernel.function, places.parameters, places.parameter_bytes, values
        )
        self.order = kernel.order(Layout.of(self.shape.block))
        self.grid = Grid(
            kernel.graph_for(self.order),
            places,
            kernel.machine.memory,
            kernel.loaded.symbols,
            self.shape.grid,
            self.shape.block,
            parameters,
            dynamic_shared,
            budget,
            seed=kernel.machine.seed,
            warp=WARPS[self.order],
        )

    def run(self, observer: Observer, blocks: int | None = None) -> None:
        """Run the first `blocks` blocks, all by default; raises `LaunchFailed` for a fault."""
        self.grid.observer = observer
        for number in range(self.shape.blocks if blocks is None else blocks):
            try:
                self.grid.run_block(number)
            except Fault as fault:
                failure = self.kernel.failure(self.shape, self._record(fault, number))
                failure.printed = self.printed
                raise failure from None

    @property
    def printed(self) -> str:
        """What `printf` said so far."""
        return printing.text(self.grid.printed, self.kernel.machine.memory)

    def _record(self, fault: Fault, block: int) -> abi.FaultRecord:
        """The fault as compiled code would have written it."""
        made = fault.made
        record = abi.FaultRecord(
            code=fault.code,
            instruction=len(self.kernel.function.instructions) if made is None else made.number,
            mask=1 << fault.lane,
            warp=fault.warp,
            block=block,
        )
        record.addresses[fault.lane] = fault.address
        return record
