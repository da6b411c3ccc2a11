"""What the runner asks of a model: to record its step into a batch.

A model owns its packed weights. It never runs anything: it writes commands whose
sizes are capacities, and the real number of rows is read from device memory when
the batch runs. So one recorded batch serves every step up to its capacity.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from bedplate.hal.api import Batch, Tensor
from bedplate.serving.modelfile import LlamaConfig


class Precision(StrEnum):
    """How weights are held and multiplied.

    FLOAT32: float32 throughout. BFLOAT16: weights, products' inputs and KV in
    bfloat16, sums in float32. QUANTIZED: the file's 4- or 8-bit blocks times
    activations in int8 blocks of 32, KV in bfloat16; what the file holds in other
    formats is multiplied in bfloat16.
    """

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    QUANTIZED = "quantized"


@dataclass(frozen=True)
class StepTensors:
    """Device tensors that describe one step; see `PlanArrays` for the meaning.

    `counts` is u32 [3]: rows of tokens, sequences, sampled rows.
    """

    tokens: Tensor
    positions: Tensor
    kv_slots: Tensor
    query_start: Tensor
    context_length: Tensor
    block_table: Tensor
    sample_token: Tensor
    token_count: Tensor
    sequence_count: Tensor
    sample_count: Tensor


class Model(Protocol):
    """One loaded model on one device."""

    config: LlamaConfig

    def allocate_kv(self, block_count: int, block_tokens: int) -> int:
        """Make the KV pool; returns its bytes. Once, before recording."""

    def record_body(self, batch: Batch, step: StepTensors, capacity: int) -> None:
        """Append embedding and all layers for up to `capacity` token rows."""

    def record_head(self, batch: Batch, step: StepTensors, logits: Tensor, capacity: int) -> None:
        """Append final norm and head for up to `capacity` sampled rows into `logits`."""
