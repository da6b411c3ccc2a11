"""The instructions of fifteen kernels and two device functions as nvcc 13 writes them.

They are the first goal of the machine: each is taken by the table and has both engines.
"""

from __future__ import annotations

import pytest

from bedplate.simt.interpreter.base import EVALUATES, EXECUTES
from bedplate.simt.lowering.base import LANEWISE, LOWERINGS
from bedplate.simt.signature import table

LISTED = """
abs.f64 activemask.b32 add.cc.u32 add.f32 add.f64 add.s16 add.s32 add.s64 add.u64 addc.cc.u32
addc.u32 and.b16 and.b32 and.b64 atom.global.add.f32 atom.global.add.u32 atom.global.cas.b32
atom.global.exch.b32 atom.global.inc.u32 atom.global.max.s32 atom.global.or.b32
atom.relaxed.global.cas.b32 atom.shared.add.u32 bar.sync bar.warp.sync bar.red.popc.u32
bfind.shiftamt.u32 bra bra.uni brev.b32 call.uni clz.b32 clz.b64 cp.async.ca.shared.global
cp.async.commit_group cp.async.wait_group cvt.f32.bf16 cvt.f64.f32 cvt.rmi.f64.f64
cvt.rn.bf16.f32 cvt.rn.f32.s32 cvt.rn.f64.s32 cvt.rn.f64.u32 cvt.rni.s32.f64 cvt.rzi.s32.f64
cvt.s64.s32 cvt.sat.f32.f32 cvt.u16.u32 cvt.u16.u64 cvt.u32.u64 cvt.u64.u32 cvta.global.u64
cvta.local.u64 cvta.to.global.u64 div.rn.f32 div.rn.f64 div.u32 ex2.approx.f32
ex2.approx.ftz.f32 fma.rm.f32 fma.rn.f32 fma.rn.f64 ld.const.f32 ld.global.f32 ld.global.f64
ld.global.u8 ld.global.u16 ld.global.u32 ld.global.v4.f32 ld.global.v4.u32 ld.global.nc.u64
ld.global.nc.v2.f64 ld.global.nc.v4.f32 ld.local.u64 ld.param.b32 ld.param.f32 ld.param.f64
ld.param.u32 ld.param.u64 ld.shared.f32 ld.shared.u32 ld.shared.v4.f32
ldmatrix.sync.aligned.m8n8.x2.shared.b16 ldmatrix.sync.aligned.m8n8.x4.shared.b16 mad.lo.s32
mad.lo.cc.u32 madc.hi.cc.u32 madc.hi.u32 madc.lo.cc.u32 match.any.sync.b32 max.f32 max.s32
max.u32 membar.gl mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 mov.b32 mov.b64 mov.f32
mov.f64 mov.u32 mov.u64 mul.f32 mul.f64 mul.rn.f64 mul.hi.u32 mul.hi.u64 mul.lo.s32 mul.lo.s64
mul.lo.u32 mul.wide.s32 mul.wide.u16 mul.wide.u32 neg.f32 neg.f64 neg.s32 not.b32 not.pred
or.b32 or.b64 or.pred popc.b32 redux.sync.add.s32 ret rsqrt.approx.f32 selp.b16 selp.b32
selp.b64 selp.f64 selp.s64 selp.u32 selp.u64 setp.eq.b16 setp.eq.b32 setp.eq.f64 setp.eq.s16
setp.eq.s32 setp.eq.s64 setp.ge.s32 setp.ge.s64 setp.ge.u32 setp.geu.f64 setp.gt.f64 setp.gt.s16
setp.gt.s32 setp.gt.s64 setp.gt.u32 setp.lt.s32 setp.lt.u32 setp.ltu.f64 setp.ne.s16 setp.ne.s32
setp.ne.u32 setp.neu.f64 shf.l.wrap.b32 shfl.sync.bfly.b32 shfl.sync.down.b32 shfl.sync.up.b32
shl.b32 shl.b64 shr.s32 shr.u32 shr.u64 sqrt.rn.f64 st.global.f32 st.global.f64 st.global.u8
st.global.u16 st.global.u32 st.global.v4.f32 st.local.f64 st.local.u64 st.param.b32 st.param.b64
st.param.f64 st.shared.f32 st.shared.u16 st.shared.u32 st.shared.v4.f32 st.shared.v4.u32
sub.cc.u32 sub.f32 sub.f64 sub.s32 sub.s64 subc.cc.u32 subc.u32 vote.sync.all.pred
vote.sync.any.pred vote.sync.ballot.b32 wmma.load.a.sync.aligned.row.m16n16k16.global.f16
wmma.load.b.sync.aligned.col.m16n16k16.global.f16
wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32
wmma.store.d.sync.aligned.row.m16n16k16.global.f32 xor.b32
"""
FORMS = LISTED.split()
BY_GRAPH = frozenset({"bra", "ret", "exit", "trap", "call", "barrier"})
"""What ends blocks or is gone before engines see it."""


def test_all_are_taken_and_run(capsys: pytest.CaptureFixture[str]) -> None:
    """194 of 194, by the reference and by the fast machine."""
    lacking = [name for name in FORMS if not _complete(name)]
    with capsys.disabled():
        print(f"\n{len(FORMS) - len(lacking)} of {len(FORMS)} forms")
    assert len(set(FORMS)) == len(FORMS) == 194
    assert lacking == []


def test_every_form_of_the_table_has_both_engines() -> None:
    """What is taken is never without an engine."""
    assert [form.written for form in table.FORMS if not _has_engines(form)] == []


def _complete(name: str) -> bool:
    found = table.find(name)
    return bool(found) and _has_engines(found[0][0])


def _has_engines(form: table.Form) -> bool:
    if form.opcode in BY_GRAPH:
        return True
    key = form.group, form.opcode
    fast = form.opcode in LOWERINGS or key in LANEWISE
    return fast and (form.opcode in EXECUTES or key in EVALUATES)
