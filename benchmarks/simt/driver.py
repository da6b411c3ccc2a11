"""The calls of the CUDA driver that a comparison needs, through ctypes.

A GPU machine may have neither Bedplate's build nor a binding of its own; libcuda it has.
Every call's result is looked at, and the error has the driver's name for it.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np


class CudaError(Exception):
    """A driver call that did not succeed."""


class Cuda:
    """The first device's primary context."""

    def __init__(self) -> None:
        try:
            self.library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise CudaError(f"there is no CUDA driver: {error}") from None
        self.call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        name = ctypes.create_string_buffer(128)
        self.call("cuDeviceGetName", name, 128, device)
        self.name = name.value.decode()
        version = ctypes.c_int()
        self.call("cuDriverGetVersion", ctypes.byref(version))
        self.version = f"cuda-{version.value // 1000}.{version.value % 1000 // 10}"
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def call(self, function: str, *values: Any) -> None:
        """Raises CudaError unless the driver says success."""
        code = getattr(self.library, function)(*values)
        if code:
            text = ctypes.c_char_p()
            self.library.cuGetErrorName(code, ctypes.byref(text))
            raise CudaError(f"{function} gave {code} ({(text.value or b'unknown').decode()})")

    def load(self, text: str) -> ctypes.c_void_p:
        """A module of a PTX text, compiled by the driver."""
        module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), text.encode() + b"\0")
        return module

    def unload(self, module: ctypes.c_void_p) -> None:
        """Give its code back."""
        self.call("cuModuleUnload", module)

    def allocate(self, size: int) -> int:
        """The address of new memory."""
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(size, 256)))
        return address.value

    def write(self, address: int, data: np.ndarray) -> None:
        """Copy an array to the device."""
        source = np.ascontiguousarray(data)
        size = ctypes.c_size_t(source.nbytes)
        self.call(
            "cuMemcpyHtoD_v2", ctypes.c_uint64(address), ctypes.c_void_p(source.ctypes.data), size
        )

    def read(self, address: int, count: int, dtype: Any) -> np.ndarray:
        """Copy an array from the device; waits for what runs."""
        made = np.empty(count, dtype)
        size = ctypes.c_size_t(made.nbytes)
        self.call(
            "cuMemcpyDtoH_v2", ctypes.c_void_p(made.ctypes.data), ctypes.c_uint64(address), size
        )
        return made

    def launch(self, module: Any, name: str, grid: int, block: int, values: list[int]) -> None:
        """Start a kernel whose parameters are 64-bit words, and wait for its end."""
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        words = [ctypes.c_uint64(value) for value in values]
        places = (ctypes.c_void_p * len(words))(*(ctypes.addressof(word) for word in words))
        self.call("cuLaunchKernel", function, grid, 1, 1, block, 1, 1, 0, None, places, None)
        self.call("cuCtxSynchronize")
