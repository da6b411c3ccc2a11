"""Comparisons and selection."""

from bedplate.simt.signature.base import forms

WORDS = {
    "SIGNED": "eq ne lt le gt ge",
    "UNSIGNED": "eq ne lt le gt ge lo ls hi hs",
    "FLOAT": "eq ne lt le gt ge equ neu ltu leu gtu geu num nan",
    "ANY": "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64",
}

FORMS = forms(
    "comparison",
    """
    setp cmp=eq|ne T=b16|b32|b64                             : p:pred, q:pred? = a, b
    setp cmp=$UNSIGNED T=u16|u32|u64                         : p:pred, q:pred? = a, b
    setp cmp=$SIGNED T=s16|s32|s64                           : p:pred, q:pred? = a, b
    setp cmp=$FLOAT ftz? T=f32                               : p:pred, q:pred? = a, b
    setp cmp=$FLOAT T=f64                                    : p:pred, q:pred? = a, b
    setp cmp=eq|ne bool=and|or|xor T=b16|b32|b64             : p:pred, q:pred? = a, b, c:pred
    setp cmp=$UNSIGNED bool=and|or|xor T=u16|u32|u64         : p:pred, q:pred? = a, b, c:pred
    setp cmp=$SIGNED bool=and|or|xor T=s16|s32|s64           : p:pred, q:pred? = a, b, c:pred
    setp cmp=$FLOAT bool=and|or|xor ftz? T=f32               : p:pred, q:pred? = a, b, c:pred
    setp cmp=$FLOAT bool=and|or|xor T=f64                    : p:pred, q:pred? = a, b, c:pred
    selp T=$ANY                                              : d = a, b, c:pred
    """,
    lanewise=True,
    words=WORDS,
)
