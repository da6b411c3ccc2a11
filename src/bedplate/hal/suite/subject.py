"""The device under test, and the words in which cases speak of it.

A subject opens a device of its own for every case, believing all claims, so
one case leaves nothing behind for the next. Calls go to the raw tables: a
refusal must be the right status and leave a sentence.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bedplate.core.oracle import OpOracle
from bedplate.core.paths import native_library_dir
from bedplate.hal import abi
from bedplate.hal.batch import Batch
from bedplate.hal.buffer import Buffer, Range
from bedplate.hal.device import Device, read_info
from bedplate.hal.loader import Backend
from bedplate.hal.module import Module
from bedplate.hal.native import ERROR_BYTES, ffi, library, new
from bedplate.hal.suite.registry import CaseFailed, NotRun

WAIT_NS = 2_000_000_000
"""Far longer than any case's work takes, so that passing it means a hang."""

LOOK_NS = 30_000_000
"""How long a case looks whether something happens that must not."""


CODE = {"native": "bedplate_hal_conform.so", "opencl_c": "kernels.cl", "ptx": "kernels.ptx"}
"""The suite's kernels, once for each kind of code; cases take the first that a device claims."""


def expect(holds: object, otherwise: str) -> None:
    """Fail the case with `otherwise` unless `holds`."""
    if not holds:
        raise CaseFailed(otherwise)


