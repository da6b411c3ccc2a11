"""What ptxas prints, in the words of several versions."""

from __future__ import annotations

import pytest

from bedplate.simt.errors import LaunchInvalid
from bedplate.simt.ptxas import Resources, read

CUDA_13 = """
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z4nonev' for 'sm_90'
ptxas info    : Function properties for _Z4nonev
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 4 registers, used 0 barriers
ptxas info    : Compile time = 4.451 ms
ptxas info    : Compiling entry function 'k' for 'sm_90'
ptxas info    : Function properties for k
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 1 barriers, 1024 bytes smem
"""
CUDA_8 = """
ptxas info    : Compiling entry function 'old$1' for 'sm_52'
ptxas info    : Function properties for old$1
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 21 registers, 24+16 bytes smem, 344 bytes cmem[0]
"""


def test_kernels_are_read_with_what_they_use() -> None:
    """Registers, static shared memory, barriers."""
    assert read(CUDA_13) == [
        Resources("_Z4nonev", "sm_90", 4, 0, 0),
        Resources("k", "sm_90", 10, 1024, 1),
    ]


def test_an_older_text_has_sums_and_no_barriers() -> None:
    """Then one barrier counts."""
    assert read(CUDA_8) == [Resources("old$1", "sm_52", 21, 40, 1)]


@pytest.mark.parametrize("text", ["", "nvcc fatal : no input files", "Used many registers"])
def test_a_text_without_registers_is_refused(text: str) -> None:
    """It says where the right one comes from."""
    with pytest.raises(LaunchInvalid, match="Used N registers"):
        read(text)
