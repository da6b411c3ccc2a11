"""The Llama family: RMSNorm, rotary attention with grouped heads, SiLU-gated MLP.

Source of the architecture: Touvron et al., "LLaMA" (2023) and the Llama 3 report
for rope scaling. Ten ops a layer: norm, q·k·v, rotate, write KV, attend,
output product, norm, gate·up product, activation, down product; both outer
products add to the hidden state in place.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bedplate.hal.api import Batch, DType, Tensor
from bedplate.kernels.api import OpSet, kv_cache_shape
from bedplate.runtime.api import PoolTensors
from bedplate.serving.modelfile import LlamaConfig, ModelFile, RawTensor, as_float32
from bedplate.serving.models.base import Precision, StepTensors
from bedplate.serving.models.linear import Linear
from bedplate.serving.pools import EnginePools


def inverse_frequencies(config: LlamaConfig) -> NDArray[np.float32]:
    """Rotation per position of each pair, float32 [head_dim / 2], in radians.

    base^(-2i/D), then for Llama 3 the published smooth scaling: long wavelengths
    are divided by `factor`, short ones kept, those between interpolated.
    Source: RoFormer (Su et al., 2021) equation 15; Llama 3's reference code.
    """
    pairs = np.arange(0, config.head_dim, 2, dtype=np.float64) / config.head_dim
    frequency = config.rope_base**-pairs
    scaling = config.rope_scaling
    if scaling:
        factor = scaling["factor"]
        low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
        turns = scaling["original_max_position_embeddings"] * frequency / (2 * math.pi)
        smooth = np.clip((turns - low) / (high - low), 0.0, 1.0)
        frequency = frequency * (smooth + (1 - smooth) / factor)
    return frequency.astype(np.float32)


class Layer:
    """Weights of one block."""

    def __init__(
        self, weights: PoolTensors, ops: OpSet, model: ModelFile, index: int, precision: Precision
    ) -> None:
        def raw(*names: str) -> list[RawTensor]:
            return [model.tensor(f"layer.{index}.{name}") for name in names]

        def vector(name: str) -> Tensor:
            return weights.upload(as_float32(model.tensor(f"layer.{index}.{name}")))

        self.attention_norm = vector("attention_norm")
        self.feed_forward_norm = vector("feed_forward_norm")
        self.query_key_value = Linear(ops, raw("query", "key", "value"), precision)
        self.attention_output = Linear(ops, raw("attention_output"), precision)
        self.gate_up = Linear(ops, raw("gate", "up"), precision)
        self.down = Linear(ops, raw("down"), precision)


class Activations:
    """Scratch tensors for up to `rows` token rows; shared by all recorded batches."""

    def __init__(self, pool: PoolTensors, config: LlamaConfig, rows: int, samples: int) -> None:
        query = config.heads * config.head_dim
        fused = query + 2 * config.kv_heads * config.head_dim
        self.hidden = pool.empty((rows, config.hidden), DType.F32)
        self.fused = pool.empty((rows, fused), DType.F32)
        self.gate_up = pool.empty((rows, 2 * config.feed_forward), DType.F32)
        self.sampled = pool.empty((samples, config.hidden), DType.F32)
        widest = max(config.hidden, query, config.feed_forward)
        self.operand = pool.empty((max(rows, samples), widest), DType.F32)

    def input_of(self, linear: Linear, rows: int, precision: Precision) -> Tensor:
        """The tensor [rows, inputs] that a producer writes for `linear` to read."""
        dtype = DType.BF16 if precision is Precision.BFLOAT16 else DType.F32
        return Tensor(self.operand.buffer, self.operand.offset_bytes, (rows, linear.inputs), dtype)


class Llama:
    """A Llama-family model on one device. See `base.Model`."""

    def __init__(
        self,
        pools: EnginePools,
        ops: OpSet,
        model: ModelFile,
        precision: Precision,
        *,
        rows: int,
        samples: int,
    ) -> None:
        """Pack and upload every weight; `rows` and `samples` bound a step."""
        config = self.config = model.config
        self._pools, self._ops, self._precision = pools, ops, precision
        weights = pools.weights
        self._kv_dtype = DType.F32 if precision is Precision.FLOAT32 else DType.BF16
        table = model.tensor("embedding")
        self._embedding = _upload_table(weights, table)
        self._layers = [Layer(weights, ops, model, i, precision) for i in range(config.layers)]
        self._final_norm = weights.upload(as_float32(model.tensor("final_norm")))
        self._head = Linear(ops, [table if config.tied_head else model.tensor("head")], precision)
        frequency = inverse_frequencies(config)
        if model.has("rope_factors"):
            frequency = frequency / as_float32(model.tensor("rope_factors"))
        self._frequency = weights.upload(frequency.astype(np.float32))
        self._activations = Activations(pools.activations, config, rows, samples)
        self._kv: list[tuple[Tensor, Tensor]] = []

    def kv_bytes_per_token(self) -> int:
        """Bytes of K and V over all layers for one token."""
        c = self.config
        return 2 * c.layers * c.kv_heads * c.head_dim * self._kv_dtype.block_bytes

    def allocate_kv(self, block_count: int, block_tokens: int) -> int:
        """Make the KV pool; returns its bytes."""
        c = self.config
        shape = kv_cache_shape(block_count, c.kv_heads, block_tokens, c.head_dim)
        kv = self._pools.kv
        self._kv = [
            (kv.empty(shape, self._kv_dtype), kv.empty(shape, self._kv_dtype))
            for _ in range(c.layers)
        ]
        return self.kv_bytes_per_token() * block_count * block_tokens

    def record_body(self, batch: Batch, step: StepTensors, capacity: int) -> None:
        """Append embedding and all layers for up to `capacity` token rows."""
        count = step.token_count
        hidden = _rows(self._activations.hidden, capacity)
        self._ops.record(
            batch, "embedding", [self._embedding, _rows(step.tokens, capacity), count, hidden]
        )
        for layer, (keys, values) in zip(self._layers, self._kv, strict=True):
            self._record_attention(batch, step, layer, hidden, keys, values)
            self._record_feed_forward(batch, layer, hidden, count)

    def record_head(self, batch: Batch, step: StepTensors, logits: Tensor, capacity: int) -> None:
        """Append final norm and head for up to `capacity` sampled rows."""
        count, a = step.sample_count, self._activations
        sampled = _rows(a.sampled, capacity)
        self._ops.record(
            batch, "embedding", [a.hidden, _rows(step.sample_token, capacity), count, sampled]
        )
        x = a.input_of(self._head, capacity, self._precision)
        self._record_norm(batch, sampled, self._final_norm, count, x)
        self._head.record(batch, x, _rows(logits, capacity), count)

    def _record_norm(
        self, batch: Batch, x: Tensor, weight: Tensor, count: Tensor, out: Tensor
    ) -> None:
        self._ops.record(batch, "rmsnorm", [x, weight, count, out], eps=self.config.rms_epsilon)

    def _record_attention(
        self,
        batch: Batch,
        step: StepTensors,
        layer: Layer,
        hidden: Tensor,
        keys: Tensor,
        values: Tensor,
    ) -> None:
        c, a, count, rows = self.config, self._activations, step.token_count, hidden.shape[0]
        x = a.input_of(layer.query_key_value, rows, self._precision)
        fused = _rows(a.fused, rows)
        self._record_norm(batch, hidden, layer.attention_norm, count, x)
        layer.query_key_value.record(batch, x, fused, count)
        rotated = _heads(fused, 0, c.heads + c.kv_heads, c.head_dim)
        positions = _rows(step.positions, rows)
        self._ops.record(
            batch, "rope", [rotated, positions, self._frequency, count], pairing=c.rotary_pairing
        )
        key = _heads(fused, c.heads, c.kv_heads, c.head_dim)
        value = _heads(fused, c.heads + c.kv_heads, c.kv_heads, c.head_dim)
        slots = _rows(step.kv_slots, rows)
        self._ops.record(batch, "kv_write", [key, value, slots, count, keys, values])
        attended = a.input_of(layer.attention_output, rows, self._precision)
        by_head = Tensor(
            attended.buffer, attended.offset_bytes, (rows, c.heads, c.head_dim), attended.dtype
        )
        self._ops.record(
            batch,
            "paged_attention",
            [
                _heads(fused, 0, c.heads, c.head_dim),
                keys,
                values,
                step.block_table,
                step.query_start,
                step.context_length,
                step.sequence_count,
                by_head,
            ],
            scale=c.head_dim**-0.5,
        )
        layer.attention_output.record(batch, attended, hidden, count, residual=hidden)

    def _record_feed_forward(
        self, batch: Batch, layer: Layer, hidden: Tensor, count: Tensor
    ) -> None:
        a, rows = self._activations, hidden.shape[0]
        x = a.input_of(layer.gate_up, rows, self._precision)
        self._record_norm(batch, hidden, layer.feed_forward_norm, count, x)
        gate_up = _rows(a.gate_up, rows)
        layer.gate_up.record(batch, x, gate_up, count)
        activated = a.input_of(layer.down, rows, self._precision)
        self._ops.record(batch, "silu_mul", [gate_up, count, activated])
        layer.down.record(batch, activated, hidden, count, residual=hidden)


def _upload_table(weights: PoolTensors, part: RawTensor) -> Tensor:
    """The embedding in its file's format, on the device; float16, which no op reads, widened."""
    if part.dtype is DType.F16:
        return weights.upload(as_float32(part))
    tensor = weights.empty(part.shape, part.dtype)
    stored = part.data.view(part.dtype.storage)
    weights.device.write(tensor, stored.reshape(*part.shape[:-1], -1))
    return tensor


def _rows(tensor: Tensor, rows: int) -> Tensor:
    """The first `rows` of a dense tensor."""
    return Tensor(tensor.buffer, tensor.offset_bytes, (rows, *tensor.shape[1:]), tensor.dtype)


def _heads(fused: Tensor, first: int, heads: int, head_dim: int) -> Tensor:
    """Heads `first` onward of the stacked q·k·v rows, as [rows, heads, head_dim]."""
    return Tensor(
        fused.buffer,
        fused.offset_bytes + first * head_dim * fused.dtype.block_bytes,
        (fused.shape[0], heads, head_dim),
        fused.dtype,
        (fused.shape[1], head_dim, 1),
    )
