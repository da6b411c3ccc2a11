"""Moving values: registers, addresses, memory."""

from bedplate.simt.signature.base import forms

WORDS = {
    "ANY": "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64",
    "MEMORY": "b8 b16 b32 b64 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64",
}

FORMS = (
    *forms(
        "movement",
        """
        mov T=pred|$ANY                                      : d = a
        cvta space=global|shared|local|const T=u32|u64       : d = a
        cvta to space=global|shared|local|const T=u32|u64    : d = a
        """,
        lanewise=True,
        words=WORDS,
    ),
    *forms(
        "memory",
        """
        ld volatile? space=global|shared? vec=v2|v4? T=$MEMORY  : d*> = [m]
        ld space=local|const|param vec=v2|v4? T=$MEMORY         : d*> = [m]
        ld space=global nc vec=v2|v4? T=$MEMORY                 : d*> = [m]
        st volatile? space=global|shared? vec=v2|v4? T=$MEMORY  : = [m], a*>
        st space=local|param vec=v2|v4? T=$MEMORY               : = [m], a*>
        """,
        words=WORDS,
    ),
)
