"""How each op becomes launches of the tuned CPU kernels.

One function per op turns a checked call into launches; its scalars mirror the
`parameters` struct of `native/kernels/cpu/<kernel>.c`: addresses first, then
64-bit, then 32-bit fields.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from bedplate.hal.api import Argument, Buffer, DType, Range, Tensor
from bedplate.kernels.call import Call, format_of
from bedplate.kernels.pack import PANEL

TYPE_CODES = {"f32": 0, "bf16": 1, "q8_0": 2, "q4_0": 3, "q4_1": 4}
"""Element types as the kernels are told them (`native/kernels/cpu/launch.h`)."""

ROW_BLOCK_BYTES = 16384
"""Bytes that make a block of a row-wise kernel worth waking a worker for (about 1 us of work)."""
PANELS_PER_BLOCK = 2
"""Panels of one block of a product's grid (`native/kernels/cpu/product.h`)."""
ATTENTION_BLOCKS = 256
"""Most blocks of an attention grid; each is an equal share of the seen keys."""


@dataclass(frozen=True)
class Launch:
    """One kernel launch: name in the module, blocks, packed arguments."""

    kernel: str
    grid: int
    arguments: tuple[Argument, ...]
    shared_bytes: int = 0


def activation_row_bytes(depth: int) -> int:
    """Bytes of one row of int8 activations: codes, scales, corrections, 64-byte aligned."""
    return (depth + depth // 32 * 8 + 63) // 64 * 64


def _scalars(longs: list[int], words: str = "", *values: float) -> bytes:
    tail = struct.pack(f"<{words}", *values)
    return struct.pack(f"<{len(longs)}q", *longs) + tail + bytes(-len(tail) % 8)


def _row_grid(rows: int, row_bytes: int) -> int:
    return max(1, min(rows, rows * row_bytes // ROW_BLOCK_BYTES))


def _panel_grid(columns: int) -> int:
    return -(-columns // (PANEL * PANELS_PER_BLOCK))


def _code(tensor: Tensor) -> int:
    return TYPE_CODES[format_of(tensor)]


def _row_stride(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.strides[0]


def pack_launch(
    op: str, source: str, rows: Tensor, row_bytes: int, panels: Tensor, shape: tuple[int, int]
) -> Launch:
    """Weights of `shape` [N,K] in format `source`, `row_bytes` apart, into panels."""
    n, k = shape
    panel_bytes = panels.extent_bytes // panels.shape[0]
    kind = TYPE_CODES["bf16" if panels.dtype == DType.BF16 else "f32"]
    scalars = _scalars([n, k, row_bytes, panel_bytes], "II", TYPE_CODES[source], kind)
    kernel = "pack_blocks" if op == "quantized_matmul" else "pack_floats"
    return Launch(kernel, panels.shape[0], (rows, panels, scalars))


def rmsnorm(call: Call, workspace: Buffer | None) -> list[Launch]:
    """x, weight, count, out."""
    x, out = call.needed("x"), call.needed("out")
    rows, width = x.shape
    scalars = _scalars(
        [rows, width, x.strides[0], out.strides[0]], "fI", call.attributes["eps"], _code(out)
    )
    places = (x, call.tensor("weight"), call.tensor("count"), out)
    return [Launch("rmsnorm", _row_grid(rows, 8 * width), (*places, scalars))]


def silu_mul(call: Call, workspace: Buffer | None) -> list[Launch]:
    """gate_up, count, out."""
    gate_up, out = call.needed("gate_up"), call.needed("out")
    rows, width = out.shape
    scalars = _scalars([rows, width, gate_up.strides[0], out.strides[0]], "II", _code(out), 0)
    places = (gate_up, call.tensor("count"), out)
    return [Launch("silu_mul", _row_grid(rows, 16 * width), (*places, scalars))]


def convert(call: Call, workspace: Buffer | None) -> list[Launch]:
    """x, count, out."""
    x, out = call.needed("x"), call.needed("out")
    rows, width = x.shape
    scalars = _scalars([rows, width, x.strides[0], out.strides[0]], "II", _code(out), 0)
    return [Launch("convert", _row_grid(rows, 6 * width), (x, call.tensor("count"), out, scalars))]


def embedding(call: Call, workspace: Buffer | None) -> list[Launch]:
    """table, ids, count, out; rows of the table may lie apart."""
    table, out = call.needed("table"), call.needed("out")
    rows, width = out.shape
    row_bytes = table.strides[0] // table.dtype.block_elements * table.dtype.block_bytes
    scalars = _scalars(
        [rows, width, table.shape[0], row_bytes, out.strides[0]], "II", _code(table), 0
    )
    places = (table, call.tensor("ids"), call.tensor("count"), out)
    return [Launch("embedding", _row_grid(rows, 8 * width), (*places, scalars))]


def rope(call: Call, workspace: Buffer | None) -> list[Launch]:
    """x in place, positions, inverse_frequency, count."""
    x = call.needed("x")
    rows, heads, dim = x.shape
    scalars = _scalars(
        [rows, heads, dim, x.strides[0], x.strides[1]],
        "If",
        call.attributes["pairing"],
        call.attributes["scale"],
    )
    places = (x, call.tensor("positions"), call.tensor("inverse_frequency"), call.tensor("count"))
    return [Launch("rope", _row_grid(rows, 8 * heads * dim), (*places, scalars))]


def kv_write(call: Call, workspace: Buffer | None) -> list[Launch]:
    """k, v, slots, count, k_cache, v_cache; caches dense."""
    k, v, k_cache, v_cache = (call.needed(n) for n in ("k", "v", "k_cache", "v_cache"))
    blocks, heads, block_size, dim = k_cache.shape
    scalars = _scalars(
        [k.shape[0], heads, dim, block_size, blocks, *k.strides[:2], *v.strides[:2]],
        "II",
        _code(k_cache),
        _code(v_cache),
    )
    places = (k, v, call.tensor("slots"), call.tensor("count"), k_cache, v_cache)
    return [Launch("kv_write", _row_grid(k.shape[0], 12 * heads * dim), (*places, scalars))]


def paged_attention(call: Call, workspace: Buffer | None) -> list[Launch]:
    """q, caches, block_table, query_start, context_length, sequence_count, out."""
    q, out, table = call.needed("q"), call.needed("out"), call.needed("block_table")
    k_cache, v_cache = call.needed("k_cache"), call.needed("v_cache")
    tokens, heads, dim = q.shape
    blocks, kv_heads, block_size, _ = k_cache.shape
    sequences, width = table.shape
    shape = [tokens, heads, kv_heads, dim, block_size, blocks, sequences, table.strides[0], width]
    scalars = _scalars(
        [*shape, *q.strides[:2], *out.strides[:2]],
        "IIIIff",
        _code(k_cache),
        _code(v_cache),
        _code(out),
        call.attributes["sliding_window"],
        call.attributes["scale"],
        call.attributes["soft_cap"],
    )
    names = ("block_table", "query_start", "context_length", "sequence_count")
    places = (q, k_cache, v_cache, *(call.tensor(n) for n in names), out)
    grid = max(1, min(tokens * kv_heads, ATTENTION_BLOCKS))
    return [Launch("paged_attention", grid, (*places, scalars))]


def sample(call: Call, workspace: Buffer | None) -> list[Launch]:
    """logits, rows, count, tokens, logprob, then the workspace."""
    logits, rows = call.needed("logits"), call.needed("rows")
    count, width = logits.shape
    scalars = _scalars([count, width, logits.strides[0], rows.strides[0]])
    names = ("count", "tokens", "logprob")
    places = (logits, rows, *(call.tensor(n) for n in names), workspace)
    return [Launch("sample", max(1, count), (*places, scalars))]


def block_copy(call: Call, workspace: Buffer | None) -> list[Launch]:
    """pairs, count, k_cache, v_cache."""
    pairs, k_cache, v_cache = (call.needed(n) for n in ("pairs", "k_cache", "v_cache"))
    layers, blocks = k_cache.shape[:2]
    size = k_cache.dtype.block_bytes
    block_bytes = k_cache.strides[1] * size
    layer_bytes = [cache.strides[0] * size for cache in (k_cache, v_cache)]
    scalars = _scalars([pairs.shape[0], layers, blocks, block_bytes, *layer_bytes])
    grid = max(1, pairs.shape[0] * layers)
    return [Launch("block_copy", grid, (pairs, call.tensor("count"), k_cache, v_cache, scalars))]


def matmul(call: Call, workspace: Buffer | None) -> list[Launch]:
    """a, packed weights, bias, residual, count, out."""
    a, out, residual = call.needed("a"), call.needed("out"), call.tensor("residual")
    weights = call.packed("b")
    assert weights is not None
    n, k = weights.shape
    scalars = _scalars(
        [a.shape[0], n, k, a.strides[0], _row_stride(residual), out.strides[0]],
        "IIII",
        _code(a),
        TYPE_CODES[weights.format],
        _code(out),
        0,
    )
    places = (a, weights.tensor, call.tensor("bias"), residual, call.tensor("count"), out)
    return [Launch("matmul", _panel_grid(n), (*places, scalars))]


def quantized_matmul(call: Call, workspace: Buffer | None) -> list[Launch]:
    """Float activations: one launch. int8: quantise the rows into the workspace, then multiply."""
    a, out, residual = call.needed("a"), call.needed("out"), call.tensor("residual")
    weights = call.packed("w")
    assert weights is not None
    n, k = weights.shape
    rows, code, grid = a.shape[0], TYPE_CODES[weights.format], _panel_grid(n)
    tail = (call.tensor("bias"), residual, call.tensor("count"), out)
    strides = [_row_stride(residual), out.strides[0]]
    if not call.attributes["activation"]:
        scalars = _scalars([rows, n, k, a.strides[0], *strides], "II", _code(a), code)
        shared = 4 * 4 * k if format_of(a) == "bf16" else 0
        arguments = (a, weights.tensor, *tail, scalars)
        return [Launch("quantized_matmul_float", grid, arguments, shared)]
    assert workspace is not None
    prepared = Range(workspace, 0, rows * activation_row_bytes(k))
    first = _scalars([rows, k, a.strides[0]], "II", _code(a), code)
    second = _scalars([rows, n, k, *strides], "II", code, 0)
    return [
        Launch("quantize_rows", _row_grid(rows, 4 * k), (a, call.tensor("count"), prepared, first)),
        Launch("quantized_matmul_int8", grid, (prepared, weights.tensor, *tail, second)),
    ]


BUILDERS: dict[str, Callable[[Call, Buffer | None], list[Launch]]] = {
    f.__name__: f
    for f in (
        block_copy,
        convert,
        embedding,
        kv_write,
        matmul,
        paged_attention,
        quantized_matmul,
        rmsnorm,
        rope,
        sample,
        silu_mul,
    )
}
