"""Memory that crosses to another owner: another open, process or device.

    buffer = first.allocate(1 << 20, exportable=True)
    descriptor = export_memory(buffer)      # yours to send, and to close
    same = import_memory(second, descriptor, buffer.bytes)

Where `second` is another device, a copy between `same` and its own memory is
a copy between the two devices. The bytes live until the last owner releases
them; nothing orders the owners' work but their own timelines and waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.hal import abi
from bedplate.hal.buffer import Buffer
from bedplate.hal.errors import InvalidArgument
from bedplate.hal.native import ffi, new

if TYPE_CHECKING:
    from bedplate.hal.device import Device


def export_memory(buffer: Buffer) -> int:
    """A file descriptor of the memory's bytes; the caller closes it.

    Raises InvalidArgument for memory that was not allocated `exportable`,
    Unsupported on a device that exports none.
    """
    device, out = buffer.device, new("bp_external")
    device.check(device.api.mem.export_memory(device.handle, buffer.handle, out))
    return int(out.value)


def import_memory(device: Device, descriptor: int, bytes: int) -> Buffer:
    """The same bytes as a buffer of `device`; the descriptor stays the caller's.

    Raises InvalidArgument for a descriptor of something else or for more
    bytes than there are, Unsupported when the device cannot reach them.
    """
    if descriptor < 0 or not 0 < bytes < 1 << 63:
        raise InvalidArgument(f"{bytes} bytes behind descriptor {descriptor}")
    external = new("bp_external", kind=abi.BP_EXTERNAL_FILE_DESCRIPTOR)
    external.value, external.bytes = descriptor, bytes
    out = ffi.new("uint64_t *")
    device.check(device.api.mem.import_memory(device.handle, external, out))
    return Buffer(device, int(out[0]), bytes, 0)
