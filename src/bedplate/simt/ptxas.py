"""What `ptxas -v` says of kernels: the register counts that occupancy needs.

Every version since CUDA 5 words it a little differently; what is read is the kernel's name
before the line, and on the line `Used N registers`, `used N barriers` and the `smem`
figures, which some versions write as a sum.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bedplate.simt.errors import LaunchInvalid

_NAME = re.compile(r"(?:Compiling entry function|Function properties for) '?([\w$.]+)'?")
_ARCH = re.compile(r"for '(sm_\w+)'")
_REGISTERS = re.compile(r"[Uu]sed (\d+) registers")
_BARRIERS = re.compile(r"[Uu]sed (\d+) barriers")
_SHARED = re.compile(r"(\d+(?:\+\d+)*) bytes smem")


@dataclass(frozen=True, slots=True)
class Resources:
    """One kernel as ptxas compiled it; `arch` is empty where the text does not say."""

    kernel: str
    arch: str
    registers: int
    static_shared: int
    barriers: int


def read(text: str) -> list[Resources]:
    """The kernels of the text in order; raises `LaunchInvalid` when it names none."""
    found: list[Resources] = []
    kernel = arch = ""
    for line in text.splitlines():
        if name := _NAME.search(line):
            kernel = name[1]
            if where := _ARCH.search(line):
                arch = where[1]
        if registers := _REGISTERS.search(line):
            shared = _SHARED.search(line)
            barriers = _BARRIERS.search(line)
            found.append(
                Resources(
                    kernel,
                    arch,
                    int(registers[1]),
                    sum(map(int, shared[1].split("+"))) if shared else 0,
                    # Versions that do not say it know of one barrier, that of __syncthreads.
                    int(barriers[1]) if barriers else 1,
                )
            )
    if not found:
        raise LaunchInvalid(
            "the text has no line 'Used N registers'",
            remedy="give what `ptxas -v` or `nvcc -Xptxas -v` prints",
        )
    return found
