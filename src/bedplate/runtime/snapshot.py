"""PyTorch's memory snapshots, in and out.

A snapshot is a pickle. Reading one runs none of it: a first look over its opcodes
refuses code and what would take more memory than the file is worth, then only plain
containers and scalars are built. What is read are the events of one device; what is
written opens in PyTorch's viewer.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from bedplate.core import files
from bedplate.runtime.errors import TraceInvalid

if TYPE_CHECKING:
    from bedplate.runtime.allocator import Allocator
    from bedplate.runtime.trace import Trace

_ACTION = {"alloc": 1, "free_requested": 2}
_REMEDY = "make one with torch.cuda.memory._dump_snapshot"
MOST_OPCODES = 50_000_000
"""Of a pickle; an event of PyTorch's takes about 30, with its frames some hundred."""
_CODE = {"GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX"}
_CODE |= {"EXT1", "EXT2", "EXT4", "PERSID", "BINPERSID"}


class _Plain(pickle.Unpickler):
    """Builds dicts, lists, tuples, strings and numbers, nothing else."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")

    def persistent_load(self, pid: Any) -> NoReturn:
        raise pickle.UnpicklingError("it asks for an object outside the file")


def read_snapshot(
    raw: bytes, name: str = "the snapshot", told: Callable[[str], None] = lambda _: None
) -> Trace:
    """The requests of a snapshot's first device that has any, in order.

    `told` hears what is left out: other devices, and blocks that were live before the
    recording began. Raises TraceInvalid for a pickle that is more than plain data, that
    is cut, that is not a snapshot or has no history, and for an event that `records`
    refuses.
    """
    try:
        _look(raw)
        data = _Plain(io.BytesIO(raw)).load()
    except (pickle.UnpicklingError, EOFError, KeyError, TypeError, ValueError, IndexError,
            AttributeError, OverflowError, MemoryError, RecursionError) as cause:  # fmt: skip
        raise _none(name, str(cause)[:200] or type(cause).__name__) from cause
    devices = _field(data, "device_traces", list, name, "it")
    counts = [
        len(trace) if isinstance(trace, list) else _wrong(name, f"device {number}", "list")
        for number, trace in enumerate(devices)
    ]
    device = next((number for number, count in enumerate(counts) if count), None)
    if device is None:
        raise TraceInvalid(
            f"{name} has no history of requests",
            remedy="call torch.cuda.memory._record_memory_history() before the job",
        )
    for number, count in enumerate(counts):
        if count and number != device:
            told(f"{name}: device {number} is left out, {count:,} events; device {device} is read")
    return _events(devices[device], data, name, device, told)


def _events(
    events: list[Any], data: dict[str, Any], name: str, device: int, told: Callable[[str], None]
) -> Trace:
    from bedplate.runtime.records import Records

    records = Records(name, "event")
    streams: dict[int, int] = {}
    before, before_bytes = 0, 0
    time_us = 0
    for number, event in enumerate(events, start=1):
        where = f"event {number}"
        action = _ACTION.get(_field(event, "action", str, name, where))
        if action is None:
            continue
        address = _field(event, "addr", int, name, where)
        size = _field(event, "size", int, name, where)
        stream = _field(event, "stream", int, name, where)
        if "time_us" in event:
            time_us = _field(event, "time_us", int, name, where)
        if action == 2 and not records.knows(address):
            before, before_bytes = before + 1, before_bytes + size
            continue
        lane = streams.setdefault(stream, len(streams))
        records.add(number, time_us * 1000, address, size, lane, action)
    for block, size in _live(data, device):
        if not records.knows(block):
            before, before_bytes = before + 1, before_bytes + size
    if before:
        told(
            f"{name}: {before:,} blocks with {before_bytes:,} bytes were live before the "
            "recording began and are left out"
        )
    return records.trace()


def _look(raw: bytes) -> None:
    """A first look, without building anything, bounds what building can do."""
    for count, (opcode, argument, _) in enumerate(pickletools.genops(raw)):
        if opcode.name in _CODE:
            raise pickle.UnpicklingError(f"it holds code ({opcode.name})")
        if opcode.name.endswith("PUT") and int(argument or 0) > len(raw):
            # The memo is an array up to the index: 11 bytes took 2.1 GB.
            raise pickle.UnpicklingError(
                f"it keeps number {argument} of its objects and has {len(raw):,} bytes"
            )
        if count >= MOST_OPCODES:
            raise pickle.UnpicklingError(f"it has more than {MOST_OPCODES:,} opcodes; cut it")


def _live(data: dict[str, Any], device: int) -> Iterator[tuple[int, int]]:
    """Blocks of a device that its segments call active: address and bytes."""
    for segment in _list(data, "segments"):
        if not isinstance(segment, dict) or segment.get("device", 0) != device:
            continue
        for block in _list(segment, "blocks"):
            if not isinstance(block, dict) or block.get("state") != "active_allocated":
                continue
            address, size = block.get("address"), block.get("size")
            if isinstance(address, int) and isinstance(size, int):
                yield address, size


def _list(record: dict[str, Any], key: str) -> list[Any]:
    found = record.get(key)
    return found if isinstance(found, list) else []


def _field(record: Any, key: str, kind: type, name: str, where: str) -> Any:
    """A value of exactly this kind: the hash of a crafted tuple may take for ever."""
    if not isinstance(record, dict):
        _wrong(name, where, "dict")
    if key not in record:
        raise _none(name, f"{where} has no {key!r}")
    if type(record[key]) is not kind:
        _wrong(name, f"{where}, {key}", kind.__name__)
    return record[key]


def _wrong(name: str, where: str, wanted: str) -> NoReturn:
    raise _none(name, f"{where} is no {wanted}")


def _none(name: str, reason: str) -> TraceInvalid:
    return TraceInvalid(f"{name} is no memory snapshot: {reason}", remedy=_REMEDY)


_STATE = {
    2: "active_allocated",
    4: "active_pending_free",
}


def snapshot(memory: Allocator) -> dict[str, Any]:
    """The allocator's segments and blocks in the form of PyTorch's snapshots.

    A mapped pool shows one segment for each run of addresses with memory.
    """
    segments: list[dict[str, Any]] = []
    current: dict[str, Any] | None = None
    for seen in memory.blocks():
        if seen.first or seen.state == 5:
            current = None
        if seen.state == 5:
            continue
        if current is None:
            current = {
                "device": 0,
                "address": int(seen.address),
                "total_size": 0,
                "allocated_size": 0,
                "active_size": 0,
                "requested_size": 0,
                "stream": int(seen.stream),
                "segment_type": "large" if seen.side else "small",
                "segment_pool_id": (0, int(seen.pool)),
                "is_expandable": False,
                "frames": [],
                "blocks": [],
            }
            segments.append(current)
        state = _STATE.get(seen.state, "inactive")
        size = int(seen.bytes)
        current["total_size"] += size
        current["active_size"] += size if state != "inactive" else 0
        if state == "active_allocated":
            current["allocated_size"] += size
            current["requested_size"] += int(seen.requested)
        current["blocks"].append(
            {
                "address": int(seen.address),
                "size": size,
                "requested_size": int(seen.requested) if state == "active_allocated" else 0,
                "state": state,
                "frames": [],
            }
        )
    return {
        "segments": segments,
        "device_traces": [[]],
        "allocator_settings": {"backend": "bedplate"},
    }


def write_snapshot(path: str | Path, memory: Allocator) -> None:
    """Write `snapshot` for PyTorch's viewer. Written beside and renamed."""
    files.replace(Path(path), pickle.dumps(snapshot(memory), protocol=4))
