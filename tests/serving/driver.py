"""A scheduler driven as an engine would drive it, with a plain model of what it promises."""

from __future__ import annotations

import numpy as np

from bedplate.serving.scheduler import (
    Event,
    Limits,
    PlanArrays,
    Scheduler,
)

KEY = (0x0706050403020100, 0x0F0E0D0C0B0A0908)


def small(**changes: object) -> Limits:
    """Limits small enough to be short of everything."""
    values: dict[str, object] = {
        "block_count": 16,
        "block_tokens": 4,
        "max_requests": 32,
        "max_running": 8,
        "max_batched_tokens": 16,
        "max_model_tokens": 48,
        "max_sample_rows": 16,
    }
    return Limits(**{**values, **changes})  # type: ignore[arg-type]


class Driver:
    """Runs a scheduler as an engine would, and checks every plan it makes."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.scheduler = Scheduler(limits, hash_key=KEY)
        self.arrays = PlanArrays(limits)
        self.live: dict[int, dict[str, object]] = {}
        self.slots: dict[int, object] = {}  # KV slot -> the domain and prefix it holds
        self.preemptions: dict[int, int] = {}
        self.finished: list[int] = []

    def add(self, request: int, prompt: list[int], new: int, **options: object) -> None:
        self.scheduler.apply([Event.add(request, prompt, new, **options)])  # type: ignore[arg-type]
        self.live[request] = {
            "tokens": list(prompt),
            "want": len(prompt) + new,
            "domain": options.get("domain", (0, 0)),
        }

    def end(self, request: int) -> None:
        self.scheduler.apply([Event.end(request)])
        del self.live[request]

    def step(self) -> int:
        """Plan and run one step; returns the tokens it held."""
        plan = self.scheduler.plan(self.arrays)
        self.scheduler.check()
        for request in plan.preempted:
            self.preemptions[request] = self.preemptions.get(request, 0) + 1
        if plan.token_count == 0:
            return 0
        assert plan.token_count <= self.limits.max_batched_tokens
        assert plan.sample_count <= self.limits.max_sample_rows
        a, bt = self.arrays, self.limits.block_tokens
        written: set[int] = set()
        for row in range(plan.row_count):
            request = int(a["row_request"][row])
            tokens: list[int] = self.live[request]["tokens"]  # type: ignore[assignment]
            domain = self.live[request]["domain"]
            first, count = int(a["row_first"][row]), int(a["row_tokens"][row])
            start = int(a["query_start"][row])
            assert int(a["query_start"][row + 1]) == start + count
            assert int(a["context_length"][row]) == first + count <= len(tokens)
            table = a["block_table"][row]
            for i in range(count):
                position = first + i
                slot = int(table[position // bt]) * bt + position % bt
                assert a["tokens"][start + i] == tokens[position]
                assert a["positions"][start + i] == position
                assert a["kv_slots"][start + i] == slot
                assert slot not in written, "two rows write one slot"
                written.add(slot)
                self.slots[slot] = (domain, tokens[: position + 1])
            for position in range(first + count):
                slot = int(table[position // bt]) * bt + position % bt
                assert self.slots[slot] == (domain, tokens[: position + 1]), "stale KV is read"
        sampled = np.full(plan.sample_count, -1, np.int32)
        ends = []
        for i in range(plan.sample_count):
            row = int(a["sample_row"][i])
            request = int(a["row_request"][row])
            state = self.live[request]
            tokens = state["tokens"]  # type: ignore[assignment]
            assert a["sample_token"][i] == a["query_start"][row + 1] - 1
            sampled[i] = (sum(tokens) * 31 + len(tokens)) % 5
            tokens.append(int(sampled[i]))
            if len(tokens) == state["want"]:
                ends.append(request)
        self.scheduler.apply([Event.step_done(plan.step, sampled), *map(Event.end, ends)])
        for request in ends:
            self.finished.append(request)
            del self.live[request]
        self.scheduler.check()
        return plan.token_count

    def drain(self, most: int = 2000) -> int:
        """Step until nothing is left; returns the steps taken."""
        for steps in range(most):
            if not self.live:
                return steps
            assert self.step() > 0, "an idle step while a request can run"
        raise AssertionError(f"{len(self.live)} requests unfinished after {most} steps")
