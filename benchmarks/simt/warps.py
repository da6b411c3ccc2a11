"""Programs of warps and blocks for the comparison with a GPU: votes, barriers, atomics.

Lanes of an atomic have an address each, so that the order of lanes has no part in results.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from benchmarks.simt.entries import Program, guarded, program

MASK = 0x0F0F3355
SHUFFLES = {
    "up": (0x1C00, 0x1800, 0x0005, 0x0305),
    "down": (0x1C1F, 0x181F, 0x1007, 0x0305),
    "bfly": (0x1C1F, 0x181F, 0x1007, 0x0305),
    "idx": (0x1C1F, 0x181F, 0x1007, 0x0305),
}
OPERATIONS = {
    "add": "u32 s32 u64 f32 f64", "exch": "b32 b64", "min": "u32 s32 u64 s64",
    "max": "u32 s32 u64 s64", "inc": "u32", "dec": "u32", "and": "b32 b64", "or": "b32 b64",
    "xor": "b32 b64", "cas": "b16 b32 b64",
}  # fmt: skip
ORDERS = ("", ".relaxed", ".acquire", ".release", ".acq_rel")
SCOPES = ("", ".cta", ".gpu", ".sys", ".cluster")


def atomics() -> Iterator[Program]:
    """Each operation and type in each space, orders and scopes in turn."""
    turn = 0
    for opcode, (operation, kinds) in product(("atom", "red"), OPERATIONS.items()):
        for kind, space in product(kinds.split(), ("", ".global", ".shared")):
            if opcode == "red" and operation in ("exch", "cas"):
                continue
            order, scope = ORDERS[turn % 5], SCOPES[turn // 2 % 5]
            turn += 1
            if opcode == "red" and "acq" in order:
                order = ".relaxed"
            name = f"{opcode}{order}{scope}{space}.{operation}.{kind}"
            inputs = [kind] * (3 if operation == "cas" else 2)
            given = ", ".join(f"%i{n}" for n in range(1, len(inputs)))
            result = "%o0, " if opcode == "atom" else ""
            last = int(opcode == "atom")
            if space == ".shared":
                body = [f"st.shared.{kind} [%s], %i0;", f"{name} {result}[%s], {given};"]
                body += [f"ld.shared.{kind} %o{last}, [%s];"]
                yield program(name, inputs, [kind] * (last + 1), body)
            else:
                body = [f"st.global.{kind} [%q{last}], %i0;"]
                body += [f"{name} {result}[%q{last}], {given};"]
                yield program(name, inputs, [kind] * (last + 1), body, scratch=[last])


def shuffles() -> Iterator[Program]:
    """Segments and clamps, and half a warp."""
    start = ["mov.b32 %o0, 0;", "setp.ne.u32 %own, %k, %k;"]
    end = ["selp.u32 %o1, 1, 0, %own;"]
    for mode, clamps in SHUFFLES.items():
        name = f"shfl.sync.{mode}.b32"
        for clamp in clamps:
            line = f"{name} %o0|%own, %i0, %i1, {clamp:#x}, 0xffffffff;"
            told = f"{name} c={clamp:#x}"
            yield program(told, ["u32", "u32"], ["b32", "u32"], [*start, line, *end])
        half = f"@%act {name} %o0|%own, %i0, %i1, {'0x1000' if mode == 'up' else '0x101f'}, 0xffff;"
        body = [*start, *guarded(0xFFFF), half, *end]
        yield program(f"{name} m=0xffff", ["u32", "u32"], ["b32", "u32"], body)


def partial() -> Iterator[Program]:
    """Votes, matches and reductions of the lanes of a mask."""
    mask = f"{MASK:#x}"
    # blocks in turn have predicates by lane, none and all
    start = [
        *guarded(MASK),
        "rem.u32 %r2, %c, 3;",
        "and.b32 %r1, %i0, 3;",
        "mul.lo.u32 %r1, %r1, 2;",
    ]
    start += ["mad.lo.u32 %r1, %r2, 8, %r1;", "setp.eq.u32 %own, %r2, 2;"]
    start += ["setp.eq.or.u32 %own, %r1, 2, %own;"]
    for mode in ("all", "any", "uni"):
        name = f"vote.sync.{mode}.pred"
        body = [*start, ".reg .pred %v;", "setp.ne.u32 %v, %k, %k;"]
        body += [f"@%act {name} %v, %own, {mask};", "selp.u32 %o0, 1, 0, %v;"]
        yield program(f"{name} m={mask}", ["u32"], ["u32"], body)
    zero = "mov.b32 %o0, 0;"
    body = [*start, zero, f"@%act vote.sync.ballot.b32 %o0, %own, {mask};"]
    yield program(f"vote.sync.ballot.b32 m={mask}", ["u32"], ["b32"], body)
    for kind in ("b32", "b64"):
        body = [*start, zero, f"and.{kind} %i1, %i1, 3;"]
        body += [f"@%act match.any.sync.{kind} %o0, %i1, {mask};"]
        yield program(f"match.any.sync.{kind} m={mask}", ["u32", kind], ["b32"], body)
    listed = [(operation, kind) for operation in ("add", "min", "max") for kind in ("u32", "s32")]
    listed += [(operation, "b32") for operation in ("and", "or", "xor")]
    for operation, kind in listed:
        name = f"redux.sync.{operation}.{kind}"
        body = [*guarded(MASK), zero, f"@%act {name} %o0, %i0, {mask};"]
        yield program(f"{name} m={mask}", [kind], [kind], body)
    body = [*guarded(MASK), zero, "@!%act bra SKIP;", "activemask.b32 %o0;", "SKIP:"]
    yield program(f"activemask.b32 m={mask}", ["u32"], ["b32"], body)
    body = ["st.shared.u32 [%s], %i0;", "bar.warp.sync 0xffffffff;", "xor.b32 %r1, %l, 5;"]
    body += ["mov.u32 %r2, tile;", "mad.lo.u32 %r1, %r1, 16, %r2;", "ld.shared.u32 %o0, [%r1];"]
    yield program("bar.warp.sync", ["u32"], ["u32"], body)


def barriers() -> Iterator[Program]:
    """Barriers of a block, alone and with a reduction of predicates."""
    for name in (
        "bar.sync 0;",
        "barrier.sync 1;",
        "barrier.sync.aligned 2, 256;",
        "bar.sync 3, 256;",
    ):
        body = ["st.shared.u32 [%s], %i0;", name, "xor.b32 %r1, %l, 255;", "mov.u32 %r2, tile;"]
        body += ["mad.lo.u32 %r1, %r1, 16, %r2;", "ld.shared.u32 %o0, [%r1];"]
        yield program(name[:-1], ["u32"], ["u32"], body)
    # from no thread of the first block to nearly all of the last
    start = ["mul.lo.u32 %r1, %c, 2;", "mul.lo.u32 %r2, %i0, 0x9e3779b1;", "shr.u32 %r2, %r2, 24;"]
    start += ["add.u32 %r2, %r2, 1;", "setp.le.u32 %act, %r2, %r1;"]
    yield program("bar.red.popc.u32", ["u32"], ["u32"], [*start, "bar.red.popc.u32 %o0, 0, %act;"])
    for operation in ("and", "or"):
        name = f"bar.red.{operation}.pred"
        body = [*start, f"{name} %own, 0, %act;", f"{name} %act, 0, !%act;"]
        body += ["selp.u32 %r1, 1, 0, %own;", "selp.u32 %o0, 2, 0, %act;", "or.b32 %o0, %o0, %r1;"]
        yield program(name, ["u32"], ["u32"], body)


def zeros() -> Iterator[Program]:
    """Quotients and remainders by zero, which the ISA leaves to the machine."""
    for opcode, kind in product(("div", "rem"), ("u16", "u32", "u64", "s16", "s32", "s64")):
        body = [f"and.b{kind[1:]} %i1, %i1, 0;", f"{opcode}.{kind} %o0, %i0, %i1;"]
        yield program(f"{opcode}.{kind} by zero", [kind, kind], [kind], body)


def programs() -> Iterator[Program]:
    """All of them."""
    for made in (atomics, shuffles, partial, barriers, zeros):
        yield from made()
