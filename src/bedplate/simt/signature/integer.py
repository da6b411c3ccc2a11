"""Integer arithmetic, bits and shifts."""

from bedplate.simt.signature.base import forms

WORDS = {
    "INT": "u16 u32 u64 s16 s32 s64",
    "NARROW": "u16 u32 s16 s32",
    "WORD": "u32 u64 s32 s64",
    "BITS": "b16 b32 b64",
}

FORMS = forms(
    "integer",
    """
    add T=$INT                          : d = a, b
    add sat T=s32                       : d = a, b
    sub T=$INT                          : d = a, b
    sub sat T=s32                       : d = a, b
    mul half=lo|hi T=$INT               : d = a, b
    mul wide T=$NARROW                  : d:2T = a, b
    mad half=lo|hi T=$INT               : d = a, b, c
    mad half=hi sat T=s32                    : d = a, b, c
    mad wide T=$NARROW                  : d:2T = a, b, c:2T
    div T=$INT                          : d = a, b
    rem T=$INT                          : d = a, b
    abs T=s16|s32|s64                   : d = a
    neg T=s16|s32|s64                   : d = a
    min T=$INT                          : d = a, b
    max T=$INT                          : d = a, b
    and T=pred|$BITS                    : d = a, b
    or T=pred|$BITS                     : d = a, b
    xor T=pred|$BITS                    : d = a, b
    not T=pred|$BITS                    : d = a
    cnot T=$BITS                        : d = a
    shl T=$BITS                         : d = a, b:u32
    shr T=$BITS|$INT                    : d = a, b:u32
    shf way=l|r mode=wrap|clamp T=b32   : d = a, b, c:u32
    popc T=b32|b64                      : d:u32 = a
    clz T=b32|b64                       : d:u32 = a
    brev T=b32|b64                      : d = a
    bfe T=$WORD                         : d = a, b:u32, c:u32
    bfi T=b32|b64                       : d = a, b, c:u32, e:u32
    prmt T=b32                          : d = a, b, c
    bfind shiftamt? T=$WORD             : d:u32 = a
    """,
    lanewise=True,
    words=WORDS,
)
