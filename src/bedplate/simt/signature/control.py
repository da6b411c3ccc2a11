"""Branches, ends and barriers."""

from bedplate.simt.signature.base import forms

FORMS = forms(
    "control",
    """
    bra uni?                     : &target
    ret uni?                     :
    exit                         :
    trap                         :
    bar sync                     : a:u32, b:u32?
    barrier sync aligned?        : a:u32, b:u32?
    membar level=cta|gl|sys      :
    """,
)
