"""Fields, bytes, signs and halves that other compilers' PTX is made of, at known values."""

from __future__ import annotations

import numpy as np
import pytest

from bedplate.simt.api import Machine, verify

CASES = [
    ("bfe.u32", (0xABCD1234, 8, 12), 0xD12),
    ("bfe.s32", (0xABCD1234, 20, 8), 0xFFFFFFBC),
    ("bfe.s32", (0x80000000, 28, 16), 0xFFFFFFF8),
    ("bfe.u32", (0xABCD1234, 40, 8), 0),
    ("bfe.s32", (0xABCD1234, 300, 0), 0),
    ("bfi.b32", (0xF5, 0x12345678, 8, 8), 0x1234F578),
    ("bfi.b32", (0xFF, 0x12345678, 28, 8), 0xF2345678),
    ("bfi.b32", (0xFF, 0x12345678, 32, 8), 0x12345678),
    ("prmt.b32", (0x44332211, 0x88776655, 0x7410), 0x88552211),
    ("prmt.b32", (0x44338211, 0x88776655, 0x9F80), 0xFFFF0011),
    ("copysign.f32", (0x80000000, 0x3F800000), 0xBF800000),
    ("cvt.rn.f16x2.f32", (0x3F800000, 0xC0000000), 0x3C00C000),
    ("cvt.rn.f16x2.f32", (0x477FF000, 0x7FC00001), 0x7C007FFF),
    ("cvt.rn.bf16x2.f32", (0x3F808000, 0x3F818000), 0x3F803F82),
]


@pytest.mark.parametrize(("name", "operands", "expected"), CASES)
def test_value(machine: Machine, name: str, operands: tuple[int, ...], expected: int) -> None:
    """Worked out by hand from the ISA's text; both engines."""
    names = ", ".join(f"%x{i}" for i in range(1, len(operands) + 1))
    loads = "\n".join(f"ld.global.b32 %x{i}, [%p+{4 * i}];" for i in range(1, len(operands) + 1))
    text = f""".version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p)
{{
.reg .b64 %p;
.reg .b32 %x<9>;
ld.param.u64 %p, [p];
{loads}
{name} %x0, {names};
st.global.b32 [%p], {{ %x0 }};
ret;
}}"""
    cells = machine.array(np.array([0, *operands], np.uint32))
    verify(machine.load(text)["k"], 1, 1, (cells,))
    assert cells.numpy()[0] == expected


def test_gross_reciprocal(machine: Machine) -> None:
    """`rcp.approx.ftz.f64` sees and gives upper words."""
    text = """.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p)
{
.reg .b64 %p;
.reg .f64 %x<2>;
ld.param.u64 %p, [p];
ld.global.f64 %x1, [%p];
rcp.approx.ftz.f64 %x0, %x1;
st.global.f64 [%p], %x0;
ret;
}"""
    for value, expected in ((4.0, 0.25), (1e-310, np.inf), (-np.inf, -0.0), (3.0, 1 / 3)):
        cells = machine.array(np.array([value]))
        verify(machine.load(text)["k"], 1, 1, (cells,))
        assert np.allclose(cells.numpy(), expected, rtol=2e-6)
        assert cells.numpy().view(np.uint64)[0] & np.uint64(0xFFFFFFFF) == 0
