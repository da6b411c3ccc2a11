"""Machines in Python behind a backend in C: `register` makes one known under a backend's name.

The backend (a shim, `native/hal/inprocess`) asks the host for the service
`bp.provider.1:<name>` and gets a table of functions. Python names devices and
compiles modules; what it hands over are addresses of compiled entries, so a
launch runs no Python and needs no GIL. Without a registered machine the
backend has no devices and says so.

`BUILT_IN` machines are made when their backend first asks, unless one was
registered under the name before.

A child process, such as a conformance worker, has no machine of ours. `origin`
says how it makes one: `package.module:function`, called without arguments.
"""

from __future__ import annotations

import functools
import importlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from bedplate.core.errors import BedplateError
from bedplate.hal import abi
from bedplate.hal.errors import BY_STATUS, HalError, InvalidArgument
from bedplate.hal.native import ffi, new, read_text

SERVICE = "bp.provider.1:"
BUILT_IN = {"simt": "bedplate.hal.simt:Simt"}
"""Where our own machines are made, by the backend's name."""
_CAPABILITIES = {
    name.removeprefix("BP_CAP_").lower(): number for number, name in abi.CAPABILITY_NAMES.items()
}
_KINDS = {
    number: name.removeprefix("BP_MODULE_").lower()
    for number, name in abi.MODULE_KIND_NAMES.items()
}


@dataclass(frozen=True, slots=True)
class ProvidedDevice:
    """A device of a machine. `driver` is part of a certificate's key: it names the machine's code.

    `capabilities` maps names as in `bedplate hal list` to values; what queues
    and memory can do is true of every shim and need not be said.
    """

    name: str
    driver: str
    memory_bytes: int
    capabilities: Mapping[str, int] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Source:
    """What module.load was given: `native` has a path, the other kinds have data."""

    kind: str
    path: Path | None
    data: bytes


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """What a kernel asks of its launches; `block` is the only block that it takes."""

    max_threads: int
    arguments: int
    parameter_bytes: int
    shared_bytes: int = 0
    block: tuple[int, int, int] | None = None


@dataclass(frozen=True, slots=True)
class NativeCode:
    """Compiled code: kernel names to addresses of `bp_native_entry` functions.

    With `facts`, which then has every kernel, launches that do not fit are refused when they
    are submitted.

    `keep` holds whatever must live while the code may run; it is let go when
    no launch can know it any more.
    """

    kernels: Mapping[str, int]
    isa: str = "generic"
    keep: object = None
    facts: Mapping[str, KernelFacts] | None = None


class Provider(Protocol):
    """A machine. Methods may be called from any thread; what they raise is told to the caller."""

    def devices(self) -> Sequence[ProvidedDevice]:
        """Its devices; always the same number."""

    def load(self, index: int, source: Source) -> NativeCode:
        """Compile for a device. Raises Unsupported for a kind that it does not know."""


_QUEUES = dict.fromkeys(
    ("host_visible", "device_address", "timeline_wait_host", "timestamp", "capture"), 1
)
"""What the shim can do whatever the machine is."""

_BYTES = frozenset({"dynamic_shared"})
_COUNTS = frozenset({"clusters"})
_registered: dict[str, _Table] = {}
_kept: list[object] = []
"""Tables and texts that a backend may still point to; they stay until the process ends."""


def register(name: str, provider: Provider, *, origin: str | None = None) -> None:
    """Make a machine known under a backend's name, before or after the backend is loaded.

    Raises InvalidArgument when the name is taken.
    """
    if name in _registered:
        raise InvalidArgument(f"a machine is registered for {name} already")
    _registered[name] = _Table(provider, origin)
    _kept.append(_registered[name])


def unregister(name: str) -> None:
    """Take a machine away: new opens and loads are UNAVAILABLE; what is open keeps working."""
    _registered.pop(name, None)


def registered(name: str) -> bool:
    """Whether a machine is known under that name."""
    return name in _registered or name in BUILT_IN


def origins() -> list[str]:
    """`name=package.module:function` of each machine that a child must be told of."""
    return [
        f"{name}={table.origin}"
        for name, table in _registered.items()
        if table.origin and BUILT_IN.get(name) != table.origin
    ]


def register_origin(text: str) -> None:
    """Register what `origins` said. Raises InvalidArgument when it cannot be made."""
    name, _, origin = text.partition("=")
    module, _, function = origin.partition(":")
    try:
        make: Callable[[], Provider] = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as cause:
        raise InvalidArgument(f"there is no machine at {text!r}: {cause}") from cause
    try:
        machine = make()
    except Exception as cause:
        raise InvalidArgument(
            f"the machine at {text!r} cannot be made: {type(cause).__name__}: {cause}"
        ) from cause
    if not callable(getattr(machine, "devices", None)) or not callable(
        getattr(machine, "load", None)
    ):
        raise InvalidArgument(f"what {text!r} makes is no machine: it lacks devices or load")
    register(name, machine, origin=origin)


