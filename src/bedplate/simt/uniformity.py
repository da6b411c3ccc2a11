"""Which registers need no vector: one value for the warp plus a pattern that is known.

A register has a *shape* when, for every lane that will ever read it, its value is

    Pattern    base + values[lane]                     modulo its width
    Extended   base + scale * extend(index + values[lane])     (64 bits of 32)

with `base` and `index` computed once for a warp and `values` known when compiling. All
zeros is a uniform value. `tid.x * 4 + pointer` has a shape, so the loads and stores that
matter need neither address vectors nor gathers, and loop counters stay in scalar
registers; that is most of this machine's speed.

Two things take a shape away: an operation that does not keep it, and a write while other
lanes wait that still need the old value (`divergence`). Which branches split a warp
depends on shapes in turn; both start from the best case and fall until they agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bedplate.simt import divergence
from bedplate.simt.divergence import Divergence, Regions
from bedplate.simt.graph import Graph
from bedplate.simt.liveness import Liveness
from bedplate.simt.module import (
    Address,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Register,
    Special,
    VariableAddress,
)
from bedplate.simt.scalar import LANES

Triple = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Pattern:
    """`base + values[lane]`."""

    values: tuple[int, ...]

    @property
    def uniform(self) -> bool:
        """All lanes the same."""
        return not any(self.values)


@dataclass(frozen=True, slots=True)
class Extended:
    """`base + scale * extend(index + values[lane])`, sign- or zero-extended from 32 bits."""

    scale: int
    signed: bool
    values: tuple[int, ...]

    @property
    def uniform(self) -> bool:
        """Never: a uniform value is a Pattern."""
        return False


Shape = Pattern | Extended | None
"""None: a vector."""
UNIFORM = Pattern((0,) * LANES)
LANE = Pattern(tuple(range(LANES)))


@dataclass(frozen=True)
class Layout:
    """How threads lie in warps: the shapes of `%tid`, the same in every warp of a block."""

    tid: tuple[Shape, Shape, Shape]

    @staticmethod
    def of(block: Triple) -> Layout:
        """The layout of blocks of that shape."""
        width, height, depth = block
        if height * depth == 1:
            return Layout((LANE, UNIFORM, UNIFORM))  # also where the last warp is cut
        warps = -(-width * height * depth // LANES)
        shapes: list[Shape] = []
        for axis in range(3):
            seen = set()
            for warp in range(warps):
                values = [_thread(LANES * warp + lane, block)[axis] for lane in range(LANES)]
                seen.add(tuple(value - values[0] for value in values))
            shapes.append(Pattern(seen.pop()) if len(seen) == 1 else None)
        return Layout((shapes[0], shapes[1], shapes[2]))


def _thread(linear: int, block: Triple) -> Triple:
    width, height, _ = block
    return linear % width, linear // width % height, linear // (width * height)


@dataclass(frozen=True)
class Uniformity:
    """The shape of every register by its index, and the divergence that goes with it."""

    shapes: Sequence[Shape]
    divergence: Divergence
    layout: Layout

    def of(self, operand: Operand | None) -> Shape:
        """The shape of an operand."""
        shape = _shape(operand, self.shapes, self.layout)
        assert not isinstance(shape, _Top)
        return shape


def analyse(graph: Graph, liveness: Liveness, layout: Layout) -> Uniformity:
    """Shapes and divergence of a kernel for blocks of one layout."""
    regions = Regions(graph)
    branches = [b for b in graph.blocks if b.guard is not None]
    divergent: set[int] = set()
    while True:
        state = divergence.analyse(regions, liveness, sorted(divergent))
        shapes = _shapes(graph, layout, state)
        found = {
            b.index
            for b in branches
            if b.guard is not None and _uniform(shapes[b.guard.register.index]) is False
        }
        if found <= divergent:
            settled = [None if isinstance(shape, _Top) else shape for shape in shapes]
            return Uniformity(settled, state, layout)
        divergent |= found


def vectors(graph: Graph, liveness: Liveness, layout: Layout) -> Uniformity:
    """No shapes at all, and lanes may wait anywhere: the plain way to run a kernel."""
    state = divergence.anywhere(graph, liveness)
    return Uniformity([None] * len(graph.function.registers), state, layout)


class _Top:
    """Before any write was seen."""


_TOP = _Top()
_Maybe = Shape | _Top


def _uniform(shape: _Maybe) -> bool:
    return isinstance(shape, _Top) or (shape is not None and shape.uniform)


def _shapes(graph: Graph, layout: Layout, state: Divergence) -> list[_Maybe]:
    """The best shapes that no write contradicts, for one state of divergence."""
    shapes: list[_Maybe] = [_TOP] * len(graph.function.registers)
    changed = True
    while changed:
        changed = False
        for block in graph.blocks:
            frozen = state.frozen[block.index]
            for made in block.all:
                for register, _ in made.outputs:
                    old = shapes[register.index]
                    if old is None:
                        continue
                    new: _Maybe = None
                    if not frozen >> register.index & 1:
                        new = _result(made, register, shapes, layout)
                    new = old if isinstance(new, _Top) else new
                    if new != old:
                        shapes[register.index] = new if isinstance(old, _Top) else None
                        changed = True
        if not changed and any(isinstance(shape, _Top) for shape in shapes):
            # Read before any write: zeros in all lanes; what comes of them is looked at again.
            shapes = [UNIFORM if isinstance(shape, _Top) else shape for shape in shapes]
            changed = True
    return shapes


def _shape(operand: Operand | None, shapes: Sequence[_Maybe], layout: Layout) -> _Maybe:
    if isinstance(operand, Register):
        return shapes[operand.index]
    if isinstance(operand, Negated):
        return shapes[operand.register.index]
    if isinstance(operand, Special):
        return special(operand.name, layout)
    if isinstance(operand, Address):
        shape = _shape(operand.base, shapes, layout)
        if isinstance(operand.base, VariableAddress):
            local = operand.base.variable.space == "local"
            return UNIFORM if not local else None
        return shape
    return UNIFORM


def special(name: str, layout: Layout) -> Shape:
    """The shape of a special register."""
    if name.startswith("%tid."):
        return layout.tid["xyz".index(name[-1])]
    if name == "%laneid":
        return LANE
    return None if name.startswith("%lanemask") else UNIFORM


def _result(
    made: Instruction, register: Register, shapes: Sequence[_Maybe], layout: Layout
) -> _Maybe:
    """The shape of what an instruction writes."""
    inputs = [_shape(operand, shapes, layout) for operand in made.inputs]
    if made.guard is not None and not _uniform(shapes[made.guard.register.index]):
        return None
    if any(shape is None for shape in inputs):
        return None
    if any(isinstance(shape, _Top) for shape in inputs):
        return _TOP
    known: list[Shape] = [shape for shape in inputs if not isinstance(shape, _Top)]
    if all(_uniform(shape) for shape in known):
        return UNIFORM if made.form.lanewise or _same_for_all(made) else None
    rule = _RULES.get(made.opcode)
    if rule is None or made.type.kind == "float" or register.type.kind == "pred":
        return None
    return rule(made, known)


def _same_for_all(made: Instruction) -> bool:
    """Whether equal operands give equal results though lanes are not alone."""
    if made.opcode == "ld":
        return made.slots.get("space") != "local" and not made.has("volatile")
    return False


def _constant(operand: Operand | None) -> int | None:
    return operand.bits if isinstance(operand, Immediate) else None


def _wrapped(values: Sequence[int], made: Instruction) -> Pattern:
    """Values reduced to the result's width, as signed numbers."""
    bits = made.outputs[0][1].bits
    half, whole = 1 << (bits - 1), 1 << bits
    return Pattern(tuple((value + half) % whole - half for value in values))


