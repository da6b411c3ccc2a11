"""Llama on a page of numpy, in float64: the reference for the tiny model.

Weights have their Hugging Face names and its order of rotary halves. Source: the
published model code that they come from; nothing here is shared with the product.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.serving.files import TINY

Array = NDArray[np.float64]


def logits(weights: Mapping[str, NDArray[Any]], ids: Sequence[int], factors: Any = 1.0) -> Array:
    """[tokens, vocabulary]; `factors` divide the rotary frequencies."""
    w = {name: value.astype(np.float64) for name, value in weights.items()}
    x = w["model.embed_tokens.weight"][list(ids)]
    for i in range(TINY["layers"]):
        p = f"model.layers.{i}."
        x = x + attention(w, p + "self_attn.", norm(x, w[p + "input_layernorm.weight"]), factors)
        y = norm(x, w[p + "post_attention_layernorm.weight"])
        gate, up = (y @ w[f"{p}mlp.{name}_proj.weight"].T for name in ("gate", "up"))
        x = x + (gate / (1 + np.exp(-gate)) * up) @ w[p + "mlp.down_proj.weight"].T
    head = w.get("lm_head.weight", w["model.embed_tokens.weight"])
    return norm(x, w["model.norm.weight"]) @ head.T


def norm(x: Array, weight: Array) -> Array:
    """Divided by the root mean square of a row."""
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * weight


def attention(w: Mapping[str, Array], p: str, x: Array, factors: Any) -> Array:
    """Causal, in groups of query heads."""
    size, heads, kv_heads = TINY["head_dim"], TINY["heads"], TINY["kv_heads"]
    q, k, v = (
        (x @ w[f"{p}{name}_proj.weight"].T).reshape(len(x), -1, size).swapaxes(0, 1)
        for name in ("q", "k", "v")
    )
    q, k = rotated(q, factors), rotated(k, factors)
    k, v = (np.repeat(one, heads // kv_heads, 0) for one in (k, v))
    score = q @ k.swapaxes(1, 2) / np.sqrt(size)
    score[:, np.triu(np.ones(score.shape[1:], bool), 1)] = -np.inf
    share = np.exp(score - score.max(-1, keepdims=True))
    share /= share.sum(-1, keepdims=True)
    return (share @ v).swapaxes(0, 1).reshape(len(x), -1) @ w[p + "o_proj.weight"].T


def rotated(x: Array, factors: Any) -> Array:
    """[heads, tokens, head_dim] turned by position, base 10,000, halves of a head paired."""
    half = x.shape[-1] // 2
    angle = np.arange(x.shape[1])[:, None] * (10000.0 ** (-np.arange(half) / half) / factors)
    a, b = x[..., :half], x[..., half:]
    return np.concatenate(
        (a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)), -1
    )
