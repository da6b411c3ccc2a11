"""Native modules and their kernels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bedplate.hal import abi, trust
from bedplate.hal.errors import InvalidArgument
from bedplate.hal.native import ffi, new, read_text, text, utf8

if TYPE_CHECKING:
    from bedplate.hal.device import Device


class Kernel:
    """A kernel of a loaded module; valid while the module is."""

    def __init__(self, module: Module, name: str, handle: int) -> None:
        self.module = module
        self.name = name
        self.handle = handle

    def __repr__(self) -> str:
        return f"<Kernel {self.name} of {self.module.name}>"


_KINDS = {
    "ptx": abi.BP_MODULE_PTX,
    "cubin": abi.BP_MODULE_CUBIN,
    "spirv": abi.BP_MODULE_SPIRV,
    "opencl_c": abi.BP_MODULE_OPENCL_C,
}


class Module:
    """Code loaded on a device; use `device.load_native_module` or `device.load_module`.

    `source` is a filled `bp_module_source`, `name` how people call it.
    """

    def __init__(self, device: Device, source: Any, name: str) -> None:
        self.device = device
        self.name = name
        out = ffi.new("uint64_t *")
        device.check(device.api.module.load(device.handle, source, out))
        self.handle = int(out[0])
        info = new("bp_module_info")
        device.check(device.api.module.info(device.handle, self.handle, info))
        self.isa = read_text(info.isa)
        self._names = [read_text(info.kernels[i]) for i in range(info.kernel_count)]
        self._kernels: dict[str, Kernel] = {}

    @classmethod
    def from_file(cls, device: Device, path: Path) -> Module:
        """A shared object of kernels.

        The file is held to the rules of `hal.trust` (owner, mode) before it is
        opened. Raises BackendRefused, NotFound, Unavailable for an instruction
        set the device lacks, InvalidArgument for a module that breaks the ABI,
        Unsupported for a device that takes no native modules.
        """
        whole = Path(path).absolute()
        trust.check_file(whole)
        raw = ffi.new("char[]", str(whole).encode())
        source = new("bp_module_source", kind=abi.BP_MODULE_NATIVE)
        source.path.data, source.path.length = raw, len(raw) - 1
        return cls(device, source, whole.name)

    @classmethod
    def from_image(cls, device: Device, kind: str, image: str | bytes, name: str) -> Module:
        """Code that the device's own compiler reads: `ptx`, `cubin`, `spirv` or `opencl_c`.

        Raises InvalidArgument with the compiler's words for code that does
        not build, Unsupported for a kind that the device does not take.
        """
        if kind not in _KINDS:
            raise InvalidArgument(
                f"{kind!r} is not a kind of code", remedy=f"use one of {', '.join(_KINDS)}"
            )
        data = utf8(image) if isinstance(image, str) else image
        raw = ffi.new("char[]", data)
        source = new("bp_module_source", kind=_KINDS[kind], data=raw, bytes=len(data))
        return cls(device, source, name)

    def kernels(self) -> list[str]:
        """The names of its kernels, in the module's order."""
        return list(self._names)

    def kernel(self, name: str) -> Kernel:
        """The kernel called `name`; NotFound when there is none."""
        if name not in self._kernels:
            wanted, _keep = text(name)
            out = ffi.new("uint64_t *")
            call = self.device.api.module.kernel
            self.device.check(call(self.device.handle, self.handle, wanted, out))
            self._kernels[name] = Kernel(self, name, int(out[0]))
        return self._kernels[name]

    def unload(self) -> None:
        """Make its kernels stale; running batches finish. Twice is fine."""
        if self.handle and not self.device.closed:
            handle, self.handle = self.handle, 0
            self._kernels.clear()
            self.device.check(self.device.api.module.unload(self.device.handle, handle))
