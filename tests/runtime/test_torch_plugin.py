"""PyTorch's pluggable allocator: its C entries on a stand-in for the driver, itself on a GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bedplate.core.errors import EnvironmentLacks
from bedplate.core.paths import native_library_dir
from bedplate.runtime.api import use_in_torch

BUILD = Path(__file__).parents[1] / "hal" / "native" / "cuda" / "build.sh"
REAL = Path("/dev/nvidiactl").exists()
HEAD = """
import ctypes, sys
driver = ctypes.CDLL("libcuda.so.1")
context, streams = ctypes.c_void_p(), [ctypes.c_void_p(), ctypes.c_void_p()]
assert driver.cuInit(0) == 0
assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
driver.cuCtxSetCurrent(context)
for stream in streams:
    assert driver.cuStreamCreateWithPriority(ctypes.byref(stream), 1, 0) == 0
driver.cuCtxSetCurrent(None)
library = ctypes.CDLL(sys.argv[1])
allocate, free, use = (
    library.bp_runtime_torch_allocate,
    library.bp_runtime_torch_free,
    library.bp_runtime_torch_record_stream,
)
allocate.restype, free.restype, use.restype = ctypes.c_void_p, None, None
allocate.argtypes = [ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
free.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
use.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
main, side = streams
MIB = 1 << 20
"""


def run(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    """A program on the stand-in."""
    return subprocess.run(
        [sys.executable, "-c", HEAD + text, native_library_dir() / "libbedplate_runtime.so"],
        env=os.environ | {"LD_LIBRARY_PATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the stand-in as libcuda.so.1."""
    folder = tmp_path_factory.mktemp("driver")
    subprocess.run([BUILD, folder], check=True)
    return folder


@pytest.mark.skipif(REAL, reason="the stand-in must not hide a real driver")
def test_pointers_come_and_go_on_the_driver(driver: Path) -> None:
    """Apart while live, reused after a free, scattered pieces under one request; the thread's
    own context is current afterwards."""
    done = run(
        driver,
        """
blocks = [allocate(16 * MIB, 0, main) for _ in range(8)]
assert len(set(blocks)) == 8 and all(blocks)
for block in blocks[::2]:
    free(block, 16 * MIB, 0, main)
again = allocate(16 * MIB, 0, main)
assert again in blocks[::2]
large = allocate(40 * MIB, 0, main)
assert large
now = ctypes.c_void_p()
driver.cuCtxGetCurrent(ctypes.byref(now))
assert now.value is None
words = (ctypes.c_uint64 * 70)()
assert library.bp_runtime_torch_stats(0, words) == 0
print("ok", words[57] // MIB)
""",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("ok ")


@pytest.mark.skipif(REAL, reason="the stand-in must not hide a real driver")
def test_what_another_stream_uses_is_not_reused_early(driver: Path) -> None:
    """`record_stream` keeps a block from its own stream until the other one has passed, which
    is known when the program names it again."""
    done = run(
        driver,
        """
gate = ctypes.c_uint64()
driver.cuCtxSetCurrent(context)
assert driver.cuMemAlloc_v2(ctypes.byref(gate), ctypes.c_size_t(8)) == 0
assert driver.cuStreamWriteValue64_v2(main, gate, ctypes.c_uint64(0), 0) == 0
assert driver.cuStreamSynchronize(main) == 0
assert driver.cuStreamWaitValue64_v2(side, gate, ctypes.c_uint64(1), 0) == 0
driver.cuCtxSetCurrent(None)
block = allocate(4 * MIB, 0, main)
use(block, side)
free(block, 4 * MIB, 0, main)
other = allocate(4 * MIB, 0, main)
driver.cuCtxSetCurrent(context)
assert driver.cuStreamWriteValue64_v2(main, gate, ctypes.c_uint64(1), 0) == 0
assert driver.cuStreamSynchronize(side) == 0
driver.cuCtxSetCurrent(None)
allocate(MIB, 0, side)
driver.cuCtxSetCurrent(context)
assert driver.cuStreamSynchronize(side) == 0
driver.cuCtxSetCurrent(None)
free(other, 4 * MIB, 0, main)
taken = {allocate(4 * MIB, 0, main) for _ in range(2)}
print("early" if other == block else "late", block in taken)
""",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["late", "True"]


@pytest.mark.skipif(REAL, reason="the stand-in must not hide a real driver")
def test_more_streams_than_are_near_and_many_blocks(driver: Path) -> None:
    """80 streams from two threads and 2,000 live blocks: each pointer is its own, found again,
    and a stream seen twice is one stream."""
    done = run(
        driver,
        """
import threading
driver.cuCtxSetCurrent(context)
streams = [ctypes.c_void_p() for _ in range(80)]
for stream in streams:
    assert driver.cuStreamCreateWithPriority(ctypes.byref(stream), 1, 0) == 0
driver.cuCtxSetCurrent(None)
blocks = []
def take():
    for turn in range(1000):
        blocks.append((allocate(4096, 0, streams[turn % 80]), streams[turn % 80]))
threads = [threading.Thread(target=take) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len({pointer for pointer, _ in blocks}) == 2000 and all(pointer for pointer, _ in blocks)
words = (ctypes.c_uint64 * 70)()
assert library.bp_runtime_torch_stats(0, words) == 0
live = words[0]
for pointer, stream in blocks:
    free(pointer, 4096, 0, stream)
assert library.bp_runtime_torch_stats(0, words) == 0
print(live, words[0])
""",
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    assert done.stdout.split() == ["2000", "0"]


DESTROYED = """
driver.cuCtxSetCurrent(context)
def make():
    stream = ctypes.c_void_p()
    assert driver.cuStreamCreateWithPriority(ctypes.byref(stream), 1, 0) == 0
    return stream
def destroy(stream):
    driver.cuCtxSetCurrent(context)
    assert driver.cuStreamDestroy_v2(stream) == 0
    driver.cuCtxSetCurrent(None)
"""


@pytest.mark.skipif(REAL, reason="the stand-in must not hide a real driver")
def test_a_destroyed_stream_ends_nothing(driver: Path) -> None:
    """Used on a stream that is destroyed, then freed: nobody asks the driver about it, requests
    that must look further do not fail, and its memory comes back before one would."""
    done = run(
        driver,
        DESTROYED
        + """
gone = make()
block = allocate(8 * MIB, 0, main)
own = allocate(8 * MIB, 0, gone)
use(block, gone)
destroy(gone)
free(block, 8 * MIB, 0, main)
free(own, 8 * MIB, 0, gone)
later = [allocate(8 * MIB, 0, main) for _ in range(4)]
assert all(later) and len(set(later)) == 4, later
assert block not in later and own not in later
for pointer in later:
    free(pointer, 8 * MIB, 0, main)
whole = allocate(980 * MIB, 0, main)
assert whole
print("ok")
""",
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    assert done.stdout.strip() == "ok"


@pytest.mark.skipif(REAL, reason="the stand-in must not hide a real driver")
def test_work_after_a_use_was_told_is_waited_for_too(driver: Path) -> None:
    """What the other stream is given between `record_stream` and the free counts, though an
    event of before has passed."""
    done = run(
        driver,
        DESTROYED
        + """
gate = ctypes.c_uint64()
assert driver.cuMemAlloc_v2(ctypes.byref(gate), ctypes.c_size_t(8)) == 0
assert driver.cuStreamWriteValue64_v2(main, gate, ctypes.c_uint64(0), 0) == 0
assert driver.cuStreamSynchronize(main) == 0
driver.cuCtxSetCurrent(None)
block, second = allocate(4 * MIB, 0, main), allocate(4 * MIB, 0, main)
use(block, side)
free(second, 4 * MIB, 0, side)
third = allocate(64 * MIB, 0, main)
allocate(4 * MIB, 0, side)
allocate(64 * MIB, 0, main)
driver.cuCtxSetCurrent(context)
assert driver.cuStreamWaitValue64_v2(side, gate, ctypes.c_uint64(1), 0) == 0
driver.cuCtxSetCurrent(None)
free(block, 4 * MIB, 0, main)
early = [allocate(4 * MIB, 0, main) for _ in range(4)]
driver.cuCtxSetCurrent(context)
assert driver.cuStreamWriteValue64_v2(main, gate, ctypes.c_uint64(1), 0) == 0
assert driver.cuStreamSynchronize(side) == 0
driver.cuCtxSetCurrent(None)
allocate(64 * MIB, 0, main)
allocate(2 * MIB, 0, side)
driver.cuCtxSetCurrent(context)
assert driver.cuStreamSynchronize(side) == 0
driver.cuCtxSetCurrent(None)
allocate(64 * MIB, 0, main)
late = [allocate(4 * MIB, 0, main) for _ in range(8)]
print(block in early, block in late)
""",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["False", "True"]


@pytest.mark.skipif(REAL, reason="the stand-in must not hide a real driver")
def test_streams_that_come_and_go_run_out_of_no_place(driver: Path) -> None:
    """1,200 streams one after the other, then 1,100 at once."""
    done = run(
        driver,
        DESTROYED
        + """
kept = allocate(MIB, 0, main)
for turn in range(1200):
    driver.cuCtxSetCurrent(context)
    stream = make()
    pointer = allocate(2 * MIB, 0, stream)
    assert pointer and pointer != kept, turn
    free(pointer, 2 * MIB, 0, stream)
    destroy(stream)
driver.cuCtxSetCurrent(context)
streams = [make() for _ in range(1100)]
pointers = [allocate(4096, 0, stream) for stream in streams]
assert all(pointers) and len(set(pointers)) == 1100
for pointer, stream in zip(pointers, streams):
    free(pointer, 4096, 0, stream)
print("ok")
""",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "ok"
    assert not done.stderr


@pytest.mark.skipif(REAL, reason="the stand-in must not hide a real driver")
def test_failures_are_null_and_told(driver: Path, tmp_path: Path) -> None:
    """A pointer of nobody, a size beyond all memory, a machine without a driver."""
    done = run(driver, "free(12345, 0, 0, main)\nassert not allocate(1 << 60, 0, main)")
    assert done.returncode == 0, done.stderr
    assert "block 0x3039: no live block of this allocator starts here" in done.stderr
    assert "out of memory" in done.stderr
    program = (
        "import ctypes, sys\nprint(ctypes.CDLL(sys.argv[1]).bp_runtime_torch_allocate(5, 0, None))"
    )
    bare = subprocess.run(
        [sys.executable, "-c", program, native_library_dir() / "libbedplate_runtime.so"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert bare.stdout.strip() == "0"
    assert "libcuda.so.1 is not on this machine" in bare.stderr


class Old:
    """A PyTorch of before."""

    __version__ = "1.13"

    class cuda:  # noqa: N801, D106 - as PyTorch has it
        class memory:  # noqa: N801
            """Without pluggable allocators."""


class Late:
    """A PyTorch that has allocated."""

    __version__ = "2.11"

    class cuda:  # noqa: N801, D106
        class memory:  # noqa: N801
            """Refuses as PyTorch does."""

            class CUDAPluggableAllocator:
                """Keeps what it was given."""

                def __init__(self, *words: str) -> None:
                    self.words = words

                def allocator(self) -> object:
                    """The native object."""
                    return object()

            @staticmethod
            def change_current_allocator(_: object) -> None:
                """Too late."""
                raise RuntimeError("Can't swap an already initialized allocator")


def test_a_pytorch_that_cannot_take_it_is_refused() -> None:
    """Too old, or too late: one sentence and what to do."""
    with pytest.raises(EnvironmentLacks, match=r"1\.13 has no pluggable"):
        use_in_torch(Old)
    with pytest.raises(EnvironmentLacks, match="allocated on a GPU already"):
        use_in_torch(Late)


@pytest.mark.device
def test_pytorch_computes_on_our_memory() -> None:
    """A matrix product on a GPU with our allocator equals the one on the host."""
    program = """
import torch
from bedplate.runtime.api import torch_stats, use_in_torch
use_in_torch(torch)
a, b = torch.arange(4096.0).view(64, 64), torch.eye(64)
assert (a.cuda() @ b.cuda()).cpu().equal(a)
side = torch.cuda.Stream()
held = torch.ones(1 << 20, device="cuda")
held.record_stream(side)
del held
assert torch_stats().reserved_peak_bytes > 0
print("ok")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "ok", done.stderr
