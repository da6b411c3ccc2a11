"""What a launch counted, for each instruction; both engines fill it in alike.

`issues` counts warps that ran the instruction, `lanes` the threads in them, guards not
looked at (as the hardware's thread_inst_executed does not). `requests` are accesses with
at least one lane whose guard holds, and `active` those lanes; of global memory, and under
`shared_` of shared memory. A generic access counts by where its lanes' addresses are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from bedplate.simt.banks import least


@dataclass
class Count:
    """The counts of one instruction, or sums of them."""

    issues: int = 0
    lanes: int = 0
    divergent: int = 0
    requests: int = 0
    active: int = 0
    bytes: int = 0
    sectors: int = 0
    shared_requests: int = 0
    shared_active: int = 0
    shared_bytes: int = 0
    wavefronts: int = 0
    conflicts: int = 0

    def add(self, other: Count) -> None:
        """Add all of another's."""
        for item in fields(self):
            name = item.name
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def settle(self, bytes: int) -> Count:
        """Fill in what follows from the rest, for accesses of `bytes` a lane."""
        self.bytes = self.active * bytes
        self.shared_bytes = self.shared_active * bytes
        self.conflicts = self.wavefronts - least(bytes) * self.shared_requests
        return self


Counts = Mapping[int, Count]
"""By the number of the instruction in its function."""
