"""From what was asked to token ids, away from the event loop and within bounds.

A text that cannot fit the context is refused by its bytes, before template and
tokenizer see it: a token has a longest form, so so many bytes are too many tokens
whatever they are. What remains runs on threads of its own, so that long prompts
keep neither answers nor other work of the process waiting, and a caller has a
bounded number of bytes there.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from bedplate.serving.errors import RequestRefused

THREADS = 2
MOST_WAITING_BYTES = 4 << 20  # of one caller: 10 s of work; a chat's few kB are milliseconds
_Result = TypeVar("_Result")


def check_bytes(texts: Iterable[str], context_tokens: int, longest_token_bytes: int) -> int:
    """The bytes of `texts` together.

    Raises `RequestRefused` when they are more than `context_tokens` can hold.
    """
    most = context_tokens * longest_token_bytes
    size = sum(len(text.encode("utf-8", "replace")) for text in texts)
    if size > most:
        raise RequestRefused(
            f"the prompt has {size} bytes, this model's context of {context_tokens} tokens "
            f"holds at most {most}",
            code="serving.context_length_exceeded",
            param="prompt",
        )
    return size


class EncodingPool:
    """Threads that turn prompts into ids. Thread-safe."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="encode")
        self._lock = threading.Lock()
        self._waiting: Counter[str] = Counter()

    async def run(self, caller: str, size: int, work: Callable[[], _Result]) -> _Result:
        """The result of `work` on `size` bytes.

        Raises `RequestRefused` (429) beyond `MOST_WAITING_BYTES`; one alone always passes.
        """
        with self._lock:
            waiting = self._waiting[caller]
            if waiting and waiting + size > MOST_WAITING_BYTES:
                raise RequestRefused(
                    f"{waiting} bytes of prompts of this key are still being read",
                    code="serving.queue_full",
                    status=429,
                    remedy="try again later",
                )
            self._waiting[caller] += size

        def ended(future: Future[_Result]) -> None:
            with self._lock:
                self._waiting[caller] -= size
                if not self._waiting[caller]:
                    del self._waiting[caller]

        try:
            future = self._threads.submit(work)
        except BaseException:
            ended(Future())
            raise
        future.add_done_callback(ended)
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """End the threads when their work is done; what waits is dropped."""
        self._threads.shutdown(wait=False, cancel_futures=True)
