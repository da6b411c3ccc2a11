"""Record what real PyTorch jobs ask of their device allocator.

    python benchmarks/runtime/record.py --out FOLDER [JOB ...]

Each job runs in a process of its own on the GPU, once with PyTorch's default
allocator, recorded, and once with expandable segments, for its figures alone.
Written for each: `JOB.csv.xz`, the requests in RMM's columns (Thread, Time in
seconds, Action, Pointer, Size in bytes as asked, Stream), and a row of
`jobs.json`: PyTorch's own peaks, its segments in order, and what the job was.
Weights are random: allocation depends on shapes, not on values. Shapes vary by
the seed alone. Needs torch, transformers and a GPU, nothing of Bedplate.
"""

from __future__ import annotations

import argparse
import itertools
import json
import lzma
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SEED = 20
EVENTS = 2_000_000  # the ring of PyTorch's recorder; the jobs stay below it
JOBS: dict[str, Callable[[random.Random], str]] = {}


def job(run: Callable[[random.Random], str]) -> Callable[[random.Random], str]:
    """Make a function a job by its name."""
    JOBS[run.__name__] = run
    return run


def language_model(hidden: int, layers: int, heads: int, checkpoints: bool = False) -> Any:
    """A Llama shape in bf16 on the GPU, weights random."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=32_000,
        hidden_size=hidden,
        intermediate_size=hidden * 8 // 3 // 64 * 64,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        max_position_embeddings=8192,
    )
    with torch.device("cuda"):
        model = LlamaForCausalLM(config).to(torch.bfloat16)
    if checkpoints:
        model.gradient_checkpointing_enable()
    return model


def tokens(rows: int, columns: int) -> Any:
    """Random token ids, rows x columns."""
    import torch

    return torch.randint(0, 32_000, (rows, columns), device="cuda")


@job
def pretrain(draw: random.Random) -> str:
    """Fixed shapes: the easy case every allocator must get right."""
    import torch

    model = language_model(1024, 24, 16)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    for _ in range(6):
        batch = tokens(8, 1024)
        model(batch, labels=batch).loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return "Llama shape, 24 layers of 1024, bf16, AdamW, 6 steps of 8 x 1024 tokens"


@job
def finetune(draw: random.Random) -> str:
    """Low-rank adapters, checkpointed layers, another length each step."""
    import torch

    model = language_model(2048, 20, 16, checkpoints=True)
    model.enable_input_require_grads()
    model.train()
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    adapters = []
    for layer in model.model.layers:
        for linear in (layer.self_attn.q_proj, layer.self_attn.v_proj):
            down = torch.randn(16, 2048, device="cuda", dtype=torch.bfloat16, requires_grad=True)
            up = torch.zeros(2048, 16, device="cuda", dtype=torch.bfloat16, requires_grad=True)
            adapters += [down, up]
            linear.register_forward_hook(
                lambda _, given, out, down=down, up=up: out + given[0] @ down.T @ up.T
            )
    optimizer = torch.optim.AdamW(adapters)
    for _ in range(14):
        batch = tokens(draw.choice((2, 4, 8)), draw.randrange(96, 2048))
        model(batch, labels=batch).loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return "Llama shape, 20 layers of 2048, rank-16 adapters, checkpoints, 14 steps to 2047 tokens"


@job
def inference(draw: random.Random) -> str:
    """A batch server on growing caches: every token makes every cache anew."""
    import torch

    model = language_model(2048, 16, 16).eval()
    with torch.inference_mode():
        for _ in range(6):
            rows, columns = draw.choice((4, 8, 16, 32)), draw.randrange(128, 1536)
            cache, step = None, tokens(rows, columns)
            for _ in range(draw.randrange(8, 40)):
                out = model(step, past_key_values=cache, use_cache=True)
                cache, step = out.past_key_values, out.logits[:, -1:].argmax(-1)
            del cache, out
    return "Llama shape, 16 layers of 2048, dynamic cache, 6 batches to 32 x 1535 tokens"


@job
def ragged(draw: random.Random) -> str:
    """Sequences of every length, sorted by nobody, activations kept to the end."""
    import torch

    layer = torch.nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True, dropout=0.1)
    model = torch.nn.TransformerEncoder(layer, 12, enable_nested_tensor=False)
    model = model.to("cuda", torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(10):
        losses = []
        for _ in range(draw.randrange(2, 7)):
            length = min(4096, int(draw.lognormvariate(6.2, 0.9)) + 16)
            given = torch.randn(draw.randrange(1, 5), length, 1024, device="cuda").bfloat16()
            losses.append(model(given).float().square().mean())
        torch.stack(losses).sum().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return "encoder, 12 layers of 1024, 10 steps of 2 to 6 ragged micro-batches up to 4096 tokens"


@job
def vision(draw: random.Random) -> str:
    """A U-Net at changing resolutions: large pieces of many sizes."""
    import torch
    from torch import nn

    def block(inside: int, outside: int) -> Any:
        return nn.Sequential(
            nn.Conv2d(inside, outside, 3, padding=1), nn.GroupNorm(8, outside), nn.SiLU(),
            nn.Conv2d(outside, outside, 3, padding=1), nn.GroupNorm(8, outside), nn.SiLU(),
        )  # fmt: skip

    class UNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            widths = (3, 64, 128, 256, 512)
            self.down = nn.ModuleList(block(a, b) for a, b in itertools.pairwise(widths))
            self.up = nn.ModuleList(block(a + b, b) for a, b in ((512, 256), (256, 128), (128, 64)))
            self.out = nn.Conv2d(64, 3, 1)

        def forward(self, x: Any) -> Any:
            kept = []
            for index, stage in enumerate(self.down):
                x = stage(x if index == 0 else nn.functional.max_pool2d(x, 2))
                kept.append(x)
            for stage, side in zip(self.up, reversed(kept[:-1]), strict=True):
                x = stage(torch.cat([nn.functional.interpolate(x, side.shape[2:]), side], 1))
            return self.out(x)

    model = UNet().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(40):
        side = draw.randrange(12, 40) * 16
        given = torch.randn(draw.choice((4, 8, 12)), 3, side, side, device="cuda")
        with torch.autocast("cuda", torch.bfloat16):
            loss = (model(given) - given).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return "U-Net of 64 to 512 channels, autocast, 40 steps of 4 to 12 images of 192 to 624 pixels"


@job
def experts(draw: random.Random) -> str:
    """A mixture of experts: routing gives every expert another size each step."""
    import torch
    from torch import nn

    class Experts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.router = nn.Linear(1024, 16)
            self.experts = nn.ModuleList(
                nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024))
                for _ in range(16)
            )

        def forward(self, x: Any) -> Any:
            weight, chosen = self.router(x).softmax(-1).topk(2)
            out = torch.zeros_like(x)
            for index, expert in enumerate(self.experts):
                row, rank = (chosen == index).nonzero(as_tuple=True)
                out.index_add_(0, row, expert(x[row]) * weight[row, rank, None])
            return x + out

    model = nn.Sequential(*(Experts() for _ in range(6))).to("cuda", torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(6):
        given = torch.randn(draw.randrange(4096, 24_576), 1024, device="cuda").bfloat16()
        model(given).float().square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return "6 layers of 16 experts of 4096, top 2, AdamW, 6 steps of 4,096 to 24,575 tokens"


@job
def prefetch(draw: random.Random) -> str:
    """Two streams: batches arrive on one and are used on the other."""
    import torch

    model = torch.nn.Sequential(
        *(m for _ in range(8) for m in (torch.nn.Linear(4096, 4096), torch.nn.GELU()))
    ).to("cuda", torch.bfloat16)
    optimizer = torch.optim.SGD(model.parameters(), momentum=0.9)
    side = torch.cuda.Stream()

    def fetch() -> Any:
        with torch.cuda.stream(side):
            rows = draw.randrange(2048, 65_536)
            return torch.randn(rows, 4096).pin_memory().to("cuda", non_blocking=True).bfloat16()

    ahead = fetch()
    for _ in range(30):
        torch.cuda.current_stream().wait_stream(side)
        batch, ahead = ahead, fetch()
        batch.record_stream(torch.cuda.current_stream())
        model(batch).float().square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        del batch
    return "8 layers of 4096, SGD, 30 steps of 2,048 to 65,535 rows fetched on a second stream"


@job
def evaluation(draw: random.Random) -> str:
    """Training interrupted by evaluations of other shapes: memory after a change of phase."""
    import torch

    model = language_model(1024, 16, 16)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(5):
        for _ in range(2):
            batch = tokens(16, draw.choice((256, 512, 1024)))
            model(batch, labels=batch).loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        with torch.no_grad():
            for _ in range(3):
                model(tokens(draw.randrange(1, 64), draw.randrange(32, 1024))).logits.float()
    return "Llama shape, 16 layers of 1024, 5 times: 2 training steps, 3 evaluations of any shape"


def run_one(name: str, out: Path | None) -> None:
    """Runs a job in this process; with `out`, recorded. Prints its row as JSON."""
    import torch

    torch.manual_seed(SEED)
    torch.cuda.init()
    started = time.monotonic()
    if out is not None:
        torch.cuda.memory._record_memory_history("all", context=None, max_entries=EVENTS)
    what = JOBS[name](random.Random(SEED))
    torch.cuda.synchronize()
    stats = torch.cuda.memory_stats()
    row = {
        "job": name,
        "what": what,
        "seconds": round(time.monotonic() - started, 3),
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name(),
        "peak_requested_bytes": stats["requested_bytes.all.peak"],
        "peak_allocated_bytes": stats["allocated_bytes.all.peak"],
        "peak_reserved_bytes": stats["reserved_bytes.all.peak"],
        "retries": stats["num_alloc_retries"],
    }
    if out is not None:
        row |= write(torch.cuda.memory._snapshot()["device_traces"][0], out)
    print("ROW " + json.dumps(row))


def write(events: list[dict[str, Any]], out: Path) -> dict[str, Any]:
    """Writes the requests; returns the counts and PyTorch's own segments."""
    first = events[0]["time_us"] if events else 0
    segments, requests = [], 0
    with lzma.open(out, "wt", preset=9) as file:
        file.write("Thread,Time,Action,Pointer,Size,Stream\n")
        for event in events:
            action = {"alloc": "allocate", "free_requested": "free"}.get(event["action"])
            if action is not None:
                requests += 1
                when = (event["time_us"] - first) / 1e6
                file.write(
                    f"0,{when:.6f},{action},{event['addr']:#x},{event['size']},{event['stream']}\n"
                )
            elif event["action"].startswith("segment"):
                segments.append((event["action"], event["size"], requests))
    return {"requests": requests, "events": len(events), "segments": segments}


