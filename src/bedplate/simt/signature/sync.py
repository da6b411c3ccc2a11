"""What lanes of a warp do together."""

from bedplate.simt.signature.base import forms

FORMS = forms(
    "sync",
    """
    vote sync mode=all|any|uni pred                 : d:pred = a:pred, m:b32
    vote sync mode=ballot b32                       : d:b32 = a:pred, m:b32
    shfl sync mode=up|down|bfly|idx T=b32           : d, p:pred? = a, b:b32, c:b32, m:b32
    match any sync T=b32|b64                        : d:b32 = a, m:b32
    redux sync op=add|min|max T=u32|s32             : d = a, m:b32
    redux sync op=and|or|xor T=b32                  : d = a, m:b32
    activemask b32                                  : d:b32 =
    bar warp sync                                   : = m:b32
    """,
)
