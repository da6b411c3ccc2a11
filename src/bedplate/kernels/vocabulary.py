"""The serving ops: one schema each, outputs last.

`count` is u32[1] in device memory, the number of rows in use (at most the
shape's T); rows past it are neither read nor written. Absent, it is T. It is
what lets one recorded batch serve many sizes.
"""

from __future__ import annotations

from bedplate.kernels.schema import AttributeRule, Schema, TensorRule

_FLOATS = ("f32", "bf16")
_BLOCKS = ("q8_0", "q4_0", "q4_1")
_COUNT = TensorRule("count", (1,), ("u32",), optional=True)
_LARGEST = 3.0e38
_U32 = 2**32 - 1

KEEP_FLOAT = 0
"""`quantized_matmul` activation: dequantise the weights, keep float activations."""
INT8_BLOCKS = 1
"""`quantized_matmul` activation: int8 blocks of 32, a precision class of its own."""
HALF_SPLIT = 0
"""`rope` pairing: element i turns with element i + D/2."""
ADJACENT = 1
"""`rope` pairing: element 2i turns with element 2i + 1."""

SAMPLE_ROW_BYTES = 64
"""sizeof(bp_sample_row)."""

SCHEMAS: dict[str, Schema] = {
    s.name: s
    for s in (
        Schema(
            "embedding",
            (
                TensorRule("table", ("V", "H"), _FLOATS + _BLOCKS),
                TensorRule("ids", ("T",), ("i32",)),
                _COUNT,
                TensorRule("out", ("T", "H"), ("f32",), "out"),
            ),
        ),
        Schema(
            "rmsnorm",
            (
                TensorRule("x", ("T", "H"), ("f32",)),
                TensorRule("weight", ("H",), ("f32",)),
                _COUNT,
                TensorRule("out", ("T", "H"), _FLOATS, "out"),
            ),
            (AttributeRule("eps", "f32", 1e-5, 0.0, 1.0),),
        ),
        Schema(
            "matmul",
            (
                TensorRule("a", ("M", "K"), _FLOATS),
                TensorRule("b", ("K", "N"), _FLOATS),
                TensorRule("bias", ("N",), ("f32",), optional=True),
                TensorRule("residual", ("M", "N"), ("f32",), optional=True),
                _COUNT,
                TensorRule("out", ("M", "N"), _FLOATS, "out"),
            ),
        ),
        Schema(
            "quantized_matmul",
            (
                TensorRule("a", ("M", "K"), _FLOATS),
                TensorRule("w", ("N", "K"), _BLOCKS),
                TensorRule("bias", ("N",), ("f32",), optional=True),
                TensorRule("residual", ("M", "N"), ("f32",), optional=True),
                _COUNT,
                TensorRule("out", ("M", "N"), ("f32",), "out"),
            ),
            (AttributeRule("activation", "u32", KEEP_FLOAT, 0, 1),),
        ),
        Schema(
            "rope",
            (
                TensorRule("x", ("T", "Heads", "D"), ("f32",), "inout"),
                TensorRule("positions", ("T",), ("i32",)),
                TensorRule("inverse_frequency", ("D/2",), ("f32",)),
                _COUNT,
            ),
            (
                AttributeRule("pairing", "u32", HALF_SPLIT, 0, 1),
                AttributeRule("scale", "f32", 1.0, 1e-6, 1e6),
            ),
        ),
        Schema(
            "kv_write",
            (
                TensorRule("k", ("T", "Hkv", "D"), ("f32",)),
                TensorRule("v", ("T", "Hkv", "D"), ("f32",)),
                TensorRule("slots", ("T",), ("i32",)),
                _COUNT,
                TensorRule("k_cache", ("Blocks", "Hkv", "BlockSize", "D"), _FLOATS, "inout"),
                TensorRule("v_cache", ("Blocks", "Hkv", "BlockSize", "D"), _FLOATS, "inout"),
            ),
        ),
        Schema(
            "paged_attention",
            (
                TensorRule("q", ("T", "Hq", "D"), ("f32",)),
                TensorRule("k_cache", ("Blocks", "Hkv", "BlockSize", "D"), _FLOATS),
                TensorRule("v_cache", ("Blocks", "Hkv", "BlockSize", "D"), _FLOATS),
                TensorRule("block_table", ("S", "MaxBlocks"), ("i32",)),
                TensorRule("query_start", ("S+1",), ("i32",)),
                TensorRule("context_length", ("S",), ("i32",)),
                TensorRule("sequence_count", (1,), ("u32",), optional=True),
                TensorRule("out", ("T", "Hq", "D"), _FLOATS, "out"),
            ),
            (
                AttributeRule("scale", "f32", None, 0.0, _LARGEST),
                AttributeRule("sliding_window", "u32", 0, 0, _U32),
                AttributeRule("soft_cap", "f32", 0.0, 0.0, _LARGEST),
            ),
        ),
        Schema(
            "silu_mul",
            (
                TensorRule("gate_up", ("T", "2F"), ("f32",)),
                _COUNT,
                TensorRule("out", ("T", "F"), _FLOATS, "out"),
            ),
        ),
        Schema(
            "sample",
            (
                TensorRule("logits", ("R", "V"), ("f32",)),
                TensorRule("rows", ("R", SAMPLE_ROW_BYTES), ("u8",)),
                _COUNT,
                TensorRule("tokens", ("R",), ("i32",), "out"),
                TensorRule("logprob", ("R",), ("f32",), "out", optional=True),
            ),
        ),
        Schema(
            "block_copy",
            (
                TensorRule("pairs", ("P", 2), ("i32",)),
                _COUNT,
                TensorRule(
                    "k_cache", ("Layers", "Blocks", "Hkv", "BlockSize", "D"), _FLOATS, "inout"
                ),
                TensorRule(
                    "v_cache", ("Layers", "Blocks", "Hkv", "BlockSize", "D"), _FLOATS, "inout"
                ),
            ),
        ),
        Schema(
            "softmax",
            (
                TensorRule("x", ("T", "H"), ("f32",)),
                _COUNT,
                TensorRule("out", ("T", "H"), ("f32",), "out"),
            ),
            (AttributeRule("scale", "f32", 1.0, 1e-6, 1e6),),
        ),
        Schema(
            "reduce",
            (
                TensorRule("x", ("T", "H"), ("f32",)),
                _COUNT,
                TensorRule("out", ("T",), ("f32",), "out"),
            ),
        ),
        Schema(
            "convert",
            (
                TensorRule("x", ("T", "H"), _FLOATS),
                _COUNT,
                TensorRule("out", ("T", "H"), _FLOATS, "out"),
            ),
        ),
    )
}
