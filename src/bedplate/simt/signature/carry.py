"""Arithmetic of more than one word: the carry goes through a flag of its own."""

from bedplate.simt.signature.base import forms

WORDS = {"WORD": "u32 s32 u64 s64"}

FORMS = forms(
    "carry",
    """
    add cc T=$WORD                      : d, ^out = a, b
    addc T=$WORD                        : d = a, b, ^in
    addc cc T=$WORD                     : d, ^out = a, b, ^in
    sub cc T=$WORD                      : d, ^out = a, b
    subc T=$WORD                        : d = a, b, ^in
    subc cc T=$WORD                     : d, ^out = a, b, ^in
    mad half=lo|hi cc T=$WORD           : d, ^out = a, b, c
    madc half=lo|hi T=$WORD             : d = a, b, c, ^in
    madc half=lo|hi cc T=$WORD          : d, ^out = a, b, c, ^in
    """,
    lanewise=True,
    words=WORDS,
)
