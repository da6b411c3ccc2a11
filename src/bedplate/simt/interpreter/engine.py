"""Runs kernels by the reference: blocks, warps, masks and barriers, without any cleverness.

The order is the fast machine's: of the lanes of a warp the lowest block runs first (see
`graph`), a warp runs until it waits or ends, warps and blocks in turn. So both engines
write the same registers in the same order, which `verify` compares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bedplate.core.launch import Triple
from bedplate.simt import abi
from bedplate.simt.block import BARRIERS
from bedplate.simt.compiler import Places
from bedplate.simt.graph import EXIT, Block, Graph
from bedplate.simt.interpreter.base import EVALUATES, EXECUTES, Lanes
from bedplate.simt.memory import Memory
from bedplate.simt.module import (
    Address,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Register,
    Special,
    Variable,
    VariableAddress,
)
from bedplate.simt.nans import CANONICAL, writes_number
from bedplate.simt.printing import Call
from bedplate.simt.scalar import FULL, LANES, SCALARS, Scalar


class Observer:
    """Who watches a run; does nothing by itself."""

    def issued(self, warp: WarpState, made: Instruction, mask: int) -> None:
        """An instruction is about to run in the lanes of `mask`."""

    def wrote(self, warp: WarpState, made: Instruction, register: Register, bits: Lanes) -> None:
        """A register holds `bits` now; those of the lanes of `warp.mask` are new."""

    def accessed(
        self, warp: WarpState, made: Instruction, space: str, addresses: Lanes, bytes: int
    ) -> None:
        """The lanes of `warp.mask` are about to touch memory, `bytes` each."""

    def branched(self, warp: WarpState, made: Instruction, mask: int, taken: int) -> None:
        """Of the lanes of `mask`, those of `taken` go to the branch's target."""


class Fault(Exception):
    """A kernel cannot go on; raised with what the fault record would hold."""

    def __init__(
        self, code: abi.Code, made: Instruction | None, warp: int, lane: int, address: int = 0
    ) -> None:
        super().__init__(code.name)
        self.code = code
        self.made = made
        self.warp = warp
        self.lane = lane
        self.address = address


@dataclass
class Grid:
    """A launch, as the reference sees it."""

    graph: Graph
    places: Places
    memory: Memory
    symbols: Mapping[str, int]
    shape: Triple
    block: Triple
    parameters: bytes
    dynamic_shared: int = 0
    budget: int = 1 << 30
    observer: Observer | None = None
    seed: int = 0
    printed: list[Call] = field(default_factory=list)
    """Calls of `printf`, in their order."""
    warp: Callable[[BlockState, int], WarpState] | None = None
    """What runs a warp; None is the lowest block first (others: `interpreter.scheduled`)."""

    def run_block(self, number: int) -> None:
        """Run one block to its end; raises `Fault`."""
        BlockState(self, number).run()


