"""The engine over real steps: what comes out, when it ends, and what is left."""

from __future__ import annotations

import re
import threading
import time
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tests.serving.conftest import SMALL
from tests.serving.files import write_folder

from bedplate.core.health import HealthState
from bedplate.hal.api import Batch, DeviceError, Queue
from bedplate.serving.api import (
    Engine,
    EngineOptions,
    EngineStopped,
    FinishReason,
    LimitsError,
    ModelFileError,
    Output,
    Precision,
    Request,
    RequestRefused,
    Sampling,
    stream,
)
from bedplate.serving.runner import Runner
from bedplate.serving.scheduler import Plan

GREEDY = Sampling(temperature=0, max_tokens=12, ignore_eos=True)
PROMPT = [1, 40, 41, 42, 43]


def wait_idle(engine: Engine) -> None:
    """Until every block is free again."""
    until = time.monotonic() + 10
    while engine.stats().running and time.monotonic() < until:
        time.sleep(0.01)


def test_greedy_text_repeats_and_does_not_depend_on_the_chunks(tiny: Engine) -> None:
    """The same prompt gives the same tokens, also when its prefix is found in the pool."""
    prompt = [3 + i % 90 for i in range(70)]
    first, second = (tiny.generate([prompt], GREEDY)[0] for _ in range(2))
    assert first.tokens == second.tokens
    assert len(first.tokens) == 12
    assert (first.cached_tokens, second.cached_tokens) == (0, 64)


def test_a_batch_gives_what_each_prompt_gives_alone(tiny_path: Path) -> None:
    """Eight prompts of different lengths together in float32: each as if alone."""
    prompts = [[1, *range(10, 12 + 5 * i)] for i in range(8)]
    with Engine(str(tiny_path), replace(SMALL, precision=Precision.FLOAT32)) as engine:
        alone = [engine.generate([p], GREEDY)[0].tokens for p in prompts]
        together = [r.tokens for r in engine.generate(prompts, GREEDY)]
    assert together == alone


def test_seeds_repeat_and_differ(shared: Engine) -> None:
    """One seed gives one text; another seed gives another."""

    def run(seed: int) -> tuple[int, ...]:
        sampling = Sampling(temperature=1.5, seed=seed, max_tokens=20, ignore_eos=True)
        return shared.generate([PROMPT], sampling)[0].tokens

    assert run(5) == run(5)
    assert run(5) != run(6)


def test_stop_ids_end_a_request_and_length_ends_it(tiny: Engine) -> None:
    """The first greedy token as a stop id ends at once, with no text of it."""
    token = tiny.generate([PROMPT], GREEDY)[0].tokens[0]
    sampling = Sampling(temperature=0, max_tokens=12, stop_token_ids=(token,))
    result = tiny.generate([PROMPT], sampling)[0]
    assert (result.finish_reason, result.text) == (FinishReason.STOP, "")
    assert tiny.generate([PROMPT], GREEDY)[0].finish_reason is FinishReason.LENGTH


@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_before_min_tokens_no_id_that_ends_is_drawn(
    tiny: Engine, monkeypatch: pytest.MonkeyPatch, temperature: float
) -> None:
    """The likeliest id is a stop id and the model's end id: not among the first three tokens,
    nor fed back to the model; the next best is drawn. Its neighbour in the batch draws it."""
    token = tiny.generate([PROMPT], GREEDY)[0].tokens[0]
    second = int(np.argsort(tiny.score(PROMPT)[-1])[-2])
    monkeypatch.setattr(tiny, "tokenizer", replace(tiny.tokenizer, end_ids=frozenset({token})))
    held = Sampling(temperature=temperature, seed=1, max_tokens=6, min_tokens=3)
    free = replace(held, temperature=0, min_tokens=0)
    ended = replace(held, stop_token_ids=(token,), ignore_eos=True)
    for sampling in (held, ended):
        queue: SimpleQueue[Output] = SimpleQueue()
        identities = [tiny.submit(Request(PROMPT, s), queue.put) for s in (sampling, free)]
        tokens: dict[int, list[int]] = {identity: [] for identity in identities}
        open_requests = set(identities)
        while open_requests:
            output = queue.get(timeout=20)
            tokens[output.request] += output.tokens
            if output.finish_reason is not None:
                open_requests.discard(output.request)
        assert tokens[identities[1]] == [token]
        assert len(tokens[identities[0]]) >= 4 or token not in tokens[identities[0]]
        assert token not in tokens[identities[0]][:3]
        if temperature == 0:
            assert tokens[identities[0]][0] == second
    assert tiny._runner.barred == {}


