"""What a device costs to use: calls, launches, bandwidth, beside the native way in one run.

Every quantity and its peer run in the same process, round by round in random
order, and are compared by the median of the rounds' ratios. A peer is the
native way to the same end: for the processor a plain function call, memcpy and
memset. A backend without one is measured alone, and the record says why.

Calls are measured from C by `bedplate_hal_bench`, which lies beside the loader,
and through cffi here. Bandwidth is by the device's clock where it has one.
"""

from __future__ import annotations

import ctypes
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bedplate
from bedplate.core.machine import MachineFacts, TreeFacts, machine_facts, tree_facts
from bedplate.core.measurement import MeasuredDevice, Measurement, measured
from bedplate.core.paths import native_library_dir
from bedplate.core.samples import Better, Ratio, Summary, compare, summarise
from bedplate.core.seeds import streams
from bedplate.hal.abi import ABI_VERSION
from bedplate.hal.batch import Batch
from bedplate.hal.buffer import Buffer
from bedplate.hal.device import Device
from bedplate.hal.errors import HalError, Unsupported
from bedplate.hal.native import ffi
from bedplate.hal.queue import Queue
from bedplate.hal.timer import DeviceTimer

BANDWIDTH_BYTES = 64 << 20
"""Larger than the last-level cache of any device we know (H200: 50 MiB)."""

PROCESSOR = frozenset({"cpu", "liar", "shuffle"})
"""Backends whose memory is the process's, so that memcpy and memset are their peers."""

COMMANDS = 300
QUANTITIES = {
    "call_c": "one `timeline.query` through the table, from C",
    "call_cffi": "one `timeline.query` from Python",
    "launch_rate": f"launches of an empty kernel of one block, in a batch of {COMMANDS}, "
    "until it is done",
    "launch_marginal": f"what one more such launch costs, from batches of {COMMANDS} and of 1,200",
    "launch_one": "one such launch alone, submitted and waited for",
    "copy_bandwidth": "a copy of 64 MiB on the device",
    "fill_bandwidth": "a fill of 64 MiB",
}
"""What each name stands for."""

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Quantity:
    """One line: samples of ours, of the peer round by round or None, and what it means."""

    name: str
    unit: str
    better: Better
    ours: Sequence[float]
    peer: Sequence[float] | None
    peer_name: str
    conditions: dict[str, Any]


def measure(device: Device, *, rounds: int = 20, seed: int = 1) -> list[Measurement]:
    """All quantities of a device as measurement/1; one that cannot be has status not_run.

    `rounds` of each; takes some seconds. The device must be idle. Raises what
    the device's work raises.
    """
    tree = tree_facts(Path(__file__).resolve().parents[3])
    facts = tree or TreeFacts(f"v{bedplate.__version__}", dirty=False)
    made = []
    with device.queue() as queue:
        for name, unit, run in _quantities(device, queue, rounds, seed):
            try:
                made += [_record(device, facts, rounds, seed, one) for one in run()]
            except (Unsupported, FileNotFoundError) as error:
                made.append(_not_run(device, facts, name, unit, str(error)))
    return made


def _quantities(
    device: Device, queue: Queue, rounds: int, seed: int
) -> list[tuple[str, str, Callable[[], list[Quantity]]]]:
    return [
        ("call_c", "ns", lambda: _from_c(device, rounds)),
        ("call_cffi", "ns", lambda: [_cffi(device, rounds)]),
        ("copy_bandwidth", "bytes/s", lambda: [_copy(device, queue, rounds, seed)]),
        ("fill_bandwidth", "bytes/s", lambda: [_fill(device, queue, rounds, seed)]),
    ]


def _from_c(device: Device, rounds: int) -> list[Quantity]:
    """Calls and launches of the program; each of its rounds holds one of every kind."""
    libraries = native_library_dir()
    if device.info.index or "module_native" not in device.info.capabilities:
        raise Unsupported("the C program launches native kernels on device 0 only")
    command: list[Path | str] = [libraries / "bedplate_hal_bench", device.backend.path]
    command += [libraries / "conform" / "bedplate_hal_conform.so", str(rounds)]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    if told.returncode:
        raise HalError(f"bedplate_hal_bench failed: {told.stderr.strip()}", code="hal.bench")
    values: dict[str, list[float]] = defaultdict(list)
    for line in told.stdout.splitlines():
        name, _, value = line.partition(" ")
        values[name].append(float(value))
    # Far enough apart that the one wake of each batch does not decide the difference.
    pairs = zip(values["command_1200"], values["command_300"], strict=True)
    marginal = [max((1200 * many - 300 * few) / 900, 0.001) for many, few in pairs]
    rate = [1e9 / cost for cost in values["command_300"]]
    direct = "local function call"
    return [
        Quantity(
            "call_c",
            "ns",
            "lower",
            values["table_call"],
            values["direct_call"],
            direct,
            {"function": "timeline.query"},
        ),
        Quantity("launch_rate", "1/s", "higher", rate, None, "", {"commands": COMMANDS}),
        Quantity(
            "launch_marginal",
            "ns",
            "lower",
            marginal,
            None,
            "",
            {"from_commands": COMMANDS, "to_commands": 1200},
        ),
        Quantity("launch_one", "ns", "lower", values["one_launch"], None, "", {"commands": 1}),
    ]