@dataclass
class BlockState:
    """A block that runs."""

    grid: Grid
    number: int
    warps: list[WarpState] = field(init=False)

    def __post_init__(self) -> None:
        grid = self.grid
        shared = grid.places.shared_bytes + grid.dynamic_shared
        self.shared = np.full(shared, abi.JUNK, np.uint8)
        self.parameters = np.frombuffer(grid.parameters, np.uint8)
        wide, high, _ = grid.shape
        rest = self.number // wide
        self.ctaid = (self.number % wide, rest % high, rest // high)
        threads = grid.block[0] * grid.block[1] * grid.block[2]
        self.threads = threads
        make = grid.warp or WarpState
        self.warps = [make(self, index) for index in range(-(-threads // LANES))]

    def run(self) -> None:
        """Warps in turn until all are done; between rounds let complete barriers go."""
        while True:
            for warp in self.warps:
                if warp.live and not warp.arrived:
                    warp.run()
            waiting = [warp for warp in self.warps if warp.arrived]
            moving = any(warp.live and not warp.arrived for warp in self.warps)
            if not waiting and not moving:
                return
            released = [self._release(number) for number in range(BARRIERS)]
            if not any(released) and not moving:
                first = waiting[0]
                raise Fault(abi.Code.BARRIER, None, first.index, 0)

    def _release(self, number: int) -> bool:
        """Let barrier `number` go if all that it waits for have arrived."""
        here = [warp for warp in self.warps if warp.arrived and warp.barrier == number]
        wanted = sum(warp.live.bit_count() for warp in self.warps)
        arrived = 0
        for warp in here:
            arrived += LANES if warp.barrier_threads else warp.arrived.bit_count()
            wanted = warp.barrier_threads or wanted
        if not here or arrived < wanted:
            return False
        votes = sum(warp.votes for warp in here)
        for warp in here:
            warp.result, warp.votes = votes, 0
            warp.release()
        return True


class WarpState:
    """A warp: its registers as bits, and for each block the lanes that are to run it.

    `held` are the lanes that wait at barriers, by the block behind.
    """

    def __init__(self, block: BlockState, index: int) -> None:
        self.block, self.grid, self.index = block, block.grid, index
        graph = self.grid.graph
        threads = min(block.threads - LANES * index, LANES)
        self.live = FULL if threads == LANES else (1 << threads) - 1
        self.pending: dict[int, int] = {0: self.live}
        self.held: dict[int, int] = {}
        self.left = self.grid.budget
        self.arrived = 0
        self.barrier = self.barrier_threads = 0
        self.votes = self.result = 0
        self.mask = 0
        self.registers = [
            np.zeros(LANES, "?" if r.type.kind == "pred" else f"u{r.type.bytes}")
            for r in graph.function.registers
        ]
        self.local = np.full((LANES, self.grid.places.local_bytes), abi.JUNK, np.uint8)
        self.specials = self._specials()

    def _specials(self) -> dict[str, Lanes]:
        block, grid = self.block, self.grid
        lane = np.arange(LANES, dtype=np.uint32)
        linear = lane + np.uint32(LANES * self.index)
        width, height, _ = grid.block
        made: dict[str, Any] = {
            "%tid.x": linear % width,
            "%tid.y": linear // width % height,
            "%tid.z": linear // (width * height),
            "%laneid": lane,
            "%warpid": self.index,
            "%nwarpid": -(-block.threads // LANES),
            "%smid": 0,
            "%nsmid": 1,
            "%dynamic_smem_size": grid.dynamic_shared,
            "%total_smem_size": len(block.shared),
        }
        for axis, name in enumerate("xyz"):
            made[f"%ntid.{name}"] = grid.block[axis]
            made[f"%nctaid.{name}"] = grid.shape[axis]
            made[f"%ctaid.{name}"] = block.ctaid[axis]
        one = [1 << n for n in range(LANES)]
        made["%lanemask_eq"] = one
        made["%lanemask_lt"] = [bit - 1 for bit in one]
        made["%lanemask_le"] = [2 * bit - 1 for bit in one]
        made["%lanemask_gt"] = [FULL ^ (2 * bit - 1) for bit in one]
        made["%lanemask_ge"] = [FULL ^ (bit - 1) for bit in one]
        return {
            name: np.broadcast_to(np.asarray(value, np.uint32), LANES).copy()
            for name, value in made.items()
        }

    # Control.

    def run(self) -> None:
        """Until no lane can go on; then the warp has ended, or waits at a barrier."""
        blocks = self.grid.graph.blocks
        with np.errstate(all="ignore"):
            while self.pending:
                block = blocks[min(self.pending)]
                self._run_block(block, self.pending.pop(block.index))
        for mask in self.held.values():
            self.arrived |= mask

    def release(self) -> None:
        """The barrier is complete: lanes that wait may go on."""
        self.arrived = 0
        self.pending, self.held = self.held, {}

    def _run_block(self, block: Block, mask: int) -> None:
        self.left -= len(block.all)
        if self.left < 0:
            raise Fault(abi.Code.BUDGET, block.last, self.index, 0)
        for made in block.instructions:
            self._issue(made, mask)
        self.mask = mask
        if block.last is not None and self.grid.observer is not None:
            self.grid.observer.issued(self, block.last, mask)
        if block.ending == "trap":
            raise Fault(abi.Code.TRAP, block.last, self.index, (mask & -mask).bit_length() - 1)
        if block.ending == "barrier":
            assert block.last is not None
            self.barrier = self._uniform(block.last, "a")
            self.barrier_threads = self._uniform(block.last, "b")
            self._vote(block.last, mask)
            self.held[block.follow] = self.held.get(block.follow, 0) | mask
            return
        taken = 0
        if block.guard is not None:
            taken = mask & self._guarded(block.guard.register, block.guard.negated)
            assert block.target is not None
            if block.last is not None and self.grid.observer is not None:
                self.grid.observer.branched(self, block.last, mask, taken)
            self._go(block, block.target, taken)
        self._go(block, block.follow, mask & ~taken)

    def _vote(self, made: Instruction, mask: int) -> None:
        """At a barrier that reduces count the lanes that say yes, for `and` no."""
        operand = made.operands.get("p")
        if operand is not None:
            said = pack_mask(self.read(operand, SCALARS["pred"]))
            self.votes += (mask & (~said if made.slots["op"] == "and" else said)).bit_count()

    def _uniform(self, made: Instruction, name: str) -> int:
        operand = made.operands.get(name)
        if operand is None:
            return 0
        return int(self.read(operand, made.types[name])[(self.mask & -self.mask).bit_length() - 1])

    def _go(self, source: Block, block: int, mask: int) -> None:
        if not mask:
            return
        if block == EXIT:
            self.live &= ~mask
        else:
            self.pending[block] = self.pending.get(block, 0) | mask

    def _guarded(self, register: Register, negated: bool) -> int:
        value = pack_mask(self.registers[register.index])
        return FULL & ~value if negated else value

    def guarded(self, made: Instruction) -> int:
        """The lanes in which an instruction's guard holds, active or not."""
        guard = made.guard
        return FULL if guard is None else self._guarded(guard.register, guard.negated)

    # Instructions.

    def _issue(self, made: Instruction, mask: int) -> None:
        if self.grid.observer is not None:
            self.grid.observer.issued(self, made, mask)
        mask &= self.guarded(made)
        self.mask = mask
        execute = EXECUTES.get(made.opcode)
        if execute is not None:
            execute(self, made)
            return
        operands = [
            self.read(operand, made.types[place.name])
            for place in made.form.inputs
            if (operand := made.operands.get(place.name)) is not None
        ]
        results = EVALUATES[made.form.group, made.opcode](made, *operands)
        several = results if isinstance(results, tuple) else (results,)
        for place, result in zip(made.form.outputs, several, strict=False):
            register = made.operands.get(place.name)
            if isinstance(register, Register):
                self.write(made, register, result)

    def lanes(self) -> Iterator[int]:
        """The active lanes, lowest first."""
        return (lane for lane in range(LANES) if self.mask >> lane & 1)

    def read(self, operand: Operand, scalar: Scalar) -> Lanes:
        """All lanes of an operand, viewed as `scalar`."""
        if isinstance(operand, Register | Special):
            special = isinstance(operand, Special)
            value = (
                self.specials[operand.name] if special else self.registers[operand.index]  # type: ignore[union-attr]
            )
            if scalar.kind == "pred":
                return value
            return value.astype(f"u{scalar.bytes}").view(scalar.dtype)
        if isinstance(operand, Negated):
            return ~self.registers[operand.register.index]
        if isinstance(operand, Immediate):
            if scalar.kind == "pred":
                return np.full(LANES, bool(operand.bits))
            return np.full(LANES, operand.bits, f"u{scalar.bytes}").view(scalar.dtype)
        if isinstance(operand, VariableAddress):
            address = self._variable(operand.variable) + operand.offset
            return np.full(LANES, address % (1 << scalar.bits), f"u{scalar.bytes}")
        raise TypeError(f"{operand} is not a value")

    def write(self, made: Instruction, register: Register, value: Lanes) -> None:
        """Set a register in the active lanes; arithmetic's NaNs are made canonical."""
        active = unpack_mask(self.mask)
        if register.type.kind == "pred":
            bits = np.asarray(value, "?")
        else:
            bits = np.ascontiguousarray(value)
            if bits.dtype.kind == "f":
                odd = np.isnan(bits)
                bits = bits.view(f"u{bits.dtype.itemsize}").copy()
                if writes_number(made):
                    bits[odd] = CANONICAL[8 * bits.dtype.itemsize]
            bits = bits.view(f"u{bits.dtype.itemsize}").astype(f"u{register.type.bytes}")
        target = self.registers[register.index]
        target[active] = bits[active]
        if self.grid.observer is not None:
            self.grid.observer.wrote(self, made, register, target)

    # Memory.

    def parameter(self, variable: Variable) -> int:
        """Offset of a parameter in its block."""
        return self.grid.places.parameters[variable.name]

    def _variable(self, variable: Variable) -> int:
        """The address of a variable in its own space."""
        places = self.grid.places
        tables: dict[str, Mapping[str, int]] = {
            "shared": places.shared,
            "local": places.local,
            "param": places.parameters,
        }
        return tables.get(variable.space, self.grid.symbols)[variable.name]

    def addresses(self, address: Address) -> Lanes:
        """The address of every lane, as u64; 32-bit registers wrap at their width."""
        base = address.base
        narrow = isinstance(base, Register) and base.type.bits == 32
        scalar = _WORD if narrow else _LONG
        value = self.read(base, scalar)
        moved = value + np.array(address.offset % (1 << scalar.bits), scalar.dtype)
        return np.asarray(moved, np.uint64)

    def bytes(self, made: Instruction, space: str, lane: int, address: int, size: int) -> Any:
        """The bytes at an address of a space, writable; raises `Fault`."""
        if address % size:
            raise Fault(abi.Code.MISALIGNED, made, self.index, lane, address)
        found = self.find(space, lane, address, size)
        if found is None:
            raise Fault(abi.Code.BOUNDS, made, self.index, lane, address)
        return found

    def find(self, space: str, lane: int, address: int, size: int) -> Any | None:
        """The bytes at an address of a space, writable, or None."""
        if space == "generic":
            for base, name in ((abi.SHARED_BASE, "shared"), (abi.LOCAL_BASE, "local")):
                if 0 <= address - base < 1 << 32:
                    return self.find(name, lane, address - base, size)
        if space in ("shared", "local"):
            memory = self.block.shared if space == "shared" else self.local[lane]
            inside = address + size <= len(memory)
            return memory[address : address + size] if inside else None
        return self.grid.memory.view(address, size)


_WORD = Scalar("u32", "unsigned", 32)
_LONG = Scalar("u64", "unsigned", 64)


def pack_mask(lanes: Lanes) -> int:
    """32 booleans as a mask."""
    return int(np.packbits(lanes, bitorder="little").view(np.uint32)[0])


def unpack_mask(mask: int) -> Lanes:
    """A mask as 32 booleans."""
    bits = np.unpackbits(np.array([mask], np.uint32).view(np.uint8), bitorder="little")
    return np.asarray(bits, "?")
