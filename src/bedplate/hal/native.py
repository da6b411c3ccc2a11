"""cffi in ABI mode: the types of `hal.h`, and the loader library.

The GIL is released in every call. A struct made here carries its head, so a
caller only fills what it means.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cffi import FFI

from bedplate.core.library import load
from bedplate.hal import abi
from bedplate.hal.errors import HalError, InvalidArgument, from_status

ERROR_BYTES = 512

ffi = FFI()
ffi.cdef(abi.CDEF)


@functools.cache
def library() -> Any:
    """The loader, `libbedplate_hal.so`; EnvironmentLacks when it does not load."""
    return load(ffi, "hal", "the HAL's loader", "hal.loader_missing")


def new(kind: str, /, **fields: Any) -> Any:
    """A zeroed `kind *` with its head filled, then `fields`.

    Raises InvalidArgument for a number that its field cannot hold.
    """
    made = ffi.new(f"{kind} *")
    made.head.struct_version = 1
    made.head.struct_size = abi.LAYOUT[kind][0]
    for name, value in fields.items():
        try:
            setattr(made, name, value)
        except OverflowError as cause:
            raise _too_large(f"{name} {value}", cause) from cause
    return made


def array(kind: str, values: Sequence[int], what: str) -> Any:
    """`kind[]` of at least one; InvalidArgument for a value that `kind` cannot hold."""
    try:
        return ffi.new(f"{kind}[]", [*values, 0])
    except OverflowError as cause:
        raise _too_large(f"{what} {list(values)}", cause) from cause


def u64(value: int, what: str) -> int:
    """The value itself; InvalidArgument when a uint64 cannot hold it."""
    if not 0 <= value < 1 << 64:
        raise InvalidArgument(f"the {what} {value}", remedy="give a number from 0 below 2^64")
    return value


def _too_large(words: str, cause: OverflowError) -> InvalidArgument:
    return InvalidArgument(f"the {words}: {cause}")


def text(value: str) -> tuple[Any, Any]:
    """A `bp_text *` and the bytes it points to; keep both."""
    raw = utf8(value)
    data = ffi.new("char[]", raw)
    return ffi.new("bp_text *", {"data": data, "length": len(raw)}), data


def utf8(value: str) -> bytes:
    """The bytes of a text; InvalidArgument for one that is none, with half a surrogate pair."""
    try:
        return value.encode()
    except UnicodeEncodeError as cause:
        raise InvalidArgument(f"{value!r} is no text: {cause.reason}") from cause


def read_text(value: Any) -> str:
    """A `bp_text` as str; wrong UTF-8 is shown, not refused."""
    if value.data == ffi.NULL:
        return ""
    return bytes(ffi.buffer(value.data, value.length)).decode(errors="replace")


def _take(function: Any) -> str:
    buffer = ffi.new("char[]", ERROR_BYTES)
    if function(buffer, ERROR_BYTES, ffi.new("uint64_t *")) != abi.BP_OK:
        return ""
    return bytes(ffi.string(buffer)).decode(errors="replace")


def failure(api: Any, status: int, *, asynchronous: bool = False) -> HalError:
    """The typed error behind a negative status of this thread's last call.

    The loader is asked first: it speaks for the stubs, and forgets what it
    has told. `api` is null for a failure of the loader itself.
    """
    said = _take(library().bp_hal_last_error)
    if not said and api != ffi.NULL:
        said = _take(api.core.last_error)
    return from_status(status, said, asynchronous=asynchronous)


def load_backend(path: Path, descriptor: int, host: Any) -> Any:
    """`const bp_api *` of an open backend file that may be trusted; complete.

    `host` is a `bp_host *` that lives until the process ends.

    Raises the typed error of whatever the loader or the backend refused.
    """
    raw = ffi.new("char[]", str(path).encode())
    options = new("bp_load_options")
    options.path.data, options.path.length = raw, len(raw) - 1
    options.descriptor, options.host = descriptor, host
    out = ffi.new("const bp_api **")
    status = library().bp_hal_load(options, out)
    if status != abi.BP_OK:
        raise failure(ffi.NULL, status)
    return out[0]
