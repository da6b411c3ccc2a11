"""Branches, ends and barriers."""

from bedplate.simt.signature.base import forms

FORMS = forms(
    "control",
    """
    bra uni?                     : &target
    ret uni?                     :
    exit                         :
    call uni?                    : &target
    trap                         :
    bar sync                     : a:u32, b:u32?
    barrier sync aligned?        : a:u32, b:u32?
    bar red op=popc u32          : d:u32 = a:u32, p:pred
    bar red op=and|or pred       : d:pred = a:u32, p:pred
    membar level=cta|gl|sys      :
    """,
)
