"""Programs of loads, stores, copies and matrices for the comparison with a GPU.

Products of matrices are held to a tolerance: a GPU cuts addends to the place of the largest,
and the software GPU rounds once. Their operands are halves between a half and one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from benchmarks.simt import tuples
from benchmarks.simt.entries import Program, program

KINDS = [f"{kind}{width}" for kind in "bus" for width in (8, 16, 32, 64)] + ["f32", "f64"]
FIXED = (".local", ".const")
"""Spaces where nobody else writes, so that nothing is volatile."""
TOLERANCE = 2.0**-15
"""Of sums below 17 in size with 17 addends, each cut at 2**-19."""


def _vector(names: list[str]) -> str:
    return names[0] if len(names) == 1 else "{" + ", ".join(names) + "}"


def _wide(kind: str) -> str:
    """Integers go into registers of 64 bits, which shows how they are extended."""
    return kind if kind[0] == "f" else f"{kind[0]}64"


def loads() -> Iterator[Program]:
    """Each width, vector and space."""
    for space, volatile, cached, vector, kind in product(
        ("", ".global", ".shared", ".local", ".const"), ("", ".volatile"), ("", ".nc"),
        ("", ".v2", ".v4"), KINDS,
    ):  # fmt: skip
        if (cached and (space != ".global" or volatile)) or (volatile and space in FIXED):
            continue
        count = int(vector[2:] or 1)
        size = count * tuples.bits(kind) // 8
        name = f"ld{volatile}{space}{cached}{vector}.{kind}"
        results = _vector([f"%o{n}" for n in range(count)])
        before = ""
        if space in ("", ".global"):
            body = [f"and.b64 %rd0, %p0, {-size};"]
        elif space == ".shared":
            body = ["st.shared.u64 [%s], %i0;", "not.b64 %rd1, %i0;", "st.shared.u64 [%s+8], %rd1;"]
            body += ["bar.sync 0;", "xor.b32 %r1, %l, 1;", "mov.u32 %r2, tile;"]
            body += ["mad.lo.u32 %r1, %r1, 16, %r2;", f"and.b32 %r1, %r1, {-size & 0xFFFFFFFF};"]
        elif space == ".local":
            body = [".local .align 32 .b8 own[32];", "not.b64 %rd1, %i0;"]
            body += ["st.local.u64 [own], %i0;", "st.local.u64 [own+8], %rd1;"]
            body += ["st.local.u64 [own+16], %rd1;", "st.local.u64 [own+24], %i0;"]
        else:
            label = name.replace(".", "_")
            words = ", ".join(f"{0x8091A2B3C4D5E6F7 * n % (1 << 64):#x}" for n in (1, 3, 5, 7))
            before = f".const .align 32 .u64 {label}[4] = {{{words}}};\n"
            body = []
        place = {".shared": "%r1", ".local": "own", ".const": name.replace(".", "_")}
        body.append(f"{name} {results}, [{place.get(space, '%rd0')}];")
        yield program(name, ["u64"], [_wide(kind)] * count, body, before=before)


def stores() -> Iterator[Program]:
    """Each width, vector and space; what is beside stays."""
    for space, volatile, vector, kind in product(
        ("", ".global", ".shared", ".local"), ("", ".volatile"), ("", ".v2", ".v4"), KINDS
    ):
        count = int(vector[2:] or 1)
        size = count * tuples.bits(kind) // 8
        if (size > 8 and space in ("", ".global")) or (volatile and space in FIXED):
            continue
        name = f"st{volatile}{space}{vector}.{kind}"
        values = _vector([f"%i{n}" for n in range(count)])
        inputs = [_wide(kind)] * count
        if space in ("", ".global"):
            body = ["mov.b64 %rd0, 0x1122334455667788;", "st.global.u64 [%q0], %rd0;"]
            body.append(f"{name} [%q0], {values};")
            yield program(name, inputs, ["u64"], body, scratch=[0])
            continue
        words = max(2, size // 8)
        if space == ".shared" and size > 16:
            continue
        declared = [".local .align 32 .b8 own[32];"] if space == ".local" else []
        place = "own" if space == ".local" else "%s"
        body = ["mov.b64 %rd0, 0x1122334455667788;"]
        body += [f"st{space}.u64 [{place}+{8 * n}], %rd0;" for n in range(words)]
        body.append(f"{name} [{place}], {values};")
        body += [f"ld{space}.u64 %o{n}, [{place}+{8 * n}];" for n in range(words)]
        yield program(name, inputs, ["u64"] * words, body, declared=declared)


def copies() -> Iterator[Program]:
    """cp.async of each size, with a part of zeros, and both ways to wait."""
    for cache, size, shared, part in product(
        ("ca", "cg"), (4, 8, 16), ("shared", "shared::cta"), (False, True)
    ):
        if cache == "cg" and size != 16:
            continue
        name = f"cp.async.{cache}.{shared}.global"
        kind = "u32" if size == 4 else "u64"
        body = [f"and.b64 %rd0, %p0, {-size};", f"rem.u32 %r1, %i1, {size + 1};"]
        body.append(f"{name} [%s], [%rd0], {size}{', %r1' if part else ''};")
        body += ["cp.async.commit_group;", "cp.async.wait_group 0;"]
        if part:
            body[-2:] = ["cp.async.wait_all;"]
        results = [kind] * max(1, size // 8)
        body += [f"ld.shared.{kind} %o{n}, [%s+{8 * n}];" for n in range(len(results))]
        told = f"{name} {size}{' of fewer' if part else ''}"
        yield program(told, [kind, "u32"], results, body)


def rows() -> Iterator[Program]:
    """ldmatrix from 32 rows of 16 bytes in an order that is not theirs."""
    for count, transposed, shared in product((1, 2, 4), ("", ".trans"), ("shared", "shared::cta")):
        name = f"ldmatrix.sync.aligned.m8n8.x{count}{transposed}.{shared}.b16"
        body = ["st.shared.u64 [%s], %i0;", "st.shared.u64 [%s+8], %i1;", "bar.sync 0;"]
        body += ["mad.lo.u32 %r1, %k, 7, 3;", "and.b32 %r1, %r1, 31;", "sub.u32 %r2, %l, %k;"]
        body += ["add.u32 %r1, %r1, %r2;", "mov.u32 %r2, tile;", "mad.lo.u32 %r1, %r1, 16, %r2;"]
        results = _vector([f"%o{n}" for n in range(count)])
        body.append(f"{name} {results if count > 1 else '{%o0}'}, [%r1];")
        yield program(name, ["u64", "u64"], ["b32"] * count, body)


def _halves(register: str, kind: str) -> list[str]:
    """Bits as halves with any sign and fraction and the exponent of a half."""
    keep, put = ("0x83ff83ff", "0x38003800") if kind == "b32" else (
        "0x83ff83ff83ff83ff", "0x3800380038003800",
    )  # fmt: skip
    return [
        f"and.{kind} {register}, {register}, {keep};",
        f"or.{kind} {register}, {register}, {put};",
    ]


def matrices() -> Iterator[Program]:
    """mma from registers; wmma with its loads and its store through shared memory."""
    inputs = ["b32"] * 7
    body = [line for n in range(7) for line in _halves(f"%i{n}", "b32")]
    body += [".reg .f32 %c0, %c1;", ".reg .b16 %h0, %h1;", "mov.b32 {%h0, %h1}, %i6;"]
    body += ["cvt.f32.f16 %c0, %h0;", "cvt.f32.f16 %c1, %h1;"]
    body += ["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%o0, %o1, %o2, %o3},"]
    body += ["{%i0, %i1, %i2, %i3}, {%i4, %i5}, {%c0, %c1, %c1, %c0};"]
    yield program(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
        inputs,
        ["f32"] * 4,
        body,
        tolerance=TOLERANCE,
    )
    # of one warp: a, b and c are 512, 512 and 1024 bytes
    body = [line for n in range(4) for line in _halves(f"%i{n}", "b64")]
    body += [".shared .align 32 .b8 all[16384];", "shr.u32 %r1, %l, 5;", "mov.u32 %r2, all;"]
    body += ["mad.lo.u32 %r1, %r1, 2048, %r2;", "mad.lo.u32 %r2, %k, 16, %r1;"]
    body += [f"st.shared.u64 [%r2+{at}], %i{n};" for n, at in enumerate((0, 8, 512, 520))]
    body += ["mad.lo.u32 %r3, %k, 32, %r1;", ".reg .b16 %h<2>;", ".reg .f32 %c<9>;"]
    body += ["mov.b32 {%h0, %h1}, %i4;", "cvt.f32.f16 %c0, %h0;"]
    body[-2:-2] = _halves("%i4", "b32")
    body += [f"st.shared.f32 [%r3+{1024 + 4 * n}], %c0;" for n in range(8)]
    body += [".reg .b32 %a<8>, %b<8>;", ".reg .f32 %d<8>;", "bar.sync 0;"]
    a, b, c, d = ("{" + ", ".join(f"%{r}{n}" for n in range(8)) + "}" for r in "abcd")
    load = "wmma.load"
    body += [f"{load}.a.sync.aligned.row.m16n16k16.shared.f16 {a}, [%r1], 16;"]
    body += [f"{load}.b.sync.aligned.col.m16n16k16.shared.f16 {b}, [%r1+512], 16;"]
    body += [f"{load}.c.sync.aligned.row.m16n16k16.shared.f32 {c}, [%r1+1024], 16;"]
    body += [f"wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {d}, {a}, {b}, {c};", "bar.sync 0;"]
    body += [
        f"wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [%r1+1024], {d}, 16;",
        "bar.sync 0;",
    ]
    body += [f"ld.shared.f32 %o{n}, [%r3+{1024 + 4 * n}];" for n in range(8)]
    yield program(
        "wmma.m16n16k16 f16 f32", ["b64"] * 4 + ["b32"], ["f32"] * 8, body, tolerance=TOLERANCE
    )


def programs() -> Iterator[Program]:
    """All of them."""
    for made in (loads, stores, copies, rows, matrices):
        yield from made()