def _add(made: Instruction, shapes: Sequence[Shape]) -> Shape:
    one, other = shapes
    if made.has("sat"):
        return None
    if isinstance(one, Pattern) and isinstance(other, Pattern):
        sign = -1 if made.opcode == "sub" else 1
        both = zip(one.values, other.values, strict=True)
        return _wrapped([a + sign * b for a, b in both], made)
    if isinstance(one, Extended) and _uniform(other):
        return one
    if isinstance(other, Extended) and _uniform(one) and made.opcode == "add":
        return other
    return None


def _times(made: Instruction, shape: Shape, factor: Operand | None) -> Shape:
    """`shape * factor`, with the extension that `wide` asks for."""
    constant = _constant(factor)
    if made.has("wide") or made.slots.get("half") == "wide":
        if not isinstance(shape, Pattern) or constant is None or made.type.bits != 32:
            return None
        signed = made.type.signed
        scale = constant - (1 << 32) if signed and constant >> 31 else constant
        return Extended(scale, signed, shape.values)
    if made.slots.get("half") != "lo" or constant is None:
        return None
    if isinstance(shape, Pattern):
        return _wrapped([value * constant for value in shape.values], made)
    return Extended(shape.scale * constant, shape.signed, shape.values) if shape else None


def _multiply(made: Instruction, shapes: Sequence[Shape]) -> Shape:
    a, b = made.operands["a"], made.operands["b"]
    return _times(made, shapes[0], b) if _constant(b) is not None else _times(made, shapes[1], a)


def _multiply_add(made: Instruction, shapes: Sequence[Shape]) -> Shape:
    if made.has("sat") or made.slots.get("half") == "hi":
        return None
    if _uniform(shapes[0]) and _uniform(shapes[1]):
        product: Shape = UNIFORM
    else:
        product = _multiply(made, shapes[:2])
    addend = shapes[2]
    if isinstance(product, Pattern) and isinstance(addend, Pattern):
        both = zip(product.values, addend.values, strict=True)
        return _wrapped([a + b for a, b in both], made)
    if isinstance(product, Extended) and _uniform(addend):
        return product
    return addend if isinstance(addend, Extended) and _uniform(product) else None


def _shift(made: Instruction, shapes: Sequence[Shape]) -> Shape:
    count = _constant(made.operands["b"])
    if count is None or count >= made.type.bits:
        return None
    if isinstance(shapes[0], Pattern):
        return _wrapped([value << count for value in shapes[0].values], made)
    if isinstance(shapes[0], Extended):
        return Extended(shapes[0].scale << count, shapes[0].signed, shapes[0].values)
    return None


def _move(made: Instruction, shapes: Sequence[Shape]) -> Shape:
    return shapes[0]


def _convert(made: Instruction, shapes: Sequence[Shape]) -> Shape:
    """Extensions of 32 bits, and conversions that keep or drop high bits."""
    if "pair" in made.slots:
        return None
    to, source = made.types["T"], made.types["U"]
    register = made.outputs[0][0].type
    if made.has("sat") or register.bits != to.bits or not isinstance(shapes[0], Pattern):
        return None
    if to.bits == 64 and source.bits == 32:
        return Extended(1, source.signed, shapes[0].values)
    if to.bits <= source.bits and to.bits >= 32:
        return _wrapped(shapes[0].values, made)
    return None


_RULES: dict[str, Callable[[Instruction, Sequence[Shape]], Shape]] = {
    "add": _add,
    "sub": _add,
    "mul": _multiply,
    "mad": _multiply_add,
    "shl": _shift,
    "mov": _move,
    "cvta": _move,
    "cvt": _convert,
}
