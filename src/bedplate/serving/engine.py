"""The engine: one thread that turns submitted requests into outputs, step by step.

Callers on any thread submit and abort; the engine's thread alone owns the
scheduler and the device. A step is: take what arrived, plan, run, hand out the
tokens. When the device fails, every live request gets an error and the engine
stops: a supervisor starts a new one, which is simpler than mending a device.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bedplate.core.errors import BedplateError
from bedplate.core.health import Health, HealthState, Progress
from bedplate.core.logging import get_logger
from bedplate.serving.admission import room_for
from bedplate.serving.errors import EngineStopped, RequestRefused
from bedplate.serving.metrics import EngineMetrics
from bedplate.serving.pace import LEAST_STALL_NS, Pace
from bedplate.serving.queue_share import QueueShare
from bedplate.serving.request import Live, Output, Request, Sink
from bedplate.serving.runner import Runner
from bedplate.serving.sampling import Sampling
from bedplate.serving.scheduler import Event, Limits, Plan, Scheduler, Stats
from bedplate.serving.scoring import Scoring
from bedplate.serving.tokenizer import Tokenizer

_GREEDY = Sampling(temperature=0.0, seed=0)

log = get_logger("serving")


class EngineLoop:
    """Owns scheduler, runner and thread. `load.Engine` builds it."""

    def __init__(
        self,
        runner: Runner,
        tokenizer: Tokenizer,
        limits: Limits,
        metrics: EngineMetrics,
        pace: Pace,
        *,
        check_every_step: bool | None = None,
    ) -> None:
        """Start the thread. `check_every_step` defaults to `BEDPLATE_CHECK=1`."""
        self.tokenizer, self.limits = tokenizer, limits
        self._runner, self._metrics, self._pace = runner, metrics, pace
        self._scheduler = Scheduler(limits)
        chosen = os.environ.get("BEDPLATE_CHECK") == "1"
        self.check_every_step = chosen if check_every_step is None else check_every_step
        self._closing = False
        self.failed = False  # ended by itself, not by close()
        self._ids = itertools.count(1)
        self._wake = threading.Condition()
        self._arrived: list[Live | Scoring] = []
        self._aborted: list[int] = []
        self._share = QueueShare(limits.max_requests - 1)
        self._stopping: str | None = None
        self._live: dict[int, Live] = {}
        self._scorings: dict[int, Scoring] = {}
        self._progress = Progress(LEAST_STALL_NS)
        self._stats = self._scheduler.stats()
        metrics.state(self._stats)
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
        self._progress.enter(HealthState.READY, "waiting for requests")
        self._thread.start()

    def submit(self, request: Request, sink: Sink) -> int:
        """Queue a request; `sink` gets its outputs on the engine's thread.

        Returns its id. Raises `RequestRefused` when it can never fit or the queue
        is full, `EngineStopped` when no engine runs.
        """
        max_tokens = self._room(request)
        live = Live(next(self._ids), request, sink, self.tokenizer, max_tokens, time.monotonic_ns())
        self._enqueue(live)
        log.info("request_queued", trace_id=request.trace_id, prompt_tokens=len(request.prompt))
        return live.identity

    def _enqueue(self, item: Live | Scoring) -> None:
        with self._wake:
            if self._stopping is not None:
                raise EngineStopped(self._stopping)
            try:
                self._share.take(_caller(item))
            except RequestRefused:
                self._metrics.refused(shed=True)
                raise
            self._arrived.append(item)
            self._progress.arrived(self._share.taken)
            self._wake.notify()

    def refused(self, *, shed: bool) -> None:
        """Count a request that was turned away before `submit`: too much asked, or wrongly."""
        self._metrics.refused(shed=shed)

    def _room(self, request: Request) -> int:
        """The most tokens the request may generate. Raises `RequestRefused`, counted."""
        try:
            return room_for(request, self.limits, self.tokenizer.size)
        except RequestRefused:
            self._metrics.refused(shed=False)
            raise

    def abort(self, identity: int) -> None:
        """End a request at the next step; unknown and ended ids are ignored."""
        with self._wake:
            self._aborted.append(identity)
            self._wake.notify()

    def score(self, prompt: Sequence[int]) -> NDArray[np.float32]:
        """Logits of every position of `prompt`, float32 [tokens, vocabulary].

        Raises what `submit` does, and `EngineStopped` when the engine ends first.
        """
        self._room(Request(prompt, _GREEDY))
        scoring = Scoring(prompt)
        self._enqueue(scoring)
        error = scoring.done.get()
        if error is not None or scoring.logits is None:
            raise EngineStopped(error or "the engine ended")
        return scoring.logits

    def stats(self) -> Stats:
        """The scheduler's figures after the last step."""
        return self._stats

    def health(self) -> Health:
        """Ready, or stalled when work is pending and no step comes."""
        return self._progress.health()

    def close(self) -> None:
        """Stop at once; live requests get an error. Safe to repeat."""
        with self._wake:
            self._stopping = self._stopping or "the engine is shutting down"
            self._closing = True
            self._wake.notify_all()
        self._thread.join()
        self._runner.close()

    def _run(self) -> None:
        try:
            while self._take_arrivals():
                self._step()
            reason = "the engine is shutting down"
        except BedplateError as cause:
            reason = f"the engine stopped: {cause.message}"
            log.error("engine_failed", message=reason, code=cause.code)
        except Exception as cause:  # a bug of ours must not leave callers waiting
            reason = "the engine stopped by an internal error"
            log.error("engine_failed", message=reason, kind=type(cause).__name__, cause=str(cause))
        self._end_all(reason)

    def _end_all(self, reason: str) -> None:
        self.failed = not self._closing
        self._progress.enter(HealthState.FAILED if self.failed else HealthState.DRAINING, reason)
        with self._wake:
            self._stopping = reason
            arrived, self._arrived = self._arrived, []
        for item in [*self._live.values(), *self._scorings.values(), *arrived]:
            if isinstance(item, Scoring):
                item.done.put(reason)
            else:
                self._deliver(item, item.fail(reason, engine_ended=True))
        with self._wake:
            self._share.clear()
            self._wake.notify_all()

    def _take_arrivals(self) -> bool:
        """Give what arrived to the scheduler; waits when idle. False to stop."""
        with self._wake:
            while not (self._arrived or self._aborted or self._live or self._scorings):
                if self._closing:
                    return False
                self._wake.wait()
            if self._closing:
                return False
            arrived, self._arrived = self._arrived, []
            aborted, self._aborted = self._aborted, []
        events = [self._arrive(item) for item in arrived]
        ended: list[str | None] = []
        for identity in aborted:
            live = self._live.pop(identity, None)
            if live is not None:
                events.append(Event.end(identity))
                self._deliver(live, live.abort())
                ended.append(live.request.caller)
        if events:
            self._scheduler.apply(events, now_ns=time.monotonic_ns())
            self._stats = self._scheduler.stats()
            self._metrics.state(self._stats)
        if ended:
            self._closed(ended)
        return True

    def _arrive(self, item: Live | Scoring) -> Event:
        if isinstance(item, Scoring):
            identity = next(self._ids)
            self._scorings[identity] = item
            return Event.add(identity, item.prompt, 1, score=True)
        self._live[item.identity] = item
        request = item.request
        return Event.add(
            item.identity,
            request.prompt,
            item.max_tokens,
            priority=request.priority,
            domain=request.domain,
        )

    def _step(self) -> None:
        plan = self._scheduler.plan(self._runner.arrays)
        for identity in plan.preempted:
            lost = self._live.get(identity)
            trace_id = lost.request.trace_id if lost else None
            log.info("request_preempted", trace_id=trace_id, step=plan.step)
        if plan.token_count == 0:
            if self._live or self._scorings:
                raise EngineStopped(
                    f"the scheduler planned nothing for {len(self._live)} live requests"
                )
            return
        self._prepare_samples(plan)
        allowed_ns = self._pace.allowed_ns(plan.token_count)
        self._progress.allow(allowed_ns)
        began_ns = time.monotonic_ns()
        sampled = self._runner.run(plan, allowed_ns)
        self._pace.took(plan.token_count, time.monotonic_ns() - began_ns)
        self._scheduler.apply([Event.step_done(plan.step, sampled), *self._hand_out(plan, sampled)])
        if self.check_every_step:
            self._scheduler.check()
        self._stats = self._scheduler.stats()
        self._metrics.stepped(self._stats, plan.sample_count)

    def _prepare_samples(self, plan: Plan) -> None:
        arrays, rows = plan.arrays, self._runner.sample_rows
        now_ns = time.monotonic_ns()
        for row in range(plan.row_count):
            live = self._live.get(int(arrays["row_request"][row]))
            if live is not None and live.admitted_ns is None:
                live.admitted_ns = now_ns
                live.cached_tokens = int(arrays["row_cached"][row])
        for i in range(plan.sample_count):
            live = self._live.get(int(arrays["row_request"][arrays["sample_row"][i]]))
            if live is None:
                rows[i] = _GREEDY.row(0)
                continue
            rows[i] = live.request.sampling.row(live.generated)
            if (ids := live.barred()) is not None:
                self._runner.barred[i] = ids

    def _hand_out(self, plan: Plan, sampled: NDArray[np.int32]) -> list[Event]:
        """Deliver the step's tokens; the requests that ended, as events."""
        arrays, now_ns = plan.arrays, time.monotonic_ns()
        ends: list[Event] = []
        owners = arrays["row_request"][arrays["sample_row"][: plan.sample_count]]
        if self._scorings:
            ends += self._collect_scores(plan, owners)
        callers: list[str | None] = [None] * len(ends)
        for identity, token in zip(owners.tolist(), sampled.tolist(), strict=True):
            live = self._live.get(identity)
            if live is None:
                continue
            output = live.push(token)
            if output.tokens:
                if (gap_ns := live.token_at(now_ns)) is None:
                    self._metrics.first_token(live, now_ns)
                else:
                    self._metrics.next_token(gap_ns)
            self._deliver(live, output)
            if output.finish_reason is not None:
                del self._live[identity]
                ends.append(Event.end(identity))
                callers.append(live.request.caller)
        self._closed(callers)
        return ends

    def _collect_scores(self, plan: Plan, owners: NDArray[np.uint64]) -> list[Event]:
        logits, arrays = self._runner.logits(plan.sample_count), plan.arrays
        positions = arrays["positions"][arrays["sample_token"][: plan.sample_count]]
        ends = []
        for identity, scoring in list(self._scorings.items()):
            mine = owners == identity
            if scoring.take(positions[mine], logits[mine]):
                del self._scorings[identity]
                ends.append(Event.end(identity))
                scoring.done.put(None)
        return ends

    def _deliver(self, live: Live, output: Output) -> None:
        try:
            live.sink(output)
        except Exception as cause:  # a caller's fault must not end the engine
            log.error("sink_failed", request=live.identity, cause=str(cause))
        if output.finish_reason is not None:
            self._metrics.ended(live, output.finish_reason, time.monotonic_ns())
            log.info(
                "request_ended",
                trace_id=live.request.trace_id,
                reason=output.finish_reason.value,
                completion_tokens=output.completion_tokens,
            )

    def _closed(self, callers: Sequence[str | None]) -> None:
        """One request of each of these callers ended."""
        with self._wake:
            for caller in callers:
                self._share.give_back(caller)
            self._wake.notify_all()
            # With the lock: a request that arrives now must not be overwritten.
            self._progress.step(self._share.taken)


def _caller(item: Live | Scoring) -> str | None:
    return None if isinstance(item, Scoring) else item.request.caller