def main() -> int:
    """Record the jobs; 1 when one failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("jobs", nargs="*", choices=[*JOBS, []], help="default: all")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--one", choices=JOBS, help=argparse.SUPPRESS)
    parser.add_argument("--plain", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        run_one(given.one, None if given.plain else given.out / f"{given.one}.csv.xz")
        return 0
    given.out.mkdir(parents=True, exist_ok=True)
    rows, failed = [], 0
    for name in given.jobs or JOBS:
        command = [sys.executable, __file__, "--out", str(given.out), "--one", name]
        expandable = os.environ | {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
        found = []
        for more, environment in (([], None), (["--plain"], expandable)):
            done = subprocess.run(
                [*command, *more], capture_output=True, text=True, env=environment, check=False
            )
            lines = [line[4:] for line in done.stdout.splitlines() if line.startswith("ROW ")]
            if done.returncode or not lines:
                failed += 1
                print(f"{name}: failed\n{done.stderr[-1500:]}", flush=True)
                break
            found.append(json.loads(lines[0]))
        if len(found) == 2:
            row = found[0] | {"peak_reserved_expandable_bytes": found[1]["peak_reserved_bytes"]}
            rows.append(row)
            print(
                f"{name:12s} {row['seconds']:6.1f} s {row['requests']:8d} requests  requested "
                f"{row['peak_requested_bytes'] / 2**30:6.2f} GiB  reserved "
                f"{row['peak_reserved_bytes'] / 2**30:6.2f}  expandable "
                f"{row['peak_reserved_expandable_bytes'] / 2**30:6.2f}",
                flush=True,
            )
    (given.out / "jobs.json").write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
