"""The engine's logits against Llama in plain numpy, over weights of several kinds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf.quants import dequantize, quantize
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from tests.serving import plain_llama
from tests.serving.conftest import SMALL
from tests.serving.files import TINY, tensors, write_folder, write_gguf
from tests.serving.test_models import with_tensor

from bedplate.serving.api import Engine, Precision

IDS = [1, *range(10, 60)]


def agree(path: Path, weights: dict[str, NDArray[np.float32]], factors: object = 1.0) -> None:
    """Float32 steps of 32 tokens give what float64 gives at once, up to rounding."""
    with Engine(str(path), replace(SMALL, precision=Precision.FLOAT32)) as engine:
        got = engine.score(IDS)
    want = plain_llama.logits(weights, IDS, factors)
    # Measured: 4e-6; a wrong formula changes the logits by what they are.
    np.testing.assert_allclose(got, want, atol=2e-5 * want.std(), rtol=0)


def test_a_folder_gives_what_the_formulas_give(tmp_path: Path) -> None:
    """Rotation of q and k, grouped heads, causal attention, the gated feed-forward."""
    agree(write_folder(tmp_path / "tiny"), tensors())


@pytest.mark.parametrize("kind", ["Q4_0", "Q4_1", "Q8_0", "F16"])
def test_a_rounded_file_is_computed_in_float32_when_asked(tmp_path: Path, kind: str) -> None:
    """Exactly the stored weights, not the kernels that round the activations too."""
    chosen = gguf.GGMLQuantizationType[kind]
    weights = {
        name: dequantize(quantize(value, chosen), chosen) if value.ndim == 2 else value
        for name, value in tensors().items()
    }
    agree(write_gguf(tmp_path / "tiny.gguf", kind=kind), weights)


def test_rope_factors_divide_the_frequencies(tmp_path: Path) -> None:
    """As Llama 3's stretched contexts need it."""
    factors = np.linspace(1, 4, TINY["head_dim"] // 2, dtype=np.float32)
    path = with_tensor(tmp_path / "long.gguf", "rope_freqs.weight", factors)
    agree(path, tensors(), factors)


def test_weights_of_unlike_formats_write_their_own_columns(tmp_path: Path) -> None:
    """Half-precision k and up beside float32 neighbours, and a head of its own."""
    folder = write_folder(tmp_path / "tiny", tie_word_embeddings=False)
    weights = load_file(folder / "model.safetensors")
    weights["lm_head.weight"] = tensors(seed=2)["model.embed_tokens.weight"]
    for name in weights:
        if name.endswith(("k_proj.weight", "up_proj.weight")):
            weights[name] = weights[name].astype(np.float16)
    save_file(weights, folder / "model.safetensors")
    agree(folder, weights)


def test_the_pool_takes_two_vectors_a_token_head_and_layer(tmp_path: Path) -> None:
    """K and V, in four bytes a value for float32 and in two otherwise."""
    path = write_gguf(tmp_path / "tiny.gguf", kind="Q8_0")
    values = 2 * TINY["layers"] * TINY["kv_heads"] * TINY["head_dim"]
    for precision, size in ((Precision.FLOAT32, 4), (Precision.BFLOAT16, 2)):
        with Engine(str(path), replace(SMALL, precision=precision)) as engine:
            tokens = engine.limits.block_count * engine.limits.block_tokens
            assert engine.kv_bytes == tokens * values * size
