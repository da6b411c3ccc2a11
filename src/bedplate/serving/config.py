"""The section `serving` of the configuration; flags of `serve` have the same names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bedplate.serving.load import EngineOptions
from bedplate.serving.models.base import Precision


@dataclass(frozen=True)
class ServingConfig:
    """Keys follow vLLM's flags. Lengths in tokens; 0 or `auto`: chosen for model and machine."""

    host: str = "127.0.0.1"
    port: int = 8000
    device: str = "cpu"
    dtype: Literal["auto", "float32", "bfloat16", "quantized"] = "auto"
    max_model_len: int = 0
    max_num_seqs: int = 64
    max_num_batched_tokens: int = 512
    block_size: int = 16
    kv_memory_bytes: int = 0
    enable_prefix_caching: bool = True
    metrics_alias: Literal["vllm", "none"] = "vllm"

    def options(self) -> EngineOptions:
        """The options of an engine."""
        return EngineOptions(
            device=self.device,
            precision=None if self.dtype == "auto" else Precision(self.dtype),
            max_model_tokens=self.max_model_len or None,
            max_running=self.max_num_seqs,
            max_batched_tokens=self.max_num_batched_tokens,
            block_tokens=self.block_size,
            kv_memory_bytes=self.kv_memory_bytes or None,
            prefix_sharing=self.enable_prefix_caching,
            metrics_alias=self.metrics_alias,
        )
