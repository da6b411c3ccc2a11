"""llama.cpp as a peer in a process of its own: one JSON command a line, one answer each.

Commands: {"do": "load", "path", "batch", "tokens"}, then {"do": "decode", "context",
"steps", "seed"} and {"do": "prefill", "tokens", "seed"}; each answers
{"elapsed_ns", "tokens"}. The measured part is what llama-bench and
llama-batched-bench time: llama_decode with logits of every sequence's last token,
no sampling. Two threads, its defaults for everything else.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time
from typing import Any

import llama_cpp
import numpy as np

THREADS = int(os.environ.get("BEDPLATE_PEER_THREADS", "2"))


class Peer:
    """One loaded model and context."""

    def __init__(self, path: str, batch: int, tokens: int) -> None:
        model = llama_cpp.llama_model_default_params()
        model.n_gpu_layers = 0
        self._model = llama_cpp.llama_model_load_from_file(path.encode(), model)
        context = llama_cpp.llama_context_default_params()
        context.n_ctx = batch * tokens
        context.n_batch = context.n_ubatch = 512
        context.n_seq_max = batch
        context.n_threads = context.n_threads_batch = THREADS
        context.kv_unified = False
        context.no_perf = True
        self._context = llama_cpp.llama_init_from_model(self._model, context)
        if not self._context:
            raise SystemExit("llama.cpp makes no context")
        self._memory = llama_cpp.llama_get_memory(self._context)
        vocabulary = llama_cpp.llama_model_get_vocab(self._model)
        self._vocabulary = llama_cpp.llama_vocab_n_tokens(vocabulary)
        self._batch = llama_cpp.llama_batch_init(512, 0, 1)
        self._sequences = batch

    def _decode(self, rows: list[tuple[int, int, int, bool]]) -> None:
        """Run rows of (token, position, sequence, wants logits)."""
        b = self._batch
        b.n_tokens = len(rows)
        for i, (token, position, sequence, logits) in enumerate(rows):
            b.token[i], b.pos[i], b.n_seq_id[i] = token, position, 1
            b.seq_id[i][0] = sequence
            b.logits[i] = logits
        if llama_cpp.llama_decode(self._context, b):
            raise SystemExit("llama_decode failed")

    def _fill(self, rng: np.random.Generator, context: int) -> None:
        llama_cpp.llama_memory_clear(self._memory, True)
        for sequence in range(self._sequences):
            ids = rng.integers(20, self._vocabulary, context).tolist()
            for first in range(0, context, 512):
                part = ids[first : first + 512]
                self._decode([(t, first + i, sequence, False) for i, t in enumerate(part)])
        llama_cpp.llama_synchronize(self._context)

    def decode(self, context: int, steps: int, seed: int) -> dict[str, int]:
        """Time `steps` steps of one token for every sequence, from `context` tokens on."""
        rng = np.random.default_rng(seed)
        self._fill(rng, context)
        ids = rng.integers(20, self._vocabulary, (steps, self._sequences)).tolist()
        start = time.perf_counter_ns()
        for step in range(steps):
            self._decode([(t, context + step, s, True) for s, t in enumerate(ids[step])])
            llama_cpp.llama_synchronize(self._context)
            ctypes.cast(llama_cpp.llama_get_logits_ith(self._context, 0), ctypes.c_void_p)
        elapsed = time.perf_counter_ns() - start
        return {"elapsed_ns": elapsed, "tokens": steps * self._sequences}

    def prefill(self, tokens: int, seed: int) -> dict[str, int]:
        """Time one prompt of up to 512 tokens, logits of the last."""
        ids = np.random.default_rng(seed).integers(20, self._vocabulary, tokens).tolist()
        llama_cpp.llama_memory_clear(self._memory, True)
        start = time.perf_counter_ns()
        self._decode([(t, i, 0, i == tokens - 1) for i, t in enumerate(ids)])
        llama_cpp.llama_synchronize(self._context)
        return {"elapsed_ns": time.perf_counter_ns() - start, "tokens": tokens}


def quantize(source: str, target: str, kind: str) -> dict[str, Any]:
    """Requantise a model file, as llama.cpp itself does it."""
    parameters = llama_cpp.llama_model_quantize_default_params()
    parameters.ftype = getattr(llama_cpp, f"LLAMA_FTYPE_MOSTLY_{kind.upper()}")
    parameters.allow_requantize = True
    parameters.nthread = THREADS
    code = llama_cpp.llama_model_quantize(source.encode(), target.encode(), parameters)
    if code:
        raise SystemExit(f"llama.cpp cannot write {kind}: {code}")
    return {"path": target}


def main() -> None:
    """Answer commands until the input ends."""
    silence = llama_cpp.llama_log_callback(lambda level, text, user: None)
    llama_cpp.llama_log_set(silence, None)
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the library prints; answers have a stream of their own
    peer: Peer | None = None
    for line in sys.stdin:
        command = json.loads(line)
        action = command.pop("do")
        if action == "load":
            peer = Peer(**command)
            answer: dict[str, Any] = {"version": llama_cpp.__version__}
        elif action == "quantize":
            answer = quantize(**command)
        else:
            assert peer is not None
            answer = getattr(peer, action)(**command)
        out.write(json.dumps(answer) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