def _cffi(device: Device, rounds: int) -> Quantity:
    """timeline.query from Python, per call of a thousand."""
    timeline, out = device.timeline(), ffi.new("uint64_t *")
    query, handle, number = device.api.timeline.query, device.handle, timeline.handle
    samples = []
    for _ in range(rounds):
        start = time.monotonic_ns()
        for _ in range(1000):
            query(handle, number, out)
        samples.append((time.monotonic_ns() - start) / 1000)
    conditions = {"function": "timeline.query", "mode": "ABI"}
    return Quantity("call_cffi", "ns", "lower", samples, None, "", conditions)


def _copy(device: Device, queue: Queue, rounds: int, seed: int) -> Quantity:
    source, target = (device.allocate(BANDWIDTH_BYTES) for _ in range(2))

    def native() -> object:
        return ctypes.memmove(_address(target), _address(source), BANDWIDTH_BYTES)

    return _bandwidth(
        "copy_bandwidth",
        queue,
        lambda batch: batch.copy(target, source),
        (native, "memcpy"),
        rounds,
        seed,
    )


def _fill(device: Device, queue: Queue, rounds: int, seed: int) -> Quantity:
    target = device.allocate(BANDWIDTH_BYTES)

    def native() -> object:
        return ctypes.memset(_address(target), 0x5A, BANDWIDTH_BYTES)

    return _bandwidth(
        "fill_bandwidth",
        queue,
        lambda batch: batch.fill(target, 0x3F800000),
        (native, "memset"),
        rounds,
        seed,
    )


def _address(buffer: Buffer) -> int:
    return int(buffer.view("u1").ctypes.data)


def _bandwidth(
    name: str,
    queue: Queue,
    record: Callable[[Batch], object],
    native: tuple[Callable[[], object], str],
    rounds: int,
    seed: int,
) -> Quantity:
    """Bytes a second by the device's clock; of the peer by the host's, which is the same there."""
    timer = DeviceTimer(queue)
    has_peer = queue.device.info.backend in PROCESSOR
    (order,) = streams(seed, 1)
    ours: list[float] = []
    theirs: list[float] = []
    for number in range(rounds + 1):
        first = int(order.integers(2))
        for turn in (first, 1 - first):
            if turn == 0:
                cost = timer.measure(record, rounds=1, warm_up=0)[0]
            elif has_peer:
                start = time.monotonic_ns()
                native[0]()
                cost = float(time.monotonic_ns() - start)
            else:
                continue
            if number:
                (ours if turn == 0 else theirs).append(BANDWIDTH_BYTES * 1e9 / max(cost, 1.0))
    peer = theirs if has_peer else None
    conditions = {"bytes": BANDWIDTH_BYTES, "caches": "warm as the round before left them"}
    return Quantity(name, "bytes/s", "higher", ours, peer, native[1], conditions)


def _common(device: Device, facts: TreeFacts) -> Record:
    machine: MachineFacts = machine_facts()
    info = device.info
    return {
        "system": "hal",
        "machine": machine,
        "versions": {"abi": ABI_VERSION, info.backend: info.driver},
        "device": MeasuredDevice(info.id, info.name, driver=info.driver),
    }


def _record(
    device: Device, facts: TreeFacts, rounds: int, seed: int, quantity: Quantity
) -> Measurement:
    summary: Summary = summarise(quantity.ours)
    fields = _common(device, facts) | {
        "name": quantity.name,
        "unit": quantity.unit,
        "better": quantity.better,
        "conditions": quantity.conditions | {"device": device.id},
        "quality": {"suite": f"bedplate hal conform {device.id}"},
        "seed": seed,
    }
    ratio: Ratio | None = None
    if quantity.peer is not None:
        ratio = compare(quantity.ours, quantity.peer, quantity.better)
        fields |= {"peer_name": quantity.peer_name, "peer_version": "same process"}
    return measured(summary, rounds=rounds, tree=facts, ratio=ratio, **fields)


def _not_run(device: Device, facts: TreeFacts, name: str, unit: str, reason: str) -> Measurement:
    better: Better = "lower" if unit == "ns" else "higher"
    return Measurement(
        name=name,
        unit=unit,
        better=better,
        status="not_run",
        reason=reason,
        commit=facts.commit,
        dirty=facts.dirty,
        **_common(device, facts),
    )
