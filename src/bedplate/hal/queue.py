"""Queues: batches in order, asynchronous, each submit one native call."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from numpy.typing import NDArray

from bedplate.hal.batch import Batch
from bedplate.hal.buffer import Tensor
from bedplate.hal.errors import DeadlineExceeded, DeviceError, HalError
from bedplate.hal.graph import Graph, capture_table
from bedplate.hal.native import ffi, new, u64
from bedplate.hal.ops import arrange, op_tensors, pack_attributes
from bedplate.hal.timeline import FOREVER_NS, Fence, Timeline

if TYPE_CHECKING:
    from bedplate.hal.device import Device


class Queue:
    """An ordered queue of a device; use `device.queue()`, best as a context.

    Every submit also moves the queue's own timeline, which `synchronize`
    waits for. After a failure that timeline is replaced, so that the queue
    goes on; timelines of the caller stay poisoned. Any thread may submit and
    wait.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.handle = device.create("queue", new("bp_queue_info"))
        self._progress = Timeline(device)
        self._submitted = 0
        # Order on the queue and count on its timeline must agree.
        self._lock = threading.Lock()
        self._scratch: list[Any] = []

    def submit(
        self,
        batch: Batch,
        *,
        tag: int = 0,
        wait: Sequence[Fence] = (),
        signal: Sequence[Fence] = (),
    ) -> None:
        """Append a batch: it starts after `wait`, then moves `signal`.

        `tag` comes back in logs and error text. Raises InvalidArgument before
        anything ran when a handle is stale or a range is wrong; what fails
        later poisons the signalled timelines.
        """
        waits = _fences(wait)
        described = new("bp_batch", tag=tag, wait_count=len(wait), signal_count=len(signal) + 1)
        described.wait = waits
        described.commands, described.command_count = batch.pointers(), len(batch)
        with self._lock:
            self._append(described, signal)

    def record(self, *batches: Batch) -> Graph:
        """The batches in order as a graph, which `launch` runs; nothing runs now.

        Any queue of the device may launch it. Raises Unsupported without the
        capability `capture`, and what `submit` would raise for a wrong batch.
        """
        table, out = capture_table(self.device), ffi.new("uint64_t *")
        submit, device = self.device.api.queue.submit, self.device
        with self._lock:
            device.check(table.begin(device.handle, self.handle))
            try:
                for batch in batches:
                    described = new("bp_batch", command_count=len(batch))
                    described.commands = batch.pointers()
                    device.check(submit(device.handle, self.handle, described))
            finally:
                status = table.end(device.handle, self.handle, out)
                graph = Graph(device, int(out[0]), tuple(batch.kept() for batch in batches))
            device.check(status)
        return graph

    def launch(
        self,
        graph: Graph,
        *,
        tag: int = 0,
        wait: Sequence[Fence] = (),
        signal: Sequence[Fence] = (),
    ) -> None:
        """Append a graph, as `submit` appends a batch."""
        waits = _fences(wait)
        described = new("bp_batch", tag=tag, wait_count=len(wait), signal_count=len(signal) + 1)
        described.wait = waits
        with self._lock:
            self._append(described, signal, graph)

    def _append(
        self, described: Any, signal: Sequence[Fence] = (), graph: Graph | None = None
    ) -> None:
        """Submit a batch, or launch a graph with its fences; it signals, last, one step of our
        timeline. Holds the lock."""
        target = self._submitted + 1
        signals = _fences([*signal, (self._progress, target)])
        described.signal = signals
        api, device = self.device.api, self.device.handle
        if graph is None:
            status = api.queue.submit(device, self.handle, described)
        else:
            status = api.capture.launch(device, self.handle, graph.handle, described)
        self.device.check(status)
        self._submitted = target

    def synchronize(self, timeout_ns: int = FOREVER_NS) -> None:
        """Wait for everything submitted so far.

        Raises DeadlineExceeded, or DeviceError with the sentence of the first
        batch that failed since the last call. It is told as soon as it is
        known; what was submitted behind it still runs, and the next call waits
        for that.
        """
        with self._lock:
            progress, submitted = self._progress, self._submitted
        try:
            progress.wait(submitted, timeout_ns)
        except DeadlineExceeded:
            raise
        except DeviceError:
            self._renew(progress)
            raise
        self._scratch.clear()

    def _renew(self, failed: Timeline) -> None:
        """Another timeline in the place of a poisoned one, moved by an empty batch behind all that
        was submitted."""
        with self._lock:
            if self.device.lost or self._progress is not failed:
                return
            self._progress, self._submitted = Timeline(self.device), 0
            with contextlib.suppress(HalError):  # the failure that is told says why
                self._append(new("bp_batch", signal_count=1))

    def op(
        self,
        name: str,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        **attributes: Any,
    ) -> None:
        """Plan and run one op; optional tensors and attributes by keyword.

        A convenience for single calls: it plans each time. Raises
        InvalidArgument or Unsupported from the plan.
        """
        optional = {role.name for role in op_tensors(name) if role.optional}
        named = {key: value for key, value in attributes.items() if key in optional}
        plain = {key: value for key, value in attributes.items() if key not in optional}
        tensors = arrange(name, inputs, outputs, named)
        plan = self.device.plan_op(name, tensors, pack_attributes(name, **plain))
        workspace = None
        if plan.workspace_bytes:
            workspace = self.device.allocate(plan.workspace_bytes)
        batch = Batch()
        batch.op(plan, tensors, workspace)
        self.submit(batch)
        # The plan and the workspace may go only when their work is done.
        self._scratch.append(batch)

    def download(self, tensor: Tensor) -> NDArray[Any]:
        """The elements of a tensor after everything submitted so far; waits."""
        self.synchronize()
        return self.device.download(tensor)

    def destroy(self) -> None:
        """Cancel what waits and give the queue back. Twice is fine."""
        if self.handle and not self.device.closed:
            handle, self.handle = self.handle, 0
            self.device.check(self.device.api.queue.destroy(self.device.handle, handle))
            self._progress.destroy()
            self._scratch.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.destroy()


def _fences(fences: Sequence[Fence]) -> Any:
    array = ffi.new("bp_fence[]", max(len(fences), 1))
    for place, (timeline, value) in zip(array, fences, strict=False):
        place.timeline, place.value = timeline.handle, u64(value, "value")
    return array