class _Table:
    """A provider as the `bp_provider` that C sees."""

    def __init__(self, provider: Provider, origin: str | None) -> None:
        self.origin = origin
        self._provider = provider
        self._local = threading.local()
        self._loaded: dict[int, tuple[Any, NativeCode]] = {}
        self._lock = threading.Lock()
        self._next = 1
        self.struct = new("bp_provider")
        for function in ("enumerate", "properties", "capabilities", "load", "unload"):
            self._set(function, self._guarded(getattr(self, f"_{function}")))
        self._set("last_error", self._last_error)

    def _set(self, name: str, function: Callable[..., int]) -> None:
        kind = ffi.typeof("bp_provider").fields
        found = next(part.type for field, part in kind if field == name)
        callback = ffi.callback(found, function, error=abi.BP_INTERNAL)
        _kept.append(callback)
        setattr(self.struct, name, callback)

    def _guarded(self, function: Callable[..., None]) -> Callable[..., int]:
        """A function whose exceptions become a status and this thread's sentence."""

        def guarded(_user: Any, *arguments: Any) -> int:
            try:
                function(*arguments)
            except BedplateError as error:
                self._local.text = error.message
                return _status(error)
            except Exception as error:
                self._local.text = f"the machine failed: {type(error).__name__}: {error}"
                return abi.BP_INTERNAL
            return abi.BP_OK

        return guarded

    def _device(self, index: int) -> ProvidedDevice:
        return self._provider.devices()[index]

    def _enumerate(self, count: Any) -> None:
        count[0] = len(self._provider.devices())

    def _properties(self, index: int, out: Any) -> None:
        device = self._device(index)
        out.name, out.driver = _text(device.name), _text(device.driver)
        out.memory_bytes = device.memory_bytes
        pairs = tuple(device.properties.items())
        out.properties, out.property_count = _properties(pairs), len(pairs)

    def _capabilities(self, index: int, out: Any, capacity: int, count: Any) -> None:
        claims = {**_QUEUES, **self._device(index).capabilities}
        for place, (name, value) in enumerate(claims.items()):
            if place < capacity:
                kind = abi.BP_CAPABILITY_FLAG
                if name in _BYTES:
                    kind = abi.BP_CAPABILITY_BYTES
                elif name in _COUNTS:
                    kind = abi.BP_CAPABILITY_COUNT
                out[place].id, out[place].type = _CAPABILITIES[name], kind
                out[place].value = value
        count[0] = len(claims)

    def _load(self, index: int, given: Any, module: Any, token: Any) -> None:
        path = read_text(given.path)
        data = bytes(ffi.buffer(given.data, given.bytes)) if given.data != ffi.NULL else b""
        source = Source(_KINDS.get(given.kind, "?"), Path(path) if path else None, data)
        code = self._provider.load(index, source)
        kernels = ffi.new("bp_native_kernel[]", len(code.kernels))
        for place, (name, address) in enumerate(code.kernels.items()):
            kernels[place].name = _text(name)
            kernels[place].entry = ffi.cast("bp_native_entry", address)
        made = new("bp_native_module", kernel_count=len(code.kernels))
        made.isa, made.kernels = _text(code.isa), kernels
        facts = ffi.NULL
        if code.facts is not None:
            facts = ffi.new("bp_native_facts[]", [_fact(code.facts[name]) for name in code.kernels])
            made.facts = facts
        with self._lock:
            token[0] = self._next
            self._loaded[self._next] = ((made, kernels, facts), code)
            self._next += 1
        module[0] = made

    def _unload(self, token: int) -> None:
        with self._lock:
            self._loaded.pop(token, None)

    def _last_error(self, _user: Any, buffer: Any, capacity: int, length: Any) -> int:
        raw = getattr(self._local, "text", "").encode()
        if length != ffi.NULL:
            length[0] = len(raw)
        if buffer != ffi.NULL and capacity:
            cut = raw[: capacity - 1] + b"\0"
            ffi.memmove(buffer, cut, len(cut))
        return abi.BP_OK


def _fact(facts: KernelFacts) -> dict[str, Any]:
    """A `bp_native_facts`."""
    return {
        "max_threads_per_block": facts.max_threads,
        "argument_count": facts.arguments,
        "parameters_bytes": facts.parameter_bytes,
        "static_shared_bytes": facts.shared_bytes,
        "block": facts.block or (0, 0, 0),
    }


def _status(error: BedplateError) -> int:
    if isinstance(error, HalError):
        for status, kind in BY_STATUS.items():
            if type(error) is kind:
                return status
    return abi.BP_INTERNAL


_texts: dict[str, Any] = {}


@functools.cache
def _properties(pairs: tuple[tuple[str, str], ...]) -> Any:
    """A `bp_property *` that lives until the process ends."""
    return ffi.new("bp_property[]", [{"key": _text(k), "value": _text(v)} for k, v in pairs])


def _text(value: str) -> Any:
    """A `bp_text` that lives until the process ends."""
    if value not in _texts:
        raw = value.encode()
        _texts[value] = (ffi.new("char[]", raw), len(raw))
    data, length = _texts[value]
    return {"data": data, "length": length}


def _service(_user: Any, name: Any) -> Any:
    wanted = read_text(name[0]) if name != ffi.NULL else ""
    table = _table(wanted.removeprefix(SERVICE)) if wanted.startswith(SERVICE) else None
    return ffi.NULL if table is None else ffi.cast("void *", table.struct)


_making = threading.RLock()


def _table(name: str) -> _Table | None:
    """The machine of that name, made now if it is one of ours."""
    with _making:
        if name not in _registered and name in BUILT_IN:
            register_origin(f"{name}={BUILT_IN[name]}")
        return _registered.get(name)


_callback = ffi.callback("const void *(void *, const bp_text *)", _service, error=ffi.NULL)
HOST = new("bp_host")
"""The host that Python is: the loader's log, and our machines as services."""
HOST.service = _callback
