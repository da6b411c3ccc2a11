"""The software GPU as a device: `simt`, a machine in this process behind the backend of that name.

It takes PTX, compiles every kernel when a module is loaded, and hands over native entries, so
a launch runs no Python. Kernels see the device's allocations and nothing else; a fault is the
device's launch fault, with kernel, line, thread and lane, and poisons what waits for it.

Blocks run on several host threads, so that atomics whose order matters give what their turn
gives, as on a GPU; `printf` prints nothing here. `simt.api` has a machine that repeats a run.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from bedplate.hal.errors import InvalidArgument, Unsupported
from bedplate.hal.inprocess import KernelFacts, NativeCode, ProvidedDevice, Source
from bedplate.simt import api as simt

ARCH = "sm_90"
"""What it stands for: blocks of 1024 threads, 227 KiB of shared memory."""


class Simt:
    """One device over the host's memory."""

    def devices(self) -> Sequence[ProvidedDevice]:
        """A single device; its driver text names the code of the machine."""
        return [
            ProvidedDevice(
                name="software GPU",
                driver=f"simt-{simt.code_fingerprint()}",
                memory_bytes=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
                capabilities={
                    "module_ptx": 1,
                    "dynamic_shared": simt.MOST_SHARED,
                    "pin_host": 1,
                },
                properties={"simt.arch": ARCH},
            )
        ]

    def load(self, index: int, source: Source) -> NativeCode:
        """Compile a PTX text. InvalidArgument with its line, Unsupported for what it lacks."""
        if source.kind != "ptx":
            raise Unsupported(f"the software GPU takes PTX, not {source.kind}")
        try:
            text = source.data.rstrip(b"\0").decode()
        except UnicodeDecodeError as cause:
            raise InvalidArgument(f"the PTX is no text: {cause.reason}") from cause
        try:
            made = simt.native_kernels(text)
        except simt.PtxUnsupported as error:
            raise Unsupported(error.message) from error
        except simt.PtxInvalid as error:
            raise InvalidArgument(error.message) from error
        facts = {
            name: KernelFacts(
                kernel.most_threads,
                len(kernel.arguments),
                kernel.parameter_bytes,
                kernel.shared_bytes,
                kernel.block,
            )
            for name, kernel in made.kernels.items()
        }
        entries = {name: kernel.entry for name, kernel in made.kernels.items()}
        return NativeCode(entries, keep=made.keep, facts=facts)
