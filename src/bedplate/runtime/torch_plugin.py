"""Our allocator under an unmodified PyTorch, on a machine with an NVIDIA GPU.

    import torch
    from bedplate.runtime.api import use_in_torch
    use_in_torch(torch)          # before anything is on the GPU

Nothing here imports PyTorch: the caller brings it.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

from bedplate.core.errors import EnvironmentLacks
from bedplate.core.paths import native_library_dir
from bedplate.runtime.native import check, ffi, library
from bedplate.runtime.stats import PoolStats, read


def use_in_torch(torch: Any, path: Path | None = None) -> Any:
    """Make PyTorch take the memory of its GPUs from our allocator; the allocator object.

    To be called before PyTorch has allocated on a GPU. `Tensor.record_stream`
    reaches us where this PyTorch lets it. Raises EnvironmentLacks for a PyTorch
    without pluggable allocators, or that has allocated already.
    """
    file = str(path or native_library_dir() / "libbedplate_runtime.so")
    memory = torch.cuda.memory
    if not hasattr(memory, "CUDAPluggableAllocator"):
        raise EnvironmentLacks(
            f"PyTorch {torch.__version__} has no pluggable allocators", remedy="use 2.0 or newer"
        )
    made = memory.CUDAPluggableAllocator(file, "bp_runtime_torch_allocate", "bp_runtime_torch_free")
    native = made.allocator()
    if hasattr(native, "set_record_stream_fn"):
        symbol = ctypes.CDLL(file).bp_runtime_torch_record_stream
        native.set_record_stream_fn(ctypes.cast(symbol, ctypes.c_void_p).value)
    try:
        memory.change_current_allocator(made)
    except RuntimeError as cause:
        raise EnvironmentLacks(
            "PyTorch has allocated on a GPU already",
            remedy="call use_in_torch before anything is on the GPU",
            detail=str(cause),
        ) from cause
    return made


def torch_stats(device: int = 0) -> PoolStats:
    """The figures of what PyTorch took on a device; it is opened if need be."""
    out = ffi.new("bp_runtime_stats_out *")
    check(library().bp_runtime_torch_stats(device, out))
    return read("activations", out)
