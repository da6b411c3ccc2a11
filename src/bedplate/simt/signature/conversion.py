"""Conversions between numbers, with the rounding of each kind."""

from bedplate.simt.signature.base import forms

WORDS = {
    "INTEGER": "u8 u16 u32 u64 s8 s16 s32 s64",
    "RND": "rn rz rm rp",
    "IRND": "rni rzi rmi rpi",
}

FORMS = (
    *forms(
        "conversion",
        """
        cvt T=$INTEGER U=$INTEGER                            : d> = a>:U
        cvt sat T=u8 U=u16|u32|u64|s8|s16|s32|s64            : d> = a>:U
        cvt sat T=u16 U=u32|u64|s8|s16|s32|s64               : d> = a>:U
        cvt sat T=u32 U=u64|s8|s16|s32|s64                   : d> = a>:U
        cvt sat T=u64 U=s8|s16|s32|s64                       : d> = a>:U
        cvt sat T=s8 U=u8|u16|u32|u64|s16|s32|s64            : d> = a>:U
        cvt sat T=s16 U=u16|u32|u64|s32|s64                  : d> = a>:U
        cvt sat T=s32 U=u32|u64|s64                          : d> = a>:U
        cvt sat T=s64 U=u64                                  : d> = a>:U
        cvt irnd=$IRND ftz? sat? T=$INTEGER U=f32            : d> = a:U
        cvt irnd=$IRND sat? T=$INTEGER U=f16|f64             : d> = a:U
        cvt rnd=$RND T=f32|f64 U=$INTEGER                    : d = a>:U
        """,
        lanewise=True,
        words=WORDS,
    ),
    *forms(
        "conversion",
        """
        cvt rnd=$RND ftz? sat T=f32 U=f64                    : d = a:U
        cvt rnd=rn ftz? T=f16 U=f32                          : d = a:U
        cvt rnd=rn T=bf16 U=f32                              : d = a:U
        cvt rnd=rn pair=f16x2|bf16x2 U=f32                   : d:b32 = a:U, b:U
        cvt ftz? sat? T=f32 U=f16                            : d = a:U
        cvt irnd=$IRND ftz? sat? T=f32 U=f32                 : d = a:U
        cvt ftz sat? T=f32 U=f32                             : d = a:U
        cvt sat T=f32 U=f32                                  : d = a:U
        """,
        lanewise=True,
        arithmetic=True,
        words=WORDS,
    ),
    # What has a payload keeps it, as far as it fits.
    *forms(
        "conversion",
        """
        cvt rnd=$RND ftz? T=f32 U=f64                        : d = a:U
        cvt T=f32 U=bf16                                     : d = a:U
        cvt ftz? T=f64 U=f32                                 : d = a:U
        cvt T=f64 U=f16                                      : d = a:U
        cvt T=f32 U=f32                                      : d = a:U
        cvt irnd=$IRND? sat? T=f64 U=f64                     : d = a:U
        """,
        lanewise=True,
        words=WORDS,
    ),
)
