"""module_cubin: machine code, made of the suite's PTX where an assembler is at hand."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from bedplate.hal import abi
from bedplate.hal.batch import U32, Batch
from bedplate.hal.module import Module
from bedplate.hal.native import ffi, new
from bedplate.hal.suite.registry import NotRun, case
from bedplate.hal.suite.subject import Subject, expect

BAD = abi.BP_INVALID_ARGUMENT
_CUDA = Path("/usr/local/cuda/bin/ptxas")


@case("module_cubin", "positive")
def machine_code_runs(s: Subject) -> None:
    """ptxas makes a cubin for this device; its kernels run as those of the text do."""
    ptxas = shutil.which("ptxas") or (str(_CUDA) if _CUDA.exists() else None)
    arch = s.info.properties.get("cuda.arch")
    if ptxas is None or arch is None:
        raise NotRun("it needs ptxas, which is not here")
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder) / "kernels.cubin"
        command = [ptxas, f"-arch={arch}", str(s.code_path("ptx")), "-o", str(cubin)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotRun(f"ptxas makes nothing for {arch}: {done.stderr.strip()[:200]}")
        module = Module.from_image(s.device, "cubin", cubin.read_bytes(), "kernels.cubin")
    expect(module.isa == arch, f"a cubin for {arch} says it is for {module.isa}")
    out, batch = s.memory(64), Batch()
    batch.launch(module.kernel("store"), (1,), [out, U32(77)])
    s.completes(batch, "a launch of machine code")
    expect(s.words(out, "u4")[0] == 77, "machine code did not run")


@case("module_cubin", "negative")
def broken_machine_code_is_refused(s: Subject) -> None:
    """Text, nothing, and the beginning of an ELF file."""
    for image in (b".version 7.0", b"", b"\x7fELF and no more of it" + bytes(64)):
        raw, out = ffi.new("char[]", image), ffi.new("uint64_t *")
        source = new("bp_module_source", kind=abi.BP_MODULE_CUBIN, data=raw, bytes=len(image))
        wanted = (BAD, abi.BP_UNAVAILABLE)
        s.refuses(s.api.module.load(s.handle, source, out), wanted, f"loading {image[:16]!r}")
