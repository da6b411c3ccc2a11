"""A folder in Hugging Face's layout: config.json, tokenizer.json, *.safetensors."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

from bedplate.hal.api import DType
from bedplate.serving.errors import ModelFileError, UnsupportedModel
from bedplate.serving.modelfile import (
    HALF_SPLIT,
    LlamaConfig,
    RawTensor,
    check_known,
    check_tensors,
    expected_shapes,
)
from bedplate.serving.tokenizer import Tokenizer, from_file

_DTYPES = {"F32": ("F32", 4), "F16": ("F16", 2), "BF16": ("BF16", 2)}
_LONGEST_HEADER_BYTES = 100_000_000  # the format's own limit
_NAMES = {
    "embedding": "model.embed_tokens.weight",
    "final_norm": "model.norm.weight",
    "head": "lm_head.weight",
}
_LAYER_NAMES = {
    "attention_norm": "input_layernorm",
    "query": "self_attn.q_proj",
    "key": "self_attn.k_proj",
    "value": "self_attn.v_proj",
    "attention_output": "self_attn.o_proj",
    "feed_forward_norm": "post_attention_layernorm",
    "gate": "mlp.gate_proj",
    "up": "mlp.up_proj",
    "down": "mlp.down_proj",
}


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r} appears twice")
    return found


def read_header(path: Path) -> dict[str, tuple[str, tuple[int, ...], int, int]]:
    """The tensors of one safetensors file: dtype, shape, first and last byte in the file.

    Sizes are checked against each other and against the file's length before the
    data is mapped: ranges must cover the data exactly, in order, without gaps.
    Raises `ModelFileError`.
    """

    def fail(what: str) -> ModelFileError:
        return ModelFileError(f"{path} is truncated or damaged: {what}")

    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(8)
        if len(start) < 8:
            raise fail(f"{size} bytes is less than a header")
        length = struct.unpack("<Q", start)[0]
        if length > _LONGEST_HEADER_BYTES or 8 + length > size:
            raise fail(f"its header claims {length} bytes, the file has {size}")
        try:
            header = json.loads(file.read(length), object_pairs_hook=_no_duplicates)
        except (ValueError, RecursionError) as cause:
            raise fail(f"its header is not sound JSON: {cause}") from cause
    if not isinstance(header, dict):
        raise fail("its header is not an object")
    header.pop("__metadata__", None)
    data = 8 + length
    found: dict[str, tuple[str, tuple[int, ...], int, int]] = {}
    for name, entry in header.items():
        try:
            dtype, shape, (first, last) = entry["dtype"], entry["shape"], entry["data_offsets"]
            numbers = [*shape, first, last]
        except (TypeError, KeyError, ValueError) as cause:
            raise fail(f"tensor {name} lacks dtype, shape or data_offsets") from cause
        if any(type(n) is not int or not 0 <= n < 1 << 48 for n in numbers) or first > last:
            raise fail(f"tensor {name} has shape {shape} and range {first} to {last}")
        if data + last > size:
            raise fail(f"tensor {name} ends at {data + last}, the file has {size} bytes")
        found[name] = (str(dtype), tuple(shape), data + first, data + last)
    expected = data
    for name, (_, _, first, last) in sorted(found.items(), key=lambda item: item[1][2:]):
        if first != expected:
            raise fail(f"tensor {name} starts at {first}, not at {expected}")
        expected = last
    if expected != size:
        raise fail(f"its tensors end at {expected}, the file has {size} bytes")
    return found


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError as cause:
        raise ModelFileError(f"{path.parent} lacks {path.name}") from cause
    except (ValueError, RecursionError, OSError) as cause:
        raise ModelFileError(f"{path} is not sound JSON: {cause}") from cause
    if not isinstance(value, dict):
        raise ModelFileError(f"{path} is not a JSON object")
    return value


class SafetensorsModel:
    """A model folder, checked and mapped. See `ModelFile` for the methods."""

    def __init__(self, path: Path) -> None:
        """Read config.json and every header.

        Raises `ModelFileError` for damage, `UnsupportedModel` for another architecture.
        """
        self.path = path
        self._settings = _read_json(path / "config.json")
        self.config = self._config()
        self.config.check(path)
        files = sorted(path.glob("*.safetensors"))
        if not files:
            raise ModelFileError(f"{path} holds no .safetensors file")
        self._tensors: dict[str, tuple[np.ndarray[Any, Any], str, tuple[int, ...], int, int]] = {}
        for file in files:
            header = read_header(file)
            mapped = np.memmap(file, np.uint8, "r")
            for name, (dtype, shape, first, last) in header.items():
                if name in self._tensors:
                    raise ModelFileError(f"tensor {name} is in two files of {path}")
                self._tensors[name] = (mapped, dtype, shape, first, last)
        names = (name for name in self._tensors if not name.endswith("rotary_emb.inv_freq"))
        check_known(path, names, self._known_tensors())
        self.chat_template = self._template()
        check_tensors(self)

    def _known_tensors(self) -> set[str]:
        """Those that are used; a tied head may be stored a second time."""
        return {*_NAMES.values(), *map(self._file_name, expected_shapes(self.config))}

    def _config(self) -> LlamaConfig:
        c, path = self._settings, self.path / "config.json"
        architectures = c.get("architectures") or [c.get("model_type")]
        if architectures[0] not in ("LlamaForCausalLM", "llama"):
            raise UnsupportedModel(
                f"{path} is of architecture {architectures[0]!r}, which is not served",
                remedy="use a model of the Llama family",
            )
        if c.get("attention_bias") or c.get("mlp_bias") or c.get("hidden_act", "silu") != "silu":
            raise UnsupportedModel(f"{path} asks for biases or an activation other than silu")
        try:
            heads = int(c["num_attention_heads"])
            scaling = c.get("rope_scaling") or c.get("rope_parameters")
            base = c.get("rope_theta") or (scaling or {}).get("rope_theta", 10000.0)
            return LlamaConfig(
                name=self.path.name,
                layers=int(c["num_hidden_layers"]),
                hidden=int(c["hidden_size"]),
                heads=heads,
                kv_heads=int(c.get("num_key_value_heads") or heads),
                head_dim=int(c.get("head_dim") or int(c["hidden_size"]) // max(heads, 1)),
                feed_forward=int(c["intermediate_size"]),
                vocabulary=int(c["vocab_size"]),
                context_length=int(c["max_position_embeddings"]),
                rms_epsilon=float(c["rms_norm_eps"]),
                rope_base=float(base),
                rotary_pairing=HALF_SPLIT,
                tied_head=bool(c.get("tie_word_embeddings", False)),
                rope_scaling=self._scaling(scaling),
            )
        except (KeyError, TypeError, ValueError, ZeroDivisionError) as cause:
            raise ModelFileError(f"{path} lacks a sound value: {cause}") from cause

    def _scaling(self, scaling: Any) -> dict[str, float] | None:
        if not isinstance(scaling, dict):
            return None
        kind = scaling.get("rope_type") or scaling.get("type") or "default"
        if kind == "default":
            return None
        if kind != "llama3":
            raise UnsupportedModel(f"{self.path} scales rope by {kind!r}, which is not served")
        names = (
            "factor",
            "low_freq_factor",
            "high_freq_factor",
            "original_max_position_embeddings",
        )
        return {name: float(scaling[name]) for name in names}

    def _template(self) -> str | None:
        path = self.path / "chat_template.jinja"
        if path.is_file():
            return path.read_text("utf-8")
        path = self.path / "tokenizer_config.json"
        template = _read_json(path).get("chat_template") if path.is_file() else None
        return template if isinstance(template, str) else None

    @staticmethod
    def _file_name(name: str) -> str:
        if name in _NAMES:
            return _NAMES[name]
        _, layer, role = name.split(".")
        return f"model.layers.{layer}.{_LAYER_NAMES[role]}.weight"

    def has(self, name: str) -> bool:
        """Whether the folder holds the tensor."""
        return name != "rope_factors" and self._file_name(name) in self._tensors

    def tensor(self, name: str) -> RawTensor:
        """The tensor of this name; raises `ModelFileError` when the folder lacks it."""
        full = self._file_name(name)
        if full not in self._tensors:
            raise ModelFileError(f"{self.path} lacks the tensor {full}")
        mapped, kind, shape, first, last = self._tensors[full]
        if kind not in _DTYPES:
            raise UnsupportedModel(f"tensor {full} in {self.path} is {kind}; use F32, F16 or BF16")
        count = 1
        for size in shape:
            count *= size
        if count * _DTYPES[kind][1] != last - first:
            raise ModelFileError(
                f"tensor {full} in {self.path} has {last - first} bytes for shape {list(shape)}"
            )
        return RawTensor(full, DType[_DTYPES[kind][0]], shape, mapped[first:last])

    def tokenizer(self) -> Tokenizer:
        """The tokenizer of tokenizer.json, with the end ids of the configuration files."""
        generation = self.path / "generation_config.json"
        ends = _read_json(generation).get("eos_token_id") if generation.is_file() else None
        if ends is None:
            ends = self._settings.get("eos_token_id")
        return from_file(self.path / "tokenizer.json", ends, self._settings.get("bos_token_id"))

    def template_variables(self) -> dict[str, Any]:
        """`bos_token` and `eos_token` as text."""
        path = self.path / "tokenizer_config.json"
        settings = _read_json(path) if path.is_file() else {}
        found = {}
        for name in ("bos_token", "eos_token"):
            value = settings.get(name)
            if isinstance(value, dict):
                value = value.get("content")
            if isinstance(value, str):
                found[name] = value
        return found

    def weight_format(self) -> str:
        """The dtype of the first layer's largest tensor, in lower case."""
        return self._tensors[self._file_name("layer.0.up")][1].lower()
