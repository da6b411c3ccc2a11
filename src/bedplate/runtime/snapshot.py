"""PyTorch's memory snapshots, in and out.

A snapshot is a pickle. Reading one runs none of it: only plain containers and
scalars are built, anything that asks for code is refused. What is read are the
device's trace events; what is written opens in PyTorch's viewer.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from bedplate.core import files
from bedplate.runtime.errors import TraceInvalid

if TYPE_CHECKING:
    from bedplate.runtime.allocator import Allocator
    from bedplate.runtime.trace import Trace

_ACTION = {"alloc": 1, "free_requested": 2}


class _Plain(pickle.Unpickler):
    """Builds dicts, lists, tuples, strings and numbers, nothing else."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")

    def persistent_load(self, pid: Any) -> NoReturn:
        raise pickle.UnpicklingError("it asks for an object outside the file")


def read_snapshot(raw: bytes, name: str = "the snapshot") -> Trace:
    """The requests of a snapshot's first device that has any, in order.

    Raises TraceInvalid for a pickle that is more than plain data, that is cut,
    or that is not a snapshot.
    """
    from bedplate.runtime.trace import RECORD

    try:
        # A first look, without building anything, bounds what building can do.
        for opcode, _, _ in pickletools.genops(raw):
            if opcode.name in ("GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD", "INST", "OBJ"):
                raise pickle.UnpicklingError(f"it holds code ({opcode.name})")
        data = _Plain(io.BytesIO(raw)).load()
        traces: list[list[dict[str, Any]]] = data["device_traces"]
        events = next((trace for trace in traces if trace), [])
        rows = []
        first = int(events[0].get("time_us", 0)) if events else 0
        streams: dict[int, int] = {}
        live: set[int] = set()
        for event in events:
            action = _ACTION.get(event["action"])
            if action is None:
                continue
            address, size = int(event["addr"]), int(event["size"])
            if (action == 1) == (address in live):
                # The ring of events began in the middle of a block's life.
                continue
            (live.add if action == 1 else live.discard)(address)
            stream = streams.setdefault(int(event["stream"]), len(streams))
            time_ns = (int(event.get("time_us", first)) - first) * 1000
            rows.append((time_ns, address, size, stream, action, 2, 0, 0))
    except (pickle.UnpicklingError, EOFError, KeyError, TypeError, ValueError, IndexError,
            AttributeError, OverflowError, MemoryError, RecursionError) as cause:  # fmt: skip
        reason = f"it has no {cause}" if isinstance(cause, KeyError) else cause
        raise TraceInvalid(
            f"{name} is no memory snapshot: {reason}",
            remedy="make one with torch.cuda.memory._dump_snapshot",
        ) from cause
    return np.array(rows, RECORD)


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
