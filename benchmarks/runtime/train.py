"""Real PyTorch training on our allocator beside PyTorch's own, on one GPU.

    python benchmarks/runtime/train.py LIBRARY [--out FILE] [--steps N]

Each run is a process of its own: PyTorch's default allocator, its expandable
segments, and ours by `CUDAPluggableAllocator`, interleaved, twice each. The job
is a Llama shape of random weights with a new length every step. Compared are
the losses (equal bit for bit), the median step, and the most bytes held. Needs
torch and transformers, and of Bedplate only the built library.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

WAYS = ("default", "expandable", "bedplate")
STATS_WORDS = 2 * 6 * 4 + 12 + 2 * 5
RESERVED_PEAK = 2 * 6 * 4 + 9
ALLOCATED_PEAK = 2 * 6 * 4 + 8


def install(torch: Any, library: str) -> None:
    """Our allocator under PyTorch, as `bedplate.runtime.torch_plugin` does it."""
    made = torch.cuda.memory.CUDAPluggableAllocator(
        library, "bp_runtime_torch_allocate", "bp_runtime_torch_free"
    )
    native = made.allocator()
    symbol = ctypes.CDLL(library).bp_runtime_torch_record_stream
    native.set_record_stream_fn(ctypes.cast(symbol, ctypes.c_void_p).value)
    torch.cuda.memory.change_current_allocator(made)


def run(way: str, library: str, steps: int) -> dict[str, Any]:
    """Train; losses, seconds of each step, and bytes."""
    import random

    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    if way == "bedplate":
        install(torch, library)
    draw = random.Random(20)
    torch.manual_seed(20)
    torch.use_deterministic_algorithms(True)
    config = LlamaConfig(
        vocab_size=32_000,
        hidden_size=1536,
        intermediate_size=4096,
        num_hidden_layers=16,
        num_attention_heads=16,
        num_key_value_heads=16,
        max_position_embeddings=4096,
    )
    with torch.device("cuda"):
        model = LlamaForCausalLM(config).to(torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    losses, seconds = [], []
    for _ in range(steps):
        shape = draw.choice((2, 4, 8)), draw.randrange(64, 1536)
        batch = torch.randint(0, 32_000, shape, generator=torch.Generator().manual_seed(shape[1]))
        torch.cuda.synchronize()
        start = time.perf_counter()
        given = batch.to("cuda")
        loss = model(given, labels=given).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    if way == "bedplate":
        words = (ctypes.c_uint64 * STATS_WORDS)()
        ctypes.CDLL(library).bp_runtime_torch_stats(0, words)
        reserved, allocated = words[RESERVED_PEAK], words[ALLOCATED_PEAK]
    else:
        reserved = torch.cuda.max_memory_reserved()
        allocated = torch.cuda.max_memory_allocated()
    return {
        "way": way,
        "losses": losses,
        "seconds": seconds,
        "reserved_peak_bytes": reserved,
        "allocated_peak_bytes": allocated,
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name(),
    }


def main() -> int:
    """Run all ways twice, print the table; 1 when a loss differs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("library")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.way:
        print("ROW " + json.dumps(run(given.way, given.library, given.steps)))
        return 0
    rows: list[dict[str, Any]] = []
    for turn in range(2):
        for way in WAYS:
            environment = os.environ | {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
            if way == "expandable":
                environment["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
            done = subprocess.run(
                [sys.executable, __file__, given.library, "--way", way, "--steps",
                 str(given.steps)],
                capture_output=True, text=True, env=environment, check=False,
            )  # fmt: skip
            found = [line[4:] for line in done.stdout.splitlines() if line.startswith("ROW ")]
            if done.returncode or not found:
                print(f"{way}: failed\n{done.stderr[-2000:]}")
                return 1
            row = json.loads(found[0]) | {"turn": turn}
            rows.append(row)
            step = statistics.median(row["seconds"][3:])
            print(
                f"{way:11s} median step {step * 1e3:7.2f} ms  reserved "
                f"{row['reserved_peak_bytes'] / 2**30:6.2f} GiB  allocated "
                f"{row['allocated_peak_bytes'] / 2**30:6.2f}  last loss {row['losses'][-1]:.6f}",
                flush=True,
            )
    equal = all(row["losses"] == rows[0]["losses"] for row in rows)
    print(f"losses {'equal bit for bit' if equal else 'DIFFER'}")
    if given.out:
        given.out.write_text(json.dumps(rows, indent=1) + "\n")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
