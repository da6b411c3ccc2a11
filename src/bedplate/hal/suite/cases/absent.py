"""What a device that does not claim a capability must say: UNSUPPORTED, and no more."""

from __future__ import annotations

from collections.abc import Callable

from bedplate.hal import abi
from bedplate.hal.batch import Batch
from bedplate.hal.native import ffi, new
from bedplate.hal.suite.registry import Case, case, register
from bedplate.hal.suite.subject import Subject, expect

UNSUPPORTED = abi.BP_UNSUPPORTED
_SOURCES = {
    "ptx": (abi.BP_MODULE_PTX, b".version 7.0\n.target sm_70\n.address_size 64\n"),
    "cubin": (abi.BP_MODULE_CUBIN, b"\x7fELF"),
    "spirv": (abi.BP_MODULE_SPIRV, b"\x03\x02\x23\x07"),
    "opencl_c": (abi.BP_MODULE_OPENCL_C, b"kernel void nothing() {}"),
}


def _refuses_source(kind: int, image: bytes) -> Callable[[Subject], None]:
    def body(s: Subject) -> None:
        data, out = ffi.new("char[]", image), ffi.new("uint64_t *")
        source = new("bp_module_source", kind=kind, data=data, bytes=len(image))
        s.refuses(s.api.module.load(s.handle, source, out), UNSUPPORTED, "module.load")

    return body


for _name, (_kind, _image) in _SOURCES.items():
    register(
        Case(
            name=f"module_{_name}.load_is_unsupported",
            capability=f"module_{_name}",
            polarity="absent",
            tier="quick",
            body=_refuses_source(_kind, _image),
            doc=f"{_name} is refused by a device that does not claim it.",
        )
    )


@case("capture", "absent")
def capture_is_unsupported(s: Subject) -> None:
    """All four functions."""
    queue, out = s.queue(), ffi.new("uint64_t *")
    table = s.api.capture
    s.refuses(table.begin(s.handle, queue), UNSUPPORTED, "capture.begin")
    s.refuses(table.end(s.handle, queue, out), UNSUPPORTED, "capture.end")
    status = table.launch(s.handle, queue, 1, new("bp_batch"))
    s.refuses(status, UNSUPPORTED, "capture.launch")
    s.refuses(table.release(s.handle, 1), UNSUPPORTED, "capture.release")


@case("address_reserve", "absent")
def address_space_is_unsupported(s: Subject) -> None:
    """reserve, map and unmap."""
    out, span = ffi.new("uint64_t *"), ffi.new("bp_range *")
    s.refuses(s.api.mem.reserve(s.handle, 4096, 4096, out), UNSUPPORTED, "mem.reserve")
    s.refuses(s.api.mem.map(s.handle, 4096, span), UNSUPPORTED, "mem.map")
    s.refuses(s.api.mem.unmap(s.handle, 4096, 4096), UNSUPPORTED, "mem.unmap")


@case("export_memory", "absent")
def export_is_unsupported(s: Subject) -> None:
    """Of a live memory; and memory that could be is not made."""
    buffer, out, made = s.memory(64), new("bp_external"), ffi.new("uint64_t *")
    status = s.api.mem.export_memory(s.handle, buffer.handle, out)
    s.refuses(status, UNSUPPORTED, "mem.export_memory")
    info = new("bp_memory_info", bytes=64, flags=abi.BP_MEMORY_EXPORTABLE)
    # A backend of 0.2 knows no flags: then they are an unknown tail.
    wanted = (UNSUPPORTED, abi.BP_INVALID_EXT)
    s.refuses(s.api.mem.create(s.handle, info, made), wanted, "mem.create of exportable memory")


@case("import_memory", "absent")
def import_is_unsupported(s: Subject) -> None:
    """Of a descriptor that does not exist."""
    out = ffi.new("uint64_t *")
    external = new("bp_external", kind=1, value=(1 << 31) - 1, bytes=4096)
    status = s.api.mem.import_memory(s.handle, external, out)
    s.refuses(status, UNSUPPORTED, "mem.import_memory")


@case("pin_host", "absent")
def pinning_is_unsupported(s: Subject) -> None:
    """mem.pin of good memory."""
    storage, out = ffi.new("char[]", 64), ffi.new("uint64_t *")
    s.refuses(s.api.mem.pin(s.handle, storage, 64, out), UNSUPPORTED, "mem.pin")


@case("tensor_map", "absent")
def tensor_maps_are_absent(s: Subject) -> None:
    """ext does not know the table."""
    data = ffi.new("char[]", b"bp.tensor_map.1")
    name = ffi.new("bp_text *", {"data": data, "length": len(data) - 1})
    expect(s.api.ext(name) == ffi.NULL, "ext knows bp.tensor_map.1, which is not claimed")


@case("dynamic_shared", "absent")
def shared_memory_is_unsupported(s: Subject) -> None:
    """A launch that asks for some is refused."""
    batch = Batch()
    batch.launch(s.kernel("nothing"), (1,), shared_bytes=64)
    s.refused_batch(batch, (UNSUPPORTED, abi.BP_INVALID_ARGUMENT), "a launch with shared memory")
