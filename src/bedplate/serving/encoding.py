"""From what was asked to token ids, away from the event loop and within bounds.

A text that cannot fit the context is refused by its bytes, before template and
tokenizer see it: a token has a longest form, so so many bytes are too many tokens
whatever they are. What remains runs on threads of its own, so that long prompts
keep neither answers nor other work of the process waiting, and a caller has a
bounded number of them there.
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
MOST_WAITING = 16  # requests of one caller; one takes milliseconds
_Result = TypeVar("_Result")


def check_bytes(texts: Iterable[str], context_tokens: int, longest_token_bytes: int) -> None:
    """Raise `RequestRefused` when `texts` together are more than `context_tokens` can hold."""
    most = context_tokens * longest_token_bytes
    size = sum(len(text.encode("utf-8", "replace")) for text in texts)
    if size > most:
        raise RequestRefused(
            f"the prompt has {size} bytes, this model's context of {context_tokens} tokens "
            f"holds at most {most}",
            code="serving.context_length_exceeded",
            param="prompt",
        )


class EncodingPool:
    """Threads that turn prompts into ids. Thread-safe."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="encode")
        self._lock = threading.Lock()
        self._waiting: Counter[str] = Counter()

    async def run(self, caller: str, work: Callable[[], _Result]) -> _Result:
        """The result of `work`. Raises `RequestRefused` (429) beyond `MOST_WAITING`."""
        with self._lock:
            if self._waiting[caller] >= MOST_WAITING:
                raise RequestRefused(
                    f"{MOST_WAITING} prompts of this key are still being read",
                    code="serving.queue_full",
                    status=429,
                    remedy="try again later",
                )
            self._waiting[caller] += 1

        def ended(future: Future[_Result]) -> None:
            with self._lock:
                self._waiting[caller] -= 1
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
