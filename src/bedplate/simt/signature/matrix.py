"""Matrix operations of a warp, and copies that need no register."""

from bedplate.simt.signature.base import forms

FORMS = (
    *forms(
        "matrix",
        """
        ldmatrix sync aligned m8n8 x1 trans? space=shared|shared::cta b16 : d*1:b32 = [m]
        ldmatrix sync aligned m8n8 x2 trans? space=shared|shared::cta b16 : d*2:b32 = [m]
        ldmatrix sync aligned m8n8 x4 trans? space=shared|shared::cta b16 : d*4:b32 = [m]
        wmma load a sync aligned row m16n16k16 space=global|shared? f16 : d*8:b32 = [m], s:u32?
        wmma load b sync aligned col m16n16k16 space=global|shared? f16 : d*8:b32 = [m], s:u32?
        wmma load c sync aligned row m16n16k16 space=global|shared? f32 : d*8:f32 = [m], s:u32?
        wmma store d sync aligned row m16n16k16 space=global|shared? f32 : = [m], a*8:f32, s:u32?
        """,
    ),
    *forms(
        "matrix",
        """
        mma sync aligned m16n8k16 row col f32 f16 f16 f32 : d*4:f32 = a*4:b32, b*2:b32, c*4:f32
        wmma mma sync aligned row col m16n16k16 f32 f32 : d*8:f32 = a*8:b32, b*8:b32, c*8:f32
        """,
        arithmetic=True,
    ),
    *forms(
        "copy",
        """
        cp async ca to=shared|shared::cta global : = [d], [m], n:u32, s:u32?
        cp async cg to=shared|shared::cta global : = [d], [m], n:u32, s:u32?
        cp async commit_group                    :
        cp async wait_group                      : n:u32
        cp async wait_all                        :
        """,
    ),
)