class Subject:
    """One device of a backend, opened for one case."""

    def __init__(self, backend: Backend, index: int, oracle: OpOracle | None = None) -> None:
        self.backend = backend
        self.index = index
        self.oracle = oracle
        self.info = read_info(backend, index)
        self.device = Device(backend, self.info)
        self.api = self.device.api
        self.handle = self.device.handle
        self._modules: dict[str, Module] = {}
        self._code: str | None = None

    def close(self) -> None:
        """End the device."""
        self.device.close()

    def lost(self) -> bool:
        """Whether the device says that it is lost."""
        out = ffi.new("uint64_t *")
        return int(self.api.timeline.create(self.handle, 0, out)) == abi.BP_DEVICE_LOST

    def need(self, capability: str) -> None:
        """NOT RUN unless the device claims a capability that the case needs as a tool."""
        if capability not in self.info.claims:
            raise NotRun(f"it needs {capability}, which the device does not claim")

    def said(self) -> str:
        """The sentence of this thread's last failure, from the loader or the backend."""
        for ask in (library().bp_hal_last_error, self.api.core.last_error):
            buffer = ffi.new("char[]", ERROR_BYTES)
            ask(buffer, ERROR_BYTES, ffi.new("uint64_t *"))
            if text := bytes(ffi.string(buffer)).decode(errors="replace"):
                return text
        return ""

    def works(self, status: int, what: str) -> None:
        """`what` must have succeeded."""
        expect(status == abi.BP_OK, f"{what} gave {_name(status)}: {self.said()}")

    def refuses(self, status: int, wanted: int | Sequence[int], what: str) -> str:
        """`what` must have been refused with a wanted status and a sentence, which is returned."""
        statuses = (wanted,) if isinstance(wanted, int) else tuple(wanted)
        names = " or ".join(_name(one) for one in statuses)
        expect(status in statuses, f"{what} gave {_name(status)}, not {names}")
        text = self.said()
        expect(text, f"{what} was refused without a sentence")
        return text

    def memory(self, bytes: int, fill: int | None = 0) -> Buffer:
        """Memory, every byte of it `fill`; needs `host_visible` or `pin_host`."""
        buffer = self.device.allocate(bytes)
        if fill is not None:
            self.put(buffer, np.full(bytes, fill, np.uint8))
        return buffer

    def put(self, buffer: Buffer, array: NDArray[Any]) -> None:
        """Put an array's bytes at the start of a memory."""
        self.reach()
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self.device.write_bytes(Range(buffer, 0, data.nbytes), data)

    def words(self, buffer: Buffer, dtype: str) -> list[Any]:
        """The content of a memory now, as numbers of a numpy type."""
        self.reach()
        raw = self.device.read_bytes(Range(buffer, 0, buffer.bytes))
        return list(raw.view(dtype).tolist())

    def content(self, buffer: Buffer) -> bytes:
        """The bytes of a memory now; needs `host_visible` or `pin_host`."""
        return bytes(self.words(buffer, "u1"))

    def reach(self) -> None:
        """NOT RUN unless the host can get at the device's memory."""
        if not self.info.claims & {"host_visible", "pin_host"}:
            raise NotRun("it needs host_visible or pin_host, and the device claims neither")

    def queue(self) -> int:
        """A raw queue handle."""
        out = ffi.new("uint64_t *")
        self.works(self.api.queue.create(self.handle, new("bp_queue_info"), out), "queue.create")
        return int(out[0])

    def timeline(self, initial: int = 0) -> int:
        """A raw timeline handle."""
        out = ffi.new("uint64_t *")
        self.works(self.api.timeline.create(self.handle, initial, out), "timeline.create")
        return int(out[0])

    def value(self, timeline: int) -> tuple[int, int]:
        """Status and value of a timeline."""
        out = ffi.new("uint64_t *")
        status = self.api.timeline.query(self.handle, timeline, out)
        return int(status), int(out[0])

    def wait(self, timeline: int, value: int, timeout_ns: int = WAIT_NS) -> int:
        """The status of a host wait."""
        deadline = time.monotonic_ns() + timeout_ns
        return int(self.api.timeline.wait_host(self.handle, timeline, value, deadline))

    def submit(
        self,
        queue: int,
        batch: Batch,
        *,
        tag: int = 0,
        wait: Sequence[tuple[int, int]] = (),
        signal: Sequence[tuple[int, int]] = (),
        change: Callable[[Any], object] | None = None,
    ) -> int:
        """The status of submitting a batch; `change` may spoil the native struct first."""
        waits = ffi.new("bp_fence[]", [*wait, (0, 0)])
        signals = ffi.new("bp_fence[]", [*signal, (0, 0)])
        described = new("bp_batch", tag=tag, wait_count=len(wait), signal_count=len(signal))
        described.wait, described.signal = waits, signals
        described.commands, described.command_count = batch.pointers(), len(batch)
        if change is not None:
            change(described)
        return int(self.api.queue.submit(self.handle, queue, described))

    def run(self, batch: Batch, tag: int = 0) -> tuple[int, str]:
        """Submit on a queue of its own and wait: the status and the sentence of a failure."""
        queue, done = self.queue(), self.timeline()
        status = self.submit(queue, batch, tag=tag, signal=[(done, 1)])
        self.works(status, "queue.submit")
        status = self.wait(done, 1)
        text = "" if status == abi.BP_OK else self.said()
        expect(status != abi.BP_DEADLINE, "a batch did not end")
        self.works(self.api.queue.destroy(self.handle, queue), "queue.destroy")
        return status, text

    def completes(self, batch: Batch, what: str) -> None:
        """A batch must run without a failure."""
        status, text = self.run(batch)
        expect(status == abi.BP_OK, f"{what} gave {_name(status)}: {text}")

    def refused_batch(self, batch: Batch, wanted: int | Sequence[int], what: str) -> str:
        """A batch must be refused when it is submitted; the sentence."""
        return self.refuses(self.submit(self.queue(), batch), wanted, what)

    @property
    def code(self) -> str:
        """The kind of code that kernels are taken from; NOT RUN when the device takes none."""
        if self._code is None:
            kinds = [kind for kind in CODE if f"module_{kind}" in self.info.claims]
            if not kinds:
                raise NotRun("it needs a kernel, and the device takes no code that the suite has")
            self._code = kinds[0]
        return self._code

    def use_code(self, kind: str) -> None:
        """Take kernels from one kind of code from now on."""
        self.need(f"module_{kind}")
        self._code = kind

    def code_path(self, kind: str) -> Path:
        """The suite's own kernels as one kind of code."""
        return native_library_dir() / "conform" / CODE[kind]

    def code_source(self) -> tuple[Any, Any]:
        """A filled `bp_module_source` of the suite's kernels, and what it points to."""
        kind, path = self.code, self.code_path(self.code)
        source = new("bp_module_source", kind=abi_kind(kind))
        if kind == "native":
            raw = ffi.new("char[]", os.fsencode(path))
            source.path.data, source.path.length = raw, len(raw) - 1
        else:
            raw = ffi.new("char[]", path.read_bytes())
            source.data, source.bytes = raw, len(raw) - 1
        return source, raw

    def kernel(self, name: str) -> Any:
        """A kernel of the suite's code, of the kind that is in use."""
        kind = self.code
        if kind not in self._modules:
            source, keep = self.code_source()
            self._modules[kind] = Module(self.device, source, CODE[kind])
            del keep
        return self._modules[kind].kernel(name)


def abi_kind(kind: str) -> int:
    """The BP_MODULE_* of a kind of code."""
    return int(getattr(abi, f"BP_MODULE_{kind.upper()}"))


def _name(status: int) -> str:
    return abi.STATUS_NAMES.get(status, f"status {status}")
