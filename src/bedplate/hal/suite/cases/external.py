"""export_memory and import_memory: the same bytes under another owner's handle."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bedplate.hal import abi
from bedplate.hal.batch import Batch
from bedplate.hal.buffer import Buffer
from bedplate.hal.native import ffi, new
from bedplate.hal.suite import structs
from bedplate.hal.suite.registry import case
from bedplate.hal.suite.subject import Subject, expect

BAD = abi.BP_INVALID_ARGUMENT
UNSUPPORTED = abi.BP_UNSUPPORTED
BYTES = 4096


def exportable(s: Subject) -> Buffer:
    """Memory that may be exported, full of zeros."""
    out = ffi.new("uint64_t *")
    info = new("bp_memory_info", bytes=BYTES, flags=abi.BP_MEMORY_EXPORTABLE)
    s.works(s.api.mem.create(s.handle, info, out), "mem.create of exportable memory")
    buffer, batch = Buffer(s.device, int(out[0]), BYTES, 0), Batch()
    batch.fill(buffer, 0)
    s.completes(batch, "a fill of exportable memory")
    return buffer


@contextmanager
def exported(s: Subject, buffer: Buffer) -> Iterator[Any]:
    """What export gives; its descriptor is closed in the end."""
    external = new("bp_external")
    s.works(s.api.mem.export_memory(s.handle, buffer.handle, external), "mem.export_memory")
    expect(external.kind == abi.BP_EXTERNAL_FILE_DESCRIPTOR, "export gave no descriptor")
    try:
        yield external
    finally:
        os.close(int(external.value))


def imported(s: Subject, external: Any) -> Buffer:
    """The memory of an import."""
    out = ffi.new("uint64_t *")
    s.works(s.api.mem.import_memory(s.handle, external, out), "mem.import_memory")
    return Buffer(s.device, int(out[0]), int(external.bytes), 0)


@case("export_memory", "positive", needs=["import_memory"])
def exported_memory_is_the_same(s: Subject) -> None:
    """Imported again, a fill of one is seen in the other."""
    buffer, batch = exportable(s), Batch()
    with exported(s, buffer) as external:
        expect(external.bytes == BYTES, f"{BYTES} bytes were exported as {external.bytes}")
        batch.fill(imported(s, external), 0x01010101)
    s.completes(batch, "a fill of imported memory")
    expect(s.content(buffer) == b"\x01" * BYTES, "imported memory is not the exported one")


@case("export_memory", "negative")
def what_cannot_cross_is_refused(s: Subject) -> None:
    """Memory that was not made for it, a stale handle, no place for the answer."""
    plain, out = s.memory(64), new("bp_external")
    call = s.api.mem.export_memory
    s.refuses(call(s.handle, plain.handle, out), (BAD, UNSUPPORTED), "exporting plain memory")
    buffer = exportable(s)
    handle = buffer.handle
    s.works(s.api.mem.release(s.handle, handle), "mem.release")
    s.refuses(call(s.handle, handle, out), BAD, "exporting released memory")
    expect(out.value == 0, "a refused export wrote a descriptor")
    info = new("bp_memory_info", bytes=64, flags=1 << 31)
    status = s.api.mem.create(s.handle, info, ffi.new("uint64_t *"))
    s.refuses(status, (BAD, UNSUPPORTED), "memory with an unknown flag")


@case("import_memory", "positive", needs=["export_memory"])
def imported_bytes_outlive_their_owner(s: Subject) -> None:
    """The original is released, its descriptor closed, and the device it came from closed."""
    other = Subject(s.backend, s.index)
    buffer, batch = exportable(other), Batch()
    batch.fill(buffer, 0x02020202)
    other.completes(batch, "a fill of exportable memory")
    with exported(other, buffer) as external:
        mine = imported(s, external)
    buffer.release()
    other.close()
    expect(s.content(mine) == b"\x02" * BYTES, "imported memory lost its bytes")


@case("import_memory", "positive", tier="full", needs=["export_memory"])
def memory_crosses_many_times(s: Subject) -> None:
    """Two hundred exports and imports leave no descriptor behind."""
    buffer = exportable(s)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(200):
        with exported(s, buffer) as external:
            imported(s, external).release()
    s.completes(Batch(), "an empty batch")
    left = len(os.listdir("/proc/self/fd")) - before
    expect(left < 100, f"{left} descriptors are left of 200 imports")


@case("import_memory", "negative")
def what_is_no_memory_is_refused(s: Subject) -> None:
    """A pipe, a descriptor that is not open, no bytes, an unknown kind."""
    reading, writing = os.pipe()
    try:
        for what, fields in {
            "a pipe": {"kind": 1, "value": reading, "bytes": BYTES},
            "a descriptor that is not open": {"kind": 1, "value": (1 << 31) - 1, "bytes": BYTES},
            "a descriptor past an int": {"kind": 1, "value": 1 << 40, "bytes": BYTES},
            "no bytes": {"kind": 1, "value": reading, "bytes": 0},
            "an unknown kind": {"kind": 99, "value": reading, "bytes": BYTES},
        }.items():
            out = ffi.new("uint64_t *")
            status = s.api.mem.import_memory(s.handle, new("bp_external", **fields), out)
            s.refuses(status, (BAD, UNSUPPORTED), f"importing {what}")
            expect(out[0] == 0, f"importing {what} gave a handle")
    finally:
        os.close(reading)
        os.close(writing)


@case("import_memory", "negative", needs=["export_memory"])
def more_bytes_than_there_are_are_refused(s: Subject) -> None:
    """A gibibyte of an export of 4 KiB."""
    with exported(s, exportable(s)) as external:
        external.bytes = 1 << 30
        out = ffi.new("uint64_t *")
        status = s.api.mem.import_memory(s.handle, external, out)
        s.refuses(status, (BAD, abi.BP_OUT_OF_MEMORY), "importing more than was exported")


def _external(s: Subject) -> tuple[Any, Any]:
    external = new("bp_external")
    buffer = exportable(s)
    s.works(s.api.mem.export_memory(s.handle, buffer.handle, external), "mem.export_memory")
    return external, buffer


def _import(s: Subject, external: Any) -> int:
    try:
        return int(s.api.mem.import_memory(s.handle, external, ffi.new("uint64_t *")))
    finally:
        os.close(int(external.value))


structs.add(
    structs.StructRule("import_memory", "bp_external", _external, _import, ("export_memory",))
)
