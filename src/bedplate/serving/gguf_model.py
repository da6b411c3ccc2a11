"""GGUF files: one file with configuration, tokenizer and tensors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bedplate.hal.api import DType
from bedplate.serving.errors import ModelFileError, UnsupportedModel
from bedplate.serving.gguf_header import read_header
from bedplate.serving.modelfile import (
    ADJACENT,
    LlamaConfig,
    RawTensor,
    check_known,
    check_tensors,
    expected_shapes,
)
from bedplate.serving.tokenizer import Tokenizer, from_gguf

_NAMES = {
    "embedding": "token_embd.weight",
    "final_norm": "output_norm.weight",
    "head": "output.weight",
    "rope_factors": "rope_freqs.weight",
}
_LAYER_NAMES = {
    "attention_norm": "attn_norm",
    "query": "attn_q",
    "key": "attn_k",
    "value": "attn_v",
    "attention_output": "attn_output",
    "feed_forward_norm": "ffn_norm",
    "gate": "ffn_gate",
    "up": "ffn_up",
    "down": "ffn_down",
}


def _file_name(name: str) -> str:
    if name in _NAMES:
        return _NAMES[name]
    _, layer, role = name.split(".")
    return f"blk.{layer}.{_LAYER_NAMES[role]}.weight"


class GgufModel:
    """One GGUF file, checked and mapped. See `ModelFile` for the methods."""

    def __init__(self, path: Path) -> None:
        """Check the header, then read it.

        Raises `ModelFileError` when it is damaged and `UnsupportedModel` when it is
        of an architecture other than Llama's.
        """
        self.path = path
        header = read_header(path)
        self._table, self._values = header.tensors, header.values
        self._bytes = np.memmap(path, np.uint8, "r")
        architecture = self._text("general.architecture")
        if architecture != "llama":
            raise UnsupportedModel(
                f"{path} is of architecture {architecture!r}, which is not served",
                remedy="use a model of the Llama family",
            )
        self.config = self._config()
        self.config.check(path)
        self._refuse_the_unserved()
        template = self._value("tokenizer.chat_template")
        self.chat_template = template if isinstance(template, str) else None
        check_tensors(self)

    def _value(self, key: str) -> Any:
        return self._values.get(key)

    def _text(self, key: str) -> str:
        value = self._value(key)
        if not isinstance(value, str):
            raise ModelFileError(f"{self.path} lacks the text {key}")
        return value

    def _number(self, key: str, default: float | None = None) -> float:
        value = self._value(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise ModelFileError(f"{self.path} lacks the number {key}")
        return value

    def _config(self) -> LlamaConfig:
        n = self._number
        hidden, heads = int(n("llama.embedding_length")), int(n("llama.attention.head_count"))
        if heads < 1:
            raise ModelFileError(f"{self.path} gives heads as {heads}")
        embedding = self._table.get("token_embd.weight")
        return LlamaConfig(
            name=self.path.stem,
            layers=int(n("llama.block_count")),
            hidden=hidden,
            heads=heads,
            kv_heads=int(n("llama.attention.head_count_kv", heads)),
            head_dim=int(n("llama.attention.key_length", hidden // heads)),
            feed_forward=int(n("llama.feed_forward_length")),
            vocabulary=embedding.shape[0] if embedding else int(n("llama.vocab_size")),
            context_length=int(n("llama.context_length")),
            rms_epsilon=float(n("llama.attention.layer_norm_rms_epsilon")),
            rope_base=float(n("llama.rope.freq_base", 10000.0)),
            rotary_pairing=ADJACENT,
            tied_head="output.weight" not in self._table,
        )

    def _refuse_the_unserved(self) -> None:
        """Raise `UnsupportedModel` for what would load and compute something else."""
        scaling = self._value("llama.rope.scaling.type")
        if scaling not in (None, "none"):
            raise UnsupportedModel(f"{self.path} scales rope by {scaling!r}, which is not served")
        turned = self._number("llama.rope.dimension_count", self.config.head_dim)
        if turned != self.config.head_dim:
            raise UnsupportedModel(
                f"{self.path} rotates {turned:g} of {self.config.head_dim} elements of a head, "
                "which is not served"
            )
        known = {*_NAMES.values(), *map(_file_name, expected_shapes(self.config))}
        check_known(self.path, self._table, known)

    def has(self, name: str) -> bool:
        """Whether the file holds the tensor."""
        return _file_name(name) in self._table

    def tensor(self, name: str) -> RawTensor:
        """The tensor of this name; raises `ModelFileError` when the file lacks it."""
        entry = self._table.get(_file_name(name))
        if entry is None:
            raise ModelFileError(f"{self.path} lacks the tensor {_file_name(name)}")
        data = self._bytes[entry.offset_bytes : entry.offset_bytes + entry.bytes]
        return RawTensor(entry.name, DType[entry.type_name], entry.shape, data)

    def tokenizer(self) -> Tokenizer:
        """The tokenizer stored in the file."""
        return from_gguf(self.path, self._value)

    def template_variables(self) -> dict[str, Any]:
        """`bos_token` and `eos_token` as text."""
        tokens = self._value("tokenizer.ggml.tokens") or []
        found = {}
        for variable in ("bos", "eos"):
            index = self._value(f"tokenizer.ggml.{variable}_token_id")
            if isinstance(index, int) and 0 <= index < len(tokens):
                found[f"{variable}_token"] = tokens[index]
        return found

    def weight_format(self) -> str:
        """The type of the first layer's largest tensor, in lower case."""
        return self._table[_file_name("layer.0.up")].type_name.lower()
