"""Atomic operations; every order and scope is met by the strongest one."""

from bedplate.simt.signature.base import forms

ORDER = "sem=relaxed|acquire|release|acq_rel? scope=cta|cluster|gpu|sys? space=global|shared?"
TURNED = "space=global|shared scope=cta|cluster|gpu|sys sem=relaxed|acquire|release|acq_rel"
"""The order that Triton writes, which ptxas takes too."""
OPERATIONS = """
op=add T=u32|s32|u64|f32|f64
op=exch T=b32|b64
op=min|max T=u32|s32|u64|s64
op=inc|dec T=u32
op=and|or|xor T=b32|b64
"""

FORMS = forms(
    "atomic",
    "\n".join(
        [
            *(
                f"atom {order} {line} : d = [m], b"
                for order in (ORDER, TURNED)
                for line in OPERATIONS.split("\n")
                if line
            ),
            f"atom {ORDER} op=cas T=b16|b32|b64 : d = [m], b, c",
            f"atom {TURNED} op=cas T=b16|b32|b64 : d = [m], b, c",
            *(
                f"red {ORDER} {line} : = [m], b"
                for line in OPERATIONS.split("\n")
                if line and "exch" not in line
            ),
        ]
    ),
)

ORDERED = frozenset({"exch", "cas"})
"""Operations whose results depend on which block comes first, as float sums do."""
