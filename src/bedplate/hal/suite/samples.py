"""Small inputs of every op, seeded by the op's name: what the op cases are run on."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bedplate.hal.dtype import DType

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Sample:
    """Inputs of an op by tensor name, shapes of its pure outputs, attributes.

    An input of uint8 that `blocks` names is the bytes of rows of that format.
    """

    inputs: Mapping[str, Array]
    outputs: Mapping[str, tuple[tuple[int, ...], DType]]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    blocks: Mapping[str, DType] = field(default_factory=dict)


def _numbers(op: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(op.encode()))


def normal(op: str, *shape: int) -> Array:
    """Standard normal float32 numbers, the same for the same op and shape."""
    return _numbers(op + str(shape)).standard_normal(shape, np.float32)


def _rows(op: str) -> Sample:
    x = {"x": normal(op, 5, 64)}
    if op == "rmsnorm":
        weight = {"weight": normal(op, 64)}
        return Sample(x | weight, {"out": ((5, 64), DType.F32)}, {"eps": 1e-5})
    if op == "softmax":
        return Sample(x, {"out": ((5, 64), DType.F32)}, {"scale": 1.0})
    if op == "reduce":
        return Sample(x, {"out": ((5,), DType.F32)})
    return Sample(x, {"out": ((5, 64), DType.BF16)})


def _attention() -> Sample:
    caches = {name: normal(name, 6, 2, 16, 64) for name in ("k_cache", "v_cache")}
    tables = {
        "block_table": np.array([[4, 1], [2, 0]], "i4"),
        "query_start": np.array([0, 3, 4], "i4"),
        "context_length": np.array([19, 7], "i4"),
    }
    inputs = {"q": normal("q", 4, 4, 64)} | caches | tables
    return Sample(inputs, {"out": ((4, 4, 64), DType.F32)}, {"scale": 0.125})


def _sampling() -> Sample:
    row = np.zeros(
        3, [("f", "f4", 3), ("k", "u4"), ("seed", "u8"), ("at", "u8"), ("pad", "u1", 32)]
    )
    row["f"] = [[0, 1, 0], [0.8, 0.9, 0.05], [1.2, 1, 0]]
    row["k"], row["seed"], row["at"] = [0, 20, 0], [1, 2, 3], [0, 5, 9]
    inputs = {"logits": 3 * normal("sample", 3, 200), "rows": row.view("u1").reshape(3, 64)}
    return Sample(inputs, {"tokens": ((3,), DType.I32)})


def _quantized() -> Sample:
    block = np.zeros((7, 2), [("scale", "f2"), ("codes", "i1", 32)])
    numbers = _numbers("quantized_matmul")
    block["scale"] = numbers.uniform(0.01, 0.1, (7, 2))
    block["codes"] = numbers.integers(-127, 128, (7, 2, 32))
    rows = block.view("u1").reshape(7, 68)
    inputs = {"a": normal("qa", 5, 64), "w": rows}
    out = {"out": ((5, 7), DType.F32)}
    return Sample(inputs, out, {"activation": 0}, {"w": DType.Q8_0})


def sample_of(op: str) -> Sample | None:
    """Small inputs for an op; None for one that has none yet."""
    cache = (4, 2, 16, 8)
    samples = {
        "matmul": lambda: Sample(
            {"a": normal("a", 5, 32), "b": normal("b", 32, 7)}, {"out": ((5, 7), DType.F32)}
        ),
        "quantized_matmul": _quantized,
        "rmsnorm": lambda: _rows("rmsnorm"),
        "softmax": lambda: _rows("softmax"),
        "reduce": lambda: _rows("reduce"),
        "convert": lambda: _rows("convert"),
        "silu_mul": lambda: Sample(
            {"gate_up": normal("silu_mul", 5, 64)}, {"out": ((5, 32), DType.F32)}
        ),
        "embedding": lambda: Sample(
            {"table": normal("embedding", 9, 16), "ids": np.array([8, 0, 3, 3], "i4")},
            {"out": ((4, 16), DType.F32)},
        ),
        "rope": lambda: Sample(
            {
                "x": normal("rope", 3, 2, 16),
                "positions": np.array([0, 5, 1000], "i4"),
                "inverse_frequency": (10000.0 ** (-np.arange(8) / 8)).astype("f4"),
            },
            {},
            {"pairing": 0, "scale": 1.0},
        ),
        "kv_write": lambda: Sample(
            {
                "k": normal("k", 3, 2, 8),
                "v": normal("v", 3, 2, 8),
                "slots": np.array([17, -1, 60], "i4"),
                "k_cache": normal("kc", *cache),
                "v_cache": normal("vc", *cache),
            },
            {},
        ),
        "block_copy": lambda: Sample(
            {
                "pairs": np.array([[0, 3], [1, 2]], "i4"),
                "k_cache": normal("kc", 2, *cache),
                "v_cache": normal("vc", 2, *cache),
            },
            {},
        ),
        "paged_attention": _attention,
        "sample": _sampling,
    }
    make = samples.get(op)
    return None if make is None else make()
