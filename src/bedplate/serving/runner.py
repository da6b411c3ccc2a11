"""The runner: a plan becomes one submission to the device queue.

Batches are recorded once per capacity (a few powers of two) and submitted as they
are, as graphs where the device has them; what changes from step to step lies in
device memory, where the scheduler writes its plan. A step is one body and one head,
which ends in sampling; as graphs they are one where both have one capacity, as in
decoding. Only where ids are barred from a row logits and sampling are apart, and the
host writes in between.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bedplate.hal.api import Batch, Device, DType, Fence, Graph, Tensor
from bedplate.kernels.api import SAMPLE_ROW, OpSet
from bedplate.runtime.api import PoolTensors
from bedplate.serving.models.base import Model, StepTensors
from bedplate.serving.scheduler import Limits, Plan, PlanArrays

STALLS_TO_DEADLINE = 4  # a supervisor acts on a stall first; this ends what has none


def capacities(most: int, first: int = 8) -> list[int]:
    """1, `first`, then doublings up to and including `most`."""
    sizes = [1]
    size = first
    while size < most:
        sizes.append(size)
        size *= 2
    return sizes if most == 1 else [*sizes, most]


class Runner:
    """Owns the device side of one engine: plan arrays, batches, logits."""

    def __init__(
        self,
        device: Device,
        scratch: PoolTensors,
        ops: OpSet,
        model: Model,
        limits: Limits,
        *,
        id_count: int,
    ) -> None:
        """Take the step's tensors from `scratch`; `allocate_kv` is done.

        Ids from `id_count` on are never sampled: a table may be padded beyond the
        tokenizer.
        """
        self._id_count = id_count
        self._device, self._ops, self._model, self._limits = device, ops, model, limits
        self._queue = device.queue()
        self._timeline = device.timeline()
        self._submitted = 0
        rows, tokens, samples = (
            limits.max_running,
            limits.max_batched_tokens,
            limits.max_sample_rows,
        )
        shapes = {
            "tokens": (tokens,),
            "positions": (tokens,),
            "kv_slots": (tokens,),
            "query_start": (rows + 1,),
            "context_length": (rows,),
            "block_table": (rows, limits.blocks_per_request),
            "sample_token": (samples,),
        }
        tensors = {name: scratch.empty(shape, DType.I32) for name, shape in shapes.items()}
        self.arrays = PlanArrays(limits, {name: t.view() for name, t in tensors.items()})
        counts = scratch.empty((3,), DType.U32)
        self._counts: NDArray[np.uint32] = counts.view()
        token_count, sequence_count, sample_count = (
            Tensor(counts.buffer, counts.offset_bytes + 4 * i, (1,), DType.U32) for i in range(3)
        )
        self._step = StepTensors(
            **tensors,
            token_count=token_count,
            sequence_count=sequence_count,
            sample_count=sample_count,
        )
        self._logits = scratch.empty((samples, model.config.vocabulary), DType.F32)
        self._rows = scratch.empty((samples, SAMPLE_ROW.itemsize), DType.U8)
        self._sampled = scratch.empty((samples,), DType.I32)
        self.sample_rows: NDArray[Any] = self._rows.view().reshape(-1).view(SAMPLE_ROW)
        self._body_sizes = capacities(tokens)
        self._head_sizes = capacities(samples)
        self._bodies: dict[int, Batch] = {}
        self._heads: dict[int, Batch] = {}
        self._halves: dict[int, tuple[Batch, Batch]] = {}
        self._graphs: dict[tuple[Batch, ...], Graph] = {}
        # Sample row -> ids that it must not draw in the next step. `run` empties it.
        self.barred: dict[int, NDArray[np.int64]] = {}

    def warm_up(self) -> None:
        """Record every batch, so that no step pays for it."""
        for size in self._body_sizes:
            self._graph(self._body(size))
        for size in self._head_sizes:
            self._graph(self._head(size))
        for size in set(self._body_sizes) & set(self._head_sizes):
            self._graph(self._body(size), self._head(size))

    def _graph(self, *batches: Batch) -> Graph | None:
        """The batches, which are complete, as one graph; None on a device that has none."""
        if "capture" not in self._device.info.capabilities:
            return None
        if batches not in self._graphs:
            self._graphs[batches] = self._queue.record(*batches)
        return self._graphs[batches]

    def _body(self, size: int) -> Batch:
        if size not in self._bodies:
            batch = self._bodies[size] = Batch()
            self._model.record_body(batch, self._step, size)
        return self._bodies[size]

    def _head(self, size: int) -> Batch:
        if size not in self._heads:
            batch = self._heads[size] = Batch()
            self._model.record_head(batch, self._step, self._logits, size)
            self._record_sampling(batch, size)
        return self._heads[size]

    def _head_in_halves(self, size: int) -> tuple[Batch, Batch]:
        """What `_head` does, as logits and sampling. Recorded when first needed: few need it."""
        if size not in self._halves:
            logits, sampling = self._halves[size] = Batch(), Batch()
            self._model.record_head(logits, self._step, self._logits, size)
            self._record_sampling(sampling, size)
        return self._halves[size]

    def _record_sampling(self, batch: Batch, size: int) -> None:
        logits, rows, out = self._logits, self._rows, self._sampled
        self._ops.record(
            batch,
            "sample",
            [
                Tensor(
                    logits.buffer,
                    logits.offset_bytes,
                    (size, self._id_count),
                    DType.F32,
                    (logits.shape[1], 1),
                ),
                Tensor(rows.buffer, rows.offset_bytes, (size, rows.shape[1]), DType.U8),
                self._step.sample_count,
                Tensor(out.buffer, out.offset_bytes, (size,), DType.I32),
                None,
            ],
        )

    def run(self, plan: Plan, stall_ns: int) -> NDArray[np.int32]:
        """Run `plan`, whose arrays are `self.arrays` and whose sample rows are set.

        A step that takes several `stall_ns` is given up.

        Returns the sampled ids, int32 [sample_count], -1 where logits hold NaN.
        Raises `DeviceError` when the device fails; the step is then lost.
        """
        self._counts[:] = (plan.token_count, plan.row_count, plan.sample_count)
        if self.barred and plan.sample_count:
            body, head = self._sizes(plan)
            logits, sampling = self._head_in_halves(head)
            self._submit([(self._body(body),), (logits,)], plan.step, stall_ns)
            self._bar()
            self._submit([(sampling,)], plan.step, stall_ns)
        else:
            self._submit(self._parts(plan), plan.step, stall_ns)
        sampled: NDArray[np.int32] = self._sampled.view()[: plan.sample_count].copy()
        return sampled

    def _sizes(self, plan: Plan) -> tuple[int, int]:
        """The capacities of body and head."""
        body, head = self._body_sizes, self._head_sizes
        return (
            body[bisect_left(body, plan.token_count)],
            head[bisect_left(head, plan.sample_count)],
        )

    def _parts(self, plan: Plan) -> list[tuple[Batch, ...]]:
        """What a step runs, in order; the batches of a part are one graph."""
        body, head = self._sizes(plan)
        if not plan.sample_count:
            return [(self._body(body),)]
        if body == head:
            return [(self._body(body), self._head(head))]
        return [(self._body(body),), (self._head(head),)]

    def _submit(self, parts: Sequence[tuple[Batch, ...]], step: int, stall_ns: int) -> None:
        """Run the parts in order, and wait for the last."""
        *before, last = parts
        for part in before:
            self._append(part, step)
        self._submitted += 1
        self._append(last, step, [(self._timeline, self._submitted)])
        self._timeline.wait(self._submitted, STALLS_TO_DEADLINE * stall_ns)

    def _append(self, part: tuple[Batch, ...], step: int, signal: Sequence[Fence] = ()) -> None:
        graph = self._graph(*part)
        if graph is not None:
            self._queue.launch(graph, tag=step, signal=signal)
            return
        *before, last = part
        for batch in before:
            self._queue.submit(batch, tag=step)
        self._queue.submit(last, tag=step, signal=signal)

    def _bar(self) -> None:
        """Take the barred ids out of their rows: no draw finds minus infinity."""
        logits = self._logits.view()
        for row, ids in self.barred.items():
            logits[row, ids] = -np.inf
        self.barred = {}

    def logits(self, count: int) -> NDArray[np.float32]:
        """The first `count` rows of the last step's logits, [count, vocabulary].

        A view of device memory: the next step overwrites it.
        """
        rows: NDArray[np.float32] = self._logits.view()[:count]
        return rows

    def close(self) -> None:
        """Return the graphs, the queue and the timeline."""
        for graph in self._graphs.values():
            graph.destroy()
        self._queue.destroy()
        self._timeline.destroy()
