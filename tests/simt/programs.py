"""Random kernels: control flow that splits warps, and arithmetic that remembers the path.

A program is blocks of a few instructions. Each ends with a branch that may go anywhere
forward, or back while a counter of the thread lasts, so every thread ends; barriers stand
only where all threads pass. Registers are read in blocks other than where they were
written, under guards and without, so that a lost or an unmasked write shows.
"""

from __future__ import annotations

import random

HEAD = """.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 n)
{
.reg .pred %p<9>;
.reg .b32 %r<20>;
.reg .b64 %rd<4>;
.shared .align 4 .b8 tile[512];
"""
START = """
ld.param.u64 %rd1, [out];
ld.param.u32 %r1, [n];
mov.u32 %r2, %tid.x;
mov.u32 %r3, %ctaid.x;
mad.lo.s32 %r4, %r3, 64, %r2;
mov.u32 %r5, 12;
mov.u32 %r6, 1;
mov.u32 %r7, %r4;
mov.u32 %r8, 7;
mov.u32 %r9, %laneid;
mov.u32 %r10, 3;
mov.u32 %r11, %r2;
"""
END = """
DONE:
xor.b32 %r12, %r6, %r7;
add.u32 %r12, %r12, %r8;
xor.b32 %r12, %r12, %r9;
add.u32 %r12, %r12, %r10;
xor.b32 %r12, %r12, %r11;
mul.wide.u32 %rd2, %r4, 4;
add.s64 %rd3, %rd1, %rd2;
st.global.u32 [%rd3], %r12;
ret;
}
"""
VALUES = ("%r6", "%r7", "%r8", "%r9", "%r10", "%r11")
READ = (*VALUES, "%r1", "%r2", "%r4", "%r5")


def program(seed: int, *, blocks: int = 8, barriers: bool = False) -> str:
    """The kernel of a seed."""
    draw = random.Random(seed)
    text = [HEAD, START]
    for number in range(blocks):
        text.append(f"B{number}:")
        text += [_instruction(draw) for _ in range(draw.randint(1, 4))]
        if barriers and draw.random() < 0.4:
            text.append("bar.sync 0;")
        text.append(_ending(draw, number, blocks))
    return "\n".join([*text, END])


def _instruction(draw: random.Random) -> str:
    guard = ""
    before = ""
    if draw.random() < 0.3:
        before = f"setp.{draw.choice(('lt', 'eq', 'gt'))}.s32 %p1, {_read(draw)}, {_read(draw)};\n"
        guard = draw.choice(("@%p1 ", "@!%p1 "))
    target, one, other = draw.choice(VALUES), _read(draw), _read(draw)
    shapes = (
        f"add.s32 {target}, {one}, {other};",
        f"sub.s32 {target}, {one}, {draw.randint(-5, 5)};",
        f"mul.lo.s32 {target}, {one}, {draw.randint(1, 5)};",
        f"xor.b32 {target}, {one}, {other};",
        f"mov.u32 {target}, {one};",
        f"mad.lo.s32 {target}, {one}, 3, {other};",
        f"shl.b32 {target}, {one}, {draw.randint(0, 3)};",
        f"mov.u32 {target}, %warpid;",
    )
    return before + guard + draw.choice(shapes)


def _read(draw: random.Random) -> str:
    return draw.choice(READ)


def _ending(draw: random.Random, number: int, blocks: int) -> str:
    kind = draw.random()
    forward = [f"B{other}" for other in range(number + 1, blocks)] + ["DONE"]
    test = f"and.b32 %r13, {_read(draw)}, {draw.choice((1, 3, 8))};\nsetp.eq.u32 %p2, %r13, 0;\n"
    if kind < 0.15:
        return ""
    if kind < 0.6:
        return f"{test}@%p2 bra {draw.choice(forward)};"
    if kind < 0.7:
        return f"bra {draw.choice(forward)};"
    if kind < 0.75:
        return f"{test}@%p2 ret;"
    back = f"B{draw.randint(0, number)}"
    return f"""sub.s32 %r5, %r5, 1;
setp.gt.s32 %p3, %r5, 0;
{test}and.pred %p4, %p3, %p2;
@{draw.choice(("%p3", "%p4"))} bra {back};"""
