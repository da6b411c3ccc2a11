"""Kernels for Triton, each compiled to a text of its own, without a GPU.

    python triton_kernels.py FOLDER

A text's first line says how much shared memory a launch must give. Triton adds two pointers,
to scratch memory that none of these kernels has, behind the arguments.
"""

# Triton reads annotations and source, so these are written its way.
# mypy: ignore-errors
# ruff: noqa: D103, N803

from __future__ import annotations

import re
import sys
from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def vecadd(x, y, z, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = at < n
    tl.store(z + at, tl.load(x + at, mask=keep) + tl.load(y + at, mask=keep), mask=keep)


@triton.jit
def softmax(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    power = tl.exp(value - tl.max(value, 0))
    tl.store(y + row * columns + at, power / tl.sum(power, 0), mask=at < columns)


@triton.jit
def layernorm(x, w, b, y, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    keep = at < columns
    value = tl.load(x + row * columns + at, mask=keep, other=0.0).to(tl.float32)
    mean = tl.sum(value, 0) / columns
    apart = tl.where(keep, value - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(apart * apart, 0) / columns + eps)
    out = apart * scale * tl.load(w + at, mask=keep) + tl.load(b + at, mask=keep)
    tl.store(y + row * columns + at, out.to(tl.float16), mask=keep)


@triton.jit
def matmul(a, b, c, k, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    total = tl.zeros((M, N), dtype=tl.float32)
    for start in range(0, k, K):
        left = tl.load(a + rows[:, None] * k + (start + inner)[None, :])
        right = tl.load(b + (start + inner)[:, None] * n + columns[None, :])
        total += tl.dot(left, right)
    tl.store(c + rows[:, None] * n + columns[None, :], total)


@triton.jit
def dropout(x, y, n, seed, keep, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    kept = tl.rand(seed, at) < keep
    tl.store(y + at, tl.where(kept, value / keep, 0.0), mask=at < n)


@triton.jit
def total(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out, tl.sum(tl.load(x + at, mask=at < n, other=0.0), 0))


@triton.jit
def argmax(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    tl.store(out + row, tl.argmax(value, 0))


@triton.jit
def histogram(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out + tl.load(x + at, mask=at < n, other=0), 1, mask=at < n)


@triton.jit
def cumsum(x, y, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.cumsum(tl.load(x + at), 0))


@triton.jit
def silu_and_mul(x, g, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n).to(tl.float32)
    gate = tl.load(g + at, mask=at < n).to(tl.float32)
    tl.store(y + at, (gate * tl.sigmoid(gate) * value).to(tl.bfloat16), mask=at < n)


F32, F16, BF16, I32 = "*fp32", "*fp16", "*bf16", "*i32"
KERNELS = {
    "vecadd": (vecadd, (F32, F32, F32, "i32"), {"BLOCK": 256}),
    "softmax": (softmax, (F32, F32, "i32"), {"BLOCK": 256}),
    "layernorm": (layernorm, (F16, F32, F32, F16, "i32", "fp32"), {"BLOCK": 256}),
    "matmul": (matmul, (F16, F16, F32, "i32", "i32"), {"M": 32, "N": 32, "K": 32}),
    "dropout": (dropout, (F32, F32, "i32", "i32", "fp32"), {"BLOCK": 256}),
    "total": (total, (F32, F32, "i32"), {"BLOCK": 256}),
    "argmax": (argmax, (F32, I32, "i32"), {"BLOCK": 256}),
    "histogram": (histogram, (I32, I32, "i32"), {"BLOCK": 256}),
    "cumsum": (cumsum, (F32, F32), {"BLOCK": 256}),
    "silu_and_mul": (silu_and_mul, (BF16, BF16, BF16, "i32"), {"BLOCK": 256}),
}


def anonymous(text, folder):
    """Without a folder of this machine: in `.file`, and as many dots in debug sections."""
    spelled = r"\s+".join(rf"\.b8 {byte}\b[^\n]*" for byte in folder.encode())
    text = re.sub(spelled, "\n".join([".b8 46"] * len(folder)), text)
    return text.replace(folder + "/", "")


def main(folder: Path) -> None:
    """Write `triton.NAME.ARCH.ptx` of each kernel."""
    for capability in (80, 90):
        for name, (function, types, constants) in KERNELS.items():
            # Triton takes a matrix product of sm_90 to wgmma, which is another machine's.
            if (name, capability) == ("matmul", 90):
                continue
            names = [*function.arg_names]
            kinds = dict(zip(names, (*types, *("constexpr" for _ in constants)), strict=True))
            aligned = {
                (i,): [["tt.divisibility", 16]]
                for i, kind in enumerate(types)
                if kind.startswith("*") or name == "matmul"
            }
            source = ASTSource(function, kinds, constants, aligned)
            made = triton.compile(source, GPUTarget("cuda", capability, 32), {"num_stages": 3})
            text = f"// shared {made.metadata.shared}\n{made.asm['ptx']}"
            for path in (Path(__file__).resolve().parent, Path(triton.__file__).parent):
                text = anonymous(text, str(path))
            (folder / f"triton.{name}.sm_{capability}.ptx").write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
