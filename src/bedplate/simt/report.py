"""A profile: what a launch counted, by source line and by instruction (simt-profile/1).

Metrics have the names of Nsight Compute. They are of PTX instructions, so what depends on
the final machine code (instructions issued) differs from hardware; memory traffic and
bank conflicts do not, as long as the compiler keeps the accesses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from bedplate.core.launch import LaunchRecord, Triple
from bedplate.simt.counts import Count, Counts
from bedplate.simt.module import Function, Instruction
from bedplate.simt.scalar import LANES

SCHEMA = "bedplate.simt-profile/1"
_STORES = ("st", "red")
_ATOMICS = ("atom", "red")


@dataclass(frozen=True)
class Line:
    """The counts of one line: of the source where `.loc` names one, else of the PTX."""

    file: str
    line: int
    count: Count


@dataclass(frozen=True)
class Report:
    """The counts of one launch. `ptx` is the name of the text; `counts` by instruction."""

    kernel: str
    arch: str
    grid: Triple
    block: Triple
    ptx: str
    instructions: Sequence[Instruction]
    counts: Counts

    @staticmethod
    def of(function: Function, record: LaunchRecord, ptx: str, counts: Counts) -> Report:
        """The report of a launch."""
        return Report(
            function.name,
            record.arch,
            record.grid,
            record.block,
            ptx,
            function.instructions,
            dict(sorted(counts.items())),
        )

    @cached_property
    def total(self) -> Count:
        """The sum over all instructions."""
        return _sum(self.counts.values())

    @property
    def sectors_per_request(self) -> float:
        """Sectors of 32 bytes that a request to global memory touches, on average."""
        return _ratio(self.total.sectors, self.total.requests)

    @property
    def wavefronts_per_request(self) -> float:
        """Wavefronts that a request to shared memory takes, on average."""
        return _ratio(self.total.wavefronts, self.total.shared_requests)

    @property
    def lane_efficiency(self) -> float:
        """Threads that ran, of the lanes that were issued: 1 without divergence."""
        return _ratio(self.total.lanes, self.total.issues * LANES)

    @cached_property
    def lines(self) -> list[Line]:
        """By file and line, in the order of first appearance."""
        found: dict[tuple[str, int], Count] = {}
        for number, count in self.counts.items():
            found.setdefault(self.place(number), Count()).add(count)
        return [Line(*place, count) for place, count in found.items()]

    def place(self, number: int) -> tuple[str, int]:
        """File and line of an instruction."""
        made = self.instructions[number]
        if made.source is not None:
            return made.source.file, made.source.line
        return self.ptx, made.place.line

    @cached_property
    def mix(self) -> dict[str, int]:
        """Issues by opcode, the most first."""
        found: dict[str, int] = {}
        for number, count in self.counts.items():
            opcode = self.instructions[number].opcode
            found[opcode] = found.get(opcode, 0) + count.issues
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))

    @cached_property
    def metrics(self) -> dict[str, int]:
        """Whole numbers under the profiler's names."""
        loads = _sum(self._of(loads=True))
        stores = _sum(self._of(loads=False))
        shared = self.total
        return {
            "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": loads.requests,
            "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": loads.sectors,
            "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum": stores.requests,
            "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": stores.sectors,
            "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum": shared.wavefronts,
            "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": loads.wavefronts,
            "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum": stores.wavefronts,
            "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum": shared.conflicts,
            "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum": loads.conflicts,
            "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum": stores.conflicts,
        }

    def _of(self, *, loads: bool) -> list[Count]:
        wanted = []
        for number, count in self.counts.items():
            opcode = self.instructions[number].opcode
            if opcode not in _ATOMICS and (opcode not in _STORES) == loads:
                wanted.append(count)
        return wanted

    @property
    def branches(self) -> int:
        """Branches that warps ran; `total.divergent` of them split one."""
        found = (c.issues for n, c in self.counts.items() if self.instructions[n].opcode == "bra")
        return sum(found)

    def document(self) -> Mapping[str, Any]:
        """The report as JSON."""
        ratio = "smsp__thread_inst_executed_per_inst_executed.ratio"
        return {
            "schema": SCHEMA,
            "kernel": self.kernel,
            "arch": self.arch,
            "grid": self.grid,
            "block": self.block,
            "ptx": self.ptx,
            "metrics": {**self.metrics, ratio: _ratio(self.total.lanes, self.total.issues)},
            "sectors_per_request": self.sectors_per_request,
            "wavefronts_per_request": self.wavefronts_per_request,
            "lane_efficiency": self.lane_efficiency,
            "branches": self.branches,
            "lane_slots": self.total.issues * LANES,
            "total": asdict(self.total),
            "mix": self.mix,
            "lines": [
                {"file": line.file, "line": line.line, **asdict(line.count)} for line in self.lines
            ],
            "instructions": [
                {
                    "ptx_line": self.instructions[number].place.line,
                    "text": self.instructions[number].text,
                    "file": self.place(number)[0],
                    "line": self.place(number)[1],
                    **asdict(count),
                }
                for number, count in self.counts.items()
            ],
        }


def _sum(counts: Any) -> Count:
    total = Count()
    for count in counts:
        total.add(count)
    return total


def _ratio(one: int, other: int) -> float:
    return one / other if other else 0.0
