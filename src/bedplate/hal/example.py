"""The smallest in-process machine: it compiles C at module load and hands over the entries.

The backend `example` is its shim. A source of kind `native` is a shared object
of kernels, or a C file, which the system's compiler makes one of:

    register_provider("example", Example(), origin="bedplate.hal.example:Example")
    with open_device("example", trust_claims=True) as device:
        module = device.load_native_module("/path/kernels.c")
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from cffi import FFI

from bedplate.hal import abi
from bedplate.hal.errors import InvalidArgument, NotFound, Unavailable, Unsupported
from bedplate.hal.inprocess import NativeCode, ProvidedDevice, Source
from bedplate.hal.native import ffi, read_text
from bedplate.hal.template import include_dir

_own = FFI()
_own.include(ffi)
_own.cdef("int32_t bedplate_native_module_query(uint32_t, const bp_native_module **);")


class Example:
    """One device over host memory."""

    def devices(self) -> Sequence[ProvidedDevice]:
        """A single device that takes native modules."""
        claims = {"module_native": 1, "dynamic_shared": 1 << 20, "pin_host": 1}
        return [
            ProvidedDevice(
                name="example machine",
                driver="example-1",
                memory_bytes=1 << 30,
                capabilities=claims,
                properties={"example.compiler": "cc"},
            )
        ]

    def load(self, index: int, source: Source) -> NativeCode:
        """Compile if need be, open, ask, and hand over the entries."""
        if source.kind != "native":
            raise Unsupported(f"the example machine takes native modules, not {source.kind}")
        if source.path is None or not source.path.is_absolute():
            raise InvalidArgument(f"the path {source.path} of a module is not absolute")
        if source.path.suffix != ".c":
            return _opened(source.path)
        with tempfile.TemporaryDirectory() as folder:
            # The mapping outlives the file.
            return _opened(_compiled(source.path, Path(folder) / "module.so"))


def _compiled(source: Path, library: Path) -> Path:
    command = ["cc", "-std=gnu11", "-O2", "-shared", "-fPIC", f"-I{include_dir()}"]
    try:
        done = subprocess.run(
            [*command, "-o", str(library), str(source)], capture_output=True, text=True, check=False
        )
    except OSError as cause:
        raise Unavailable(f"there is no C compiler: {cause.strerror}") from cause
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["no words"])[0]
        raise InvalidArgument(f"{source} does not compile: {said}")
    return library


_known: dict[tuple[int, int, int], NativeCode] = {}
"""Code by device, inode and time of change: cffi never lets a library go."""


def _opened(path: Path) -> NativeCode:
    try:
        facts = path.stat()
    except OSError as cause:
        raise NotFound(f"cannot open the module {path}: {cause.strerror}") from cause
    file = (facts.st_dev, facts.st_ino, facts.st_mtime_ns)
    if file not in _known:
        _known[file] = _ask(path)
    return _known[file]


def _ask(path: Path) -> NativeCode:
    try:
        library = _own.dlopen(str(path), _own.RTLD_NOW)
        query = library.bedplate_native_module_query
    except OSError as cause:
        raise NotFound(f"cannot open the module {path}: {cause}") from cause
    except AttributeError as cause:
        raise InvalidArgument(f"{path} is no native module: {cause}") from cause
    answer = _own.new("const bp_native_module **")
    if query(abi.ABI_MAJOR, answer) != abi.BP_OK or answer[0] == ffi.NULL:
        raise InvalidArgument(f"{path} refused the query for ABI major {abi.ABI_MAJOR}")
    module = answer[0]
    kernels = {
        read_text(module.kernels[i].name): int(_own.cast("uintptr_t", module.kernels[i].entry))
        for i in range(module.kernel_count)
    }
    return NativeCode(kernels, read_text(module.isa), keep=library)
