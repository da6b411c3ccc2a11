"""Prompts on their way to token ids: refused early, and bounded for each caller."""

from __future__ import annotations

import asyncio
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.serving.files import vocabulary, write_gguf

from bedplate.serving import encoding
from bedplate.serving.encoding import EncodingPool, check_bytes
from bedplate.serving.errors import RequestRefused
from bedplate.serving.gguf_model import GgufModel


def test_bytes_decide_before_tokens_do() -> None:
    """The last that might fit passes, one byte more names both numbers; bytes, not characters."""
    check_bytes(["a" * 30, "é" * 15], 6, 10)
    with pytest.raises(RequestRefused, match=r"has 61 bytes, .* of 6 tokens holds at most 60"):
        check_bytes(["a" * 31, "é" * 15], 6, 10)
    check_bytes([], 6, 10)


def test_the_longest_token_counts_control_tokens_as_written(tmp_path: Path) -> None:
    """`<|endoftext|>` is 13 bytes of a text and one id; without control tokens it is others."""
    tokenizer = GgufModel(write_gguf(tmp_path / "tiny.gguf")).tokenizer()
    assert tokenizer.longest_token_bytes == len("<|endoftext|>")
    text = "<|endoftext|>" * 5
    assert len(tokenizer.encode(text)) * tokenizer.longest_token_bytes == len(text)
    assert replace(tokenizer, control_ids=frozenset()).longest_token_bytes == len(" he")
    assert "Ġhe" in vocabulary()


def test_a_caller_with_too_much_work_is_refused_and_others_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """429 beyond the bound, also for callers that left; room again when the work has ended."""
    monkeypatch.setattr(encoding, "MOST_WAITING_BYTES", 20)
    release = threading.Event()

    async def all_of_it(pool: EncodingPool) -> None:
        held = [asyncio.ensure_future(pool.run("one", 10, release.wait)) for _ in range(2)]
        await asyncio.sleep(0.05)
        with pytest.raises(RequestRefused, match="20 bytes of prompts of this key") as info:
            await pool.run("one", 1, int)
        assert (info.value.status, info.value.condition) == (429, "queue_full")
        other = asyncio.ensure_future(pool.run("two", 99, int))
        held[0].cancel()  # its thread goes on, so it still counts
        await asyncio.sleep(0.05)
        with pytest.raises(RequestRefused):
            await pool.run("one", 1, int)
        release.set()
        assert await other == 0
        await held[1]
        while pool._waiting:
            await asyncio.sleep(0.01)
        assert await pool.run("one", 99, int) == 0

    with closing(EncodingPool()) as pool:
        asyncio.run(all_of_it(pool))


def test_an_error_of_the_work_is_the_callers() -> None:
    """And takes no place for ever."""
    with closing(EncodingPool()) as pool:
        with pytest.raises(ZeroDivisionError):
            asyncio.run(pool.run("one", 5, lambda: 1 // 0))
        assert not pool._waiting


def test_a_burst_of_short_prompts_is_taken() -> None:
    """Hundreds at once are an ordinary client's batch; their bytes are nothing."""

    async def all_of_it(pool: EncodingPool) -> list[int]:
        return await asyncio.gather(*(pool.run("one", 50, lambda i=i: i) for i in range(1000)))

    with closing(EncodingPool()) as pool:
        assert asyncio.run(all_of_it(pool)) == list(range(1000))
