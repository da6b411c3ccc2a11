"""A loaded backend: its complete tables, and its errors as exceptions."""

from __future__ import annotations

import functools
from typing import Any

from bedplate.hal import abi
from bedplate.hal.inprocess import HOST
from bedplate.hal.native import failure, ffi, library, load_backend
from bedplate.hal.trust import TrustedFile


class Backend:
    """A backend that was loaded and negotiated; it stays until the process ends."""

    def __init__(self, name: str, file: TrustedFile, sha256: str, spec: str) -> None:
        self.name = name
        self.path = file.path
        # How another process finds the same one: its name or its manifest's path.
        self.spec = spec
        self.sha256 = sha256
        self.api = load_backend(file.path, file.descriptor, HOST)

    @property
    def abi(self) -> str:
        """The version both sides keep to, `major.minor`."""
        return f"{self.api.major}.{self.api.minor}"

    @functools.cached_property
    def ops(self) -> Any:
        """The complete table `bp.ops.1`; Unsupported without one."""
        out = ffi.new("const bp_ops **")
        self.check(library().bp_hal_ops(self.api, out))
        return out[0]

    @functools.cached_property
    def tensor_maps(self) -> Any:
        """The complete table `bp.tensor_map.1`; Unsupported without one."""
        out = ffi.new("const bp_tensor_maps **")
        self.check(library().bp_hal_tensor_maps(self.api, out))
        return out[0]

    def check(self, status: int) -> None:
        """Raise the typed error of a negative status of this thread's last call."""
        if status != abi.BP_OK:
            raise failure(self.api, status)

    def device_count(self) -> int:
        """How many devices it sees; opens none."""
        count = ffi.new("uint32_t *")
        self.check(self.api.core.enumerate(count))
        return int(count[0])

    def __repr__(self) -> str:
        return f"<Backend {self.name} {self.path}>"
