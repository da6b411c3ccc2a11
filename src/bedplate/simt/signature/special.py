"""The registers that the machine itself sets.

Which shape a special register has over the lanes of a warp depends on the block; see
`uniformity`. Those that name a place of real hardware (`%smid`) are one value here.
"""

from __future__ import annotations

AXES = ("x", "y", "z")
SPECIAL: dict[str, str] = {
    **{f"%{name}.{axis}": "u32" for name in ("tid", "ntid", "ctaid", "nctaid") for axis in AXES},
    "%laneid": "u32",
    "%warpid": "u32",
    "%nwarpid": "u32",
    "%smid": "u32",
    "%nsmid": "u32",
    "%dynamic_smem_size": "u32",
    "%total_smem_size": "u32",
    **{f"%lanemask_{which}": "u32" for which in ("eq", "le", "lt", "ge", "gt")},
}
"""Name to type."""
