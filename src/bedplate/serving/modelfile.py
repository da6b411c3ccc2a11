"""A model file, whatever its format: configuration, tensors, tokenizer.

Formats differ in names and in one convention (the pairing of rotary halves);
a reader translates both, so that models are written once. Tensor data is mapped,
not read: a tensor costs nothing until it is uploaded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bedplate.hal.api import DType
from bedplate.serving.errors import ModelFileError, UnsupportedModel
from bedplate.serving.tokenizer import Tokenizer

HALF_SPLIT, ADJACENT = 0, 1


@dataclass(frozen=True)
class LlamaConfig:
    """Shape of a Llama-family model. Sizes in elements, `context_length` in tokens.

    `rotary_pairing` says which elements of a head rotate together: x[i] with
    x[i + D/2] (`HALF_SPLIT`, Hugging Face) or x[2i] with x[2i + 1] (`ADJACENT`,
    GGUF, whose q and k rows are permuted accordingly).
    """

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    feed_forward: int
    vocabulary: int
    context_length: int
    rms_epsilon: float
    rope_base: float
    rotary_pairing: int
    tied_head: bool
    rope_scaling: dict[str, float] | None = None

    @property
    def parameters(self) -> int:
        """Number of weights, the tied head counted once."""
        attention = self.hidden * self.head_dim * (2 * self.heads + 2 * self.kv_heads)
        layer = attention + 3 * self.hidden * self.feed_forward + 2 * self.hidden
        tables = self.vocabulary * self.hidden * (1 if self.tied_head else 2)
        return self.layers * layer + tables + self.hidden

    def check(self, path: Path) -> None:
        """Raise `ModelFileError` when the numbers cannot describe a model."""
        sizes = {
            "layers": self.layers,
            "hidden size": self.hidden,
            "heads": self.heads,
            "key-value heads": self.kv_heads,
            "head size": self.head_dim,
            "feed-forward size": self.feed_forward,
            "vocabulary": self.vocabulary,
            "context length": self.context_length,
        }
        for what, value in sizes.items():
            if not 0 < value < 1 << 24:
                raise ModelFileError(f"{path} gives {what} as {value}")
        if self.heads % self.kv_heads:
            raise ModelFileError(
                f"{path} has {self.heads} heads, not a multiple of its {self.kv_heads} "
                "key-value heads"
            )
        if self.head_dim % 2 or not self.rms_epsilon > 0 or not self.rope_base > 0:
            raise ModelFileError(
                f"{path} has head size {self.head_dim}, epsilon {self.rms_epsilon}, "
                f"rope base {self.rope_base}"
            )


@dataclass(frozen=True)
class RawTensor:
    """One tensor as it lies in the file.

    `data` is the mapped bytes (u8, one dimension); `shape` is row-major, and for
    block formats counts elements, not bytes.
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]
    data: NDArray[np.uint8]


class ModelFile(Protocol):
    """What a reader gives. Names are ours: see `LAYER_TENSORS`."""

    path: Path
    config: LlamaConfig
    chat_template: str | None

    def tensor(self, name: str) -> RawTensor:
        """The tensor of this name. Raises `ModelFileError` when the file lacks it."""

    def has(self, name: str) -> bool:
        """Whether the file holds the tensor."""

    def tokenizer(self) -> Tokenizer:
        """The file's tokenizer. Raises `UnsupportedModel` for an unknown kind."""

    def template_variables(self) -> dict[str, Any]:
        """Names that chat templates expect, such as `bos_token`."""

    def weight_format(self) -> str:
        """The dtype that most weights have, in lower case, for people."""


LAYER_TENSORS = (
    "attention_norm",
    "query",
    "key",
    "value",
    "attention_output",
    "feed_forward_norm",
    "gate",
    "up",
    "down",
)


def expected_shapes(config: LlamaConfig) -> dict[str, tuple[int, ...]]:
    """The tensors a model of this shape must have, `layer.<i>.` names included."""
    h, f = config.hidden, config.feed_forward
    q, kv = config.heads * config.head_dim, config.kv_heads * config.head_dim
    layer: dict[str, tuple[int, ...]] = {
        "attention_norm": (h,),
        "query": (q, h),
        "key": (kv, h),
        "value": (kv, h),
        "attention_output": (h, q),
        "feed_forward_norm": (h,),
        "gate": (f, h),
        "up": (f, h),
        "down": (h, f),
    }
    shapes: dict[str, tuple[int, ...]] = {
        "embedding": (config.vocabulary, h),
        "final_norm": (h,),
    }
    if not config.tied_head:
        shapes["head"] = (config.vocabulary, h)
    for i in range(config.layers):
        shapes |= {f"layer.{i}.{name}": shape for name, shape in layer.items()}
    return shapes


def as_float32(part: RawTensor) -> NDArray[np.float32]:
    """The values of an unquantised tensor, float32 of its shape."""
    if part.dtype is DType.F32:
        return part.data.view(np.float32).reshape(part.shape)
    if part.dtype is DType.F16:
        return part.data.view(np.float16).astype(np.float32).reshape(part.shape)
    if part.dtype is DType.BF16:
        wide = part.data.view(np.uint16).astype(np.uint32) << 16
        return wide.view(np.float32).reshape(part.shape)
    raise UnsupportedModel(f"tensor {part.name} is {part.dtype.name}, a block format")


def check_known(path: Path, names: Iterable[str], known: Collection[str]) -> None:
    """Raise `UnsupportedModel` for a tensor that would be left out of the computation."""
    for name in names:
        if name not in known:
            raise UnsupportedModel(
                f"{path} holds the tensor {name}, which is not served",
                remedy="use a model without biases, adapters or experts",
            )


def check_tensors(model: ModelFile) -> None:
    """Every tensor is there with the shape the configuration implies, vectors of numbers.

    Raises `ModelFileError`, and `UnsupportedModel` for a vector in a block format.
    """
    shapes = expected_shapes(model.config)
    if model.has("rope_factors"):
        shapes["rope_factors"] = (model.config.head_dim // 2,)
    for name, shape in shapes.items():
        found = model.tensor(name)
        if found.shape != shape:
            raise ModelFileError(
                f"tensor {found.name} in {model.path} has shape {list(found.shape)}, "
                f"the model needs {list(shape)}"
            )
        if len(shape) == 1:
            _check_vector(model.path, found, positive=name == "rope_factors")


def _check_vector(path: Path, found: RawTensor, *, positive: bool) -> None:
    if found.dtype.is_block:
        raise UnsupportedModel(
            f"tensor {found.name} in {path} is {found.dtype.name}; a vector is served as "
            "F32, F16 or BF16",
            remedy="convert the model anew",
        )
    values = as_float32(found)
    wrong = ~np.isfinite(values) | ((values <= 0) if positive else False)
    if wrong.any():
        at = int(wrong.argmax())
        raise ModelFileError(
            f"tensor {found.name} in {path} is {values[at]} at {at}",
            remedy="fetch the model again, or convert it anew",
        )