def test_min_tokens_holds_a_stop_string_back(shared: Engine) -> None:
    """A text that holds the stop string early goes on until min_tokens."""
    text = shared.generate([PROMPT], GREEDY)[0].text
    early = Sampling(temperature=0, max_tokens=12, ignore_eos=True, stop=(text[0],))
    late = replace(early, min_tokens=12)
    assert shared.generate([PROMPT], early)[0].text == ""
    assert shared.generate([PROMPT], late)[0].text.startswith(text[0])


def test_one_caller_leaves_places_for_another(
    tiny: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A caller that asks until it is refused gets 429; the next caller gets in, and what ends
    gives its place back."""
    release, run = threading.Event(), tiny._runner.run

    def hold(plan: Plan, stall_ns: int) -> object:
        release.wait(20)
        return run(plan, stall_ns)

    monkeypatch.setattr(tiny._runner, "run", hold)
    ended: SimpleQueue[Output] = SimpleQueue()
    short = Sampling(temperature=0, max_tokens=1)
    accepted = 768  # of 1,023 places: three times the 255 that are left
    for _ in range(accepted):
        tiny.submit(Request(PROMPT, short, caller="greedy"), ended.put)
    with pytest.raises(RequestRefused, match="this caller holds 768 of 1023") as info:
        tiny.submit(Request(PROMPT, short, caller="greedy"), ended.put)
    assert info.value.status == 429
    for _ in range(10):
        tiny.submit(Request(PROMPT, short, caller="other"), ended.put)
    release.set()
    for _ in range(accepted + 10):
        ended.get(timeout=60)
    tiny.generate([PROMPT], short)
    until = time.monotonic() + 10  # a place is given back just after its last output
    while tiny._share.taken and time.monotonic() < until:
        time.sleep(0.01)
    assert (tiny._share.taken, tiny._share._held) == (0, {})


def test_leaving_a_stream_aborts_and_frees_the_blocks(tiny: Engine) -> None:
    """Closing the iterator ends the request at the next step."""
    long = Sampling(temperature=0, max_tokens=100, ignore_eos=True)
    outputs = stream(tiny, Request(PROMPT, long))
    next(outputs)
    outputs.close()
    wait_idle(tiny)
    stats = tiny.stats()
    assert stats.blocks_clean + stats.blocks_cached == tiny.limits.block_count


def test_random_aborts_leave_nothing(tiny: Engine) -> None:
    """A hundred requests, half of them aborted at any time: every one ends, no block is lost."""
    rng = np.random.default_rng(3)
    ended: SimpleQueue[Output] = SimpleQueue()

    def sink(output: Output) -> None:
        if output.finish_reason is not None:
            ended.put(output)

    for _ in range(100):
        length, new = int(rng.integers(1, 90)), int(rng.integers(1, 30))
        prompt = rng.integers(3, 200, length).tolist()
        identity = tiny.submit(
            Request(prompt, Sampling(temperature=0, max_tokens=new, ignore_eos=True)), sink
        )
        if rng.random() < 0.5:
            timer = threading.Timer(float(rng.random()) * 0.02, tiny.abort, [identity])
            timer.start()
    reasons = [ended.get(timeout=30).finish_reason for _ in range(100)]
    assert set(reasons) <= {FinishReason.LENGTH, FinishReason.ABORT}
    assert tiny.generate([PROMPT], GREEDY)[0].finish_reason is FinishReason.LENGTH
    wait_idle(tiny)
    stats = tiny.stats()
    assert stats.blocks_clean + stats.blocks_cached == tiny.limits.block_count


def test_what_cannot_run_is_refused_at_once_and_counted(shared: Engine) -> None:
    """Nothing is queued. Whatever `room_for` says no to, asked or scored."""
    before = shared.metrics_text()
    with pytest.raises(RequestRefused, match="empty"):
        shared.submit(Request([], GREEDY), lambda output: None)
    with pytest.raises(RequestRefused, match="outside the vocabulary"):
        shared.score([99999])
    assert shared.stats().waiting == 0
    counts = [
        float(re.findall(r'requests_total\{.*?code="client_error".*?\} (\S+)', text)[0])
        for text in (before, shared.metrics_text())
    ]
    assert counts[1] - counts[0] == 2


def test_a_full_queue_refuses_with_429(tiny: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The request beyond the limit is refused, whatever the machine is doing besides."""
    release, run = threading.Event(), tiny._runner.run

    def hold(plan: Plan, stall_ns: int) -> object:
        release.wait(20)
        return run(plan, stall_ns)

    monkeypatch.setattr(tiny._runner, "run", hold)
    done: SimpleQueue[Output] = SimpleQueue()
    refused = None
    for _ in range(tiny.limits.max_requests + 1):
        try:
            tiny.submit(Request(PROMPT, Sampling(temperature=0, max_tokens=100)), done.put)
        except RequestRefused as error:
            refused = error
            break
    release.set()
    assert refused is not None
    assert refused.status == 429


def test_a_lost_device_ends_every_request_and_the_engine(
    tiny: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failing step: each live request gets an error, health fails, new ones are refused."""

    def lose(plan: object, stall_ns: int) -> None:
        raise DeviceError("the device is gone")

    monkeypatch.setattr(tiny._runner, "run", lose)
    with pytest.raises(EngineStopped, match="device is gone"):
        tiny.generate([PROMPT, PROMPT], GREEDY)
    assert tiny.health().state is HealthState.FAILED
    with pytest.raises(EngineStopped):
        tiny.submit(Request(PROMPT, GREEDY), lambda output: None)


def test_a_hanging_step_shows_as_stalled(tiny: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pending work without a step for the stall time is a stall; idle is not."""
    assert tiny.health().state is HealthState.READY
    release = threading.Event()
    run = tiny._runner.run

    def hang(plan: object, stall_ns: int) -> object:
        release.wait(20)
        return run(plan, stall_ns)  # type: ignore[arg-type]

    monkeypatch.setattr(tiny._runner, "run", hang)
    monkeypatch.setattr(tiny._pace, "allowed_ns", lambda rows: 50_000_000)
    done: SimpleQueue[Output] = SimpleQueue()
    tiny.submit(Request(PROMPT, Sampling(temperature=0, max_tokens=1)), done.put)
    until = time.monotonic() + 10
    while tiny.health().state is not HealthState.STALLED and time.monotonic() < until:
        time.sleep(0.01)
    assert tiny.health().state is HealthState.STALLED
    release.set()
    assert done.get(timeout=10).finish_reason is FinishReason.LENGTH


def test_a_step_is_given_up_after_four_stalls(
    tiny: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A supervisor acts on the first; without one the process must not wait for ever."""
    kind, waited = type(tiny._runner._timeline), []
    wait = kind.wait

    def spy(self: object, value: int, timeout_ns: int) -> None:
        waited.append(timeout_ns)
        wait(self, value, timeout_ns)  # type: ignore[arg-type]

    monkeypatch.setattr(kind, "wait", spy)
    monkeypatch.setattr(tiny._pace, "allowed_ns", lambda rows: 5_000_000_000)
    tiny.generate([PROMPT], Sampling(temperature=0, max_tokens=1))
    assert waited == [20_000_000_000]


def test_limits_that_cannot_hold_name_what_fits(tiny_path: object) -> None:
    """A pool below one longest request: the largest length that fits is in the remedy."""
    options = EngineOptions(kv_memory_bytes=20_000, max_model_tokens=256)
    with pytest.raises(LimitsError, match=r"use --max-model-len \d+ or less"):
        Engine(str(tiny_path), options)
    with pytest.raises(LimitsError, match="2 to 256"):
        Engine(str(tiny_path), EngineOptions(max_model_tokens=257))


def test_the_default_model_answers(default_model: Engine) -> None:
    """The real model continues a sentence as any reader would."""
    sampling = Sampling(temperature=0, max_tokens=4)
    assert default_model.generate(["The capital of France is"], sampling)[0].text.startswith(
        " Paris"
    )


def test_ids_beyond_the_tokenizer_are_never_sampled(tmp_path: Path) -> None:
    """A table padded with rows that would win every draw: the text holds real tokens only."""
    folder = write_folder(tmp_path / "padded", vocab_size=300)
    weights = load_file(folder / "model.safetensors")
    table = weights["model.embed_tokens.weight"]
    padding = np.full((300 - len(table), table.shape[1]), 50.0, np.float32)
    weights["model.embed_tokens.weight"] = np.concatenate([table, padding, -padding])[:300]
    save_file(weights, folder / "model.safetensors")
    with Engine(str(folder), SMALL) as engine:
        result = engine.generate([PROMPT], GREEDY)[0]
        with pytest.raises(RequestRefused, match="299"):
            engine.submit(Request([299], GREEDY), lambda output: None)
    assert len(result.tokens) == 12


def test_a_tokenizer_larger_than_the_table_refuses_the_model(tmp_path: Path) -> None:
    """An id without a row would fail on the device in the middle of serving."""
    folder = write_folder(tmp_path / "short", vocab_size=200)
    weights = load_file(folder / "model.safetensors")
    weights["model.embed_tokens.weight"] = weights["model.embed_tokens.weight"][:200].copy()
    save_file(weights, folder / "model.safetensors")
    with pytest.raises(ModelFileError, match="261 ids"):
        Engine(str(folder), SMALL)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"block_tokens": 0}, "--block-size is 0"),
        ({"max_running": 2000}, "--max-num-seqs is 2000"),
        ({"max_batched_tokens": 0}, "--max-num-batched-tokens is 0"),
        ({"kv_memory_bytes": -5}, "--kv-memory-bytes is -5"),
    ],
)
def test_limits_out_of_range_are_refused_by_flag(changes: dict[str, int], match: str) -> None:
    """Before anything is loaded, with the flag and its range."""
    with pytest.raises(LimitsError, match=match):
        replace(SMALL, **changes)


def test_the_coldest_temperature_is_greedy(tiny: Engine) -> None:
    """1e-40 cannot be divided by in float32; it picks the best token, not the first."""
    cold = Sampling(temperature=1e-40, max_tokens=12, ignore_eos=True)
    assert tiny.generate([PROMPT], cold)[0].tokens == tiny.generate([PROMPT], GREEDY)[0].tokens


def test_the_time_allowed_for_a_step_is_measured(
    tiny: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a few steps of a tiny model ten seconds and little more are allowed, by the size
    of the step that runs."""
    tiny.generate([PROMPT * 6], GREEDY)
    asked: list[tuple[int, int]] = []
    measured = tiny._pace.allowed_ns

    def allowed(rows: int) -> int:
        asked.append((rows, measured(rows)))
        return asked[-1][1]

    monkeypatch.setattr(tiny._pace, "allowed_ns", allowed)
    tiny.generate([[7, *PROMPT]], Sampling(temperature=0, max_tokens=3, ignore_eos=True))
    assert [rows for rows, _ in asked] == [6, 1, 1]
    assert tiny._progress._stall_after_ns == asked[-1][1]
    assert set(tiny._pace._worst_ns) >= {1, 5}


@pytest.mark.parametrize(("alias", "expected"), [("vllm", True), ("none", False)])
def test_other_names_of_metrics_appear_when_asked_for(
    tiny_path: Path, alias: str, expected: bool
) -> None:
    """`--metrics-alias none` leaves our own names alone."""
    with Engine(str(tiny_path), replace(SMALL, metrics_alias=alias)) as engine:
        text = engine.metrics_text()
    assert ("vllm:" in text) is expected
    assert "bedplate_engine_running{" in text


def test_prefill_decode_and_the_gaps_between_tokens_are_counted(tiny_path: Path) -> None:
    """A request of 12 tokens has one prefill, one decode and 11 gaps, which make the decode up."""
    with Engine(str(tiny_path), SMALL) as engine:
        engine.generate([PROMPT], GREEDY)
        text = engine.metrics_text()

    def value(name: str) -> float:
        return float(re.findall(rf"^vllm:{name}\{{.*?\}} (\S+)$", text, re.M)[0])

    assert value("request_prefill_time_seconds_count") == 1
    assert value("request_decode_time_seconds_count") == 1
    assert value("inter_token_latency_seconds_count") == 11
    gaps, decode = (
        value(f"{n}_seconds_sum") for n in ("inter_token_latency", "request_decode_time")
    )
    assert gaps == pytest.approx(decode)
    assert 0 < value("request_prefill_time_seconds_sum") <= value("time_to_first_token_seconds_sum")


def test_one_graph_a_step_changes_no_token(
    tiny_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decoding is one launch a step, and the tokens are those of two launches and of none."""
    prompts = [[1, *range(10, 14 + i)] for i in range(3)]
    found: dict[str, tuple[list[list[int]], int]] = {}
    launch, parts, graph = Queue.launch, Runner._parts, Runner._graph
    for way in ("one", "two", "none"):
        with monkeypatch.context() as patch:
            launches: list[int] = []

            def counted(
                queue: Queue, *words: Any, launches: list[int] = launches, **more: Any
            ) -> None:
                launches.append(1)
                launch(queue, *words, **more)

            def apart(runner: Runner, plan: Plan) -> list[tuple[Batch, ...]]:
                return [(batch,) for part in parts(runner, plan) for batch in part]

            patch.setattr(Queue, "launch", counted)
            patch.setattr(Runner, "_parts", apart if way == "two" else parts)
            patch.setattr(Runner, "_graph", graph if way != "none" else lambda *_: None)
            with Engine(str(tiny_path), SMALL) as engine:
                tokens = [list(r.tokens) for r in engine.generate(prompts, GREEDY)]
                found[way] = (tokens, len(launches))
    assert found["one"][0] == found["two"][0] == found["none"][0]
    steps = found["two"][1] - found["one"][1]
    assert steps >= GREEDY.max_tokens - 2
    assert found["none"][1] == 0
