"""Small model files that tests make: a random Llama as GGUF or safetensors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from gguf.quants import quantize
from numpy.typing import NDArray
from safetensors.numpy import save_file

TINY = {
    "layers": 2,
    "hidden": 64,
    "heads": 4,
    "kv_heads": 2,
    "head_dim": 16,
    "feed_forward": 96,
    "context": 256,
}
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def byte_alphabet() -> list[str]:
    """The 256 characters of the byte-level alphabet, in the order of their bytes."""
    plain = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256, 1024))
    return [chr(b) if b in plain else chr(next(others)) for b in range(256)]


def vocabulary() -> list[str]:
    """Three control tokens, the bytes, and two merged tokens."""
    return ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *byte_alphabet(), "he", "Ġhe"]


def tensors(seed: int = 1) -> dict[str, NDArray[np.float32]]:
    """Random weights by their Hugging Face names, float32."""
    t, size = TINY, len(vocabulary())
    rng = np.random.default_rng(seed)

    def matrix(rows: int, columns: int) -> NDArray[np.float32]:
        return (rng.standard_normal((rows, columns)) / columns**0.5).astype(np.float32)

    q, kv = t["heads"] * t["head_dim"], t["kv_heads"] * t["head_dim"]
    found = {
        "model.embed_tokens.weight": matrix(size, t["hidden"]),
        "model.norm.weight": 1 + 0.1 * matrix(1, t["hidden"])[0],
    }
    for i in range(t["layers"]):
        p = f"model.layers.{i}."
        found |= {
            p + "input_layernorm.weight": 1 + 0.1 * matrix(1, t["hidden"])[0],
            p + "self_attn.q_proj.weight": matrix(q, t["hidden"]),
            p + "self_attn.k_proj.weight": matrix(kv, t["hidden"]),
            p + "self_attn.v_proj.weight": matrix(kv, t["hidden"]),
            p + "self_attn.o_proj.weight": matrix(t["hidden"], q),
            p + "post_attention_layernorm.weight": 1 + 0.1 * matrix(1, t["hidden"])[0],
            p + "mlp.gate_proj.weight": matrix(t["feed_forward"], t["hidden"]),
            p + "mlp.up_proj.weight": matrix(t["feed_forward"], t["hidden"]),
            p + "mlp.down_proj.weight": matrix(t["hidden"], t["feed_forward"]),
        }
    return found


def permute(weight: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Rows of q or k in GGUF's order: the two halves of a head interleaved."""
    rows, columns = weight.shape
    halves = weight.reshape(heads, 2, rows // heads // 2, columns)
    return np.ascontiguousarray(halves.swapaxes(1, 2).reshape(rows, columns))


def settings(**changes: Any) -> dict[str, Any]:
    """config.json of the tiny model."""
    t = TINY
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "num_hidden_layers": t["layers"],
        "hidden_size": t["hidden"],
        "num_attention_heads": t["heads"],
        "num_key_value_heads": t["kv_heads"],
        "head_dim": t["head_dim"],
        "intermediate_size": t["feed_forward"],
        "vocab_size": len(vocabulary()),
        "max_position_embeddings": t["context"],
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "tie_word_embeddings": True,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "hidden_act": "silu",
        **changes,
    }


def tokenizer_json() -> dict[str, Any]:
    """tokenizer.json of the tiny model."""
    words = vocabulary()
    added = [
        {"id": i, "content": words[i], "special": True, "normalized": False, "lstrip": False,
         "rstrip": False, "single_word": False}
        for i in range(3)
    ]  # fmt: skip
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {**level, "use_regex": True},
        "post_processor": None,
        "decoder": {**level, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {w: i for i, w in enumerate(words)},
            "merges": [["h", "e"], ["Ġ", "he"]],
        },
    }


def write_folder(folder: Path, *, seed: int = 1, **changes: Any) -> Path:
    """The tiny model as a safetensors folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(settings(**changes)))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer_json()))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"chat_template": TEMPLATE, "bos_token": "<|im_start|>"})
    )
    save_file(tensors(seed), folder / "model.safetensors")
    return folder


def write_gguf(
    path: Path, *, seed: int = 1, kind: str = "F32", architecture: str = "llama"
) -> Path:
    """The tiny model as a GGUF file with matrices of type `kind`."""
    t, weights = TINY, tensors(seed)
    quantization = gguf.GGMLQuantizationType[kind]
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(t["layers"])
    writer.add_context_length(t["context"])
    writer.add_embedding_length(t["hidden"])
    writer.add_feed_forward_length(t["feed_forward"])
    writer.add_head_count(t["heads"])
    writer.add_head_count_kv(t["kv_heads"])
    writer.add_key_length(t["head_dim"])
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(vocabulary())
    writer.add_token_types([3, 3, 3] + [1] * (len(vocabulary()) - 3))
    writer.add_token_merges(["h e", "Ġ he"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template(TEMPLATE)
    names = {"model.embed_tokens": "token_embd", "model.norm": "output_norm"}
    roles = {
        "input_layernorm": "attn_norm",
        "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output",
        "post_attention_layernorm": "ffn_norm",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
    }
    for name, matrix in weights.items():
        values, stem = matrix, name.removesuffix(".weight")
        if stem in names:
            target = names[stem]
        else:
            _, _, layer, role = stem.split(".", 3)
            target = f"blk.{layer}.{roles[role]}"
            if role == "self_attn.q_proj":
                values = permute(values, t["heads"])
            elif role == "self_attn.k_proj":
                values = permute(values, t["kv_heads"])
        if values.ndim == 1:
            writer.add_tensor(target + ".weight", values)
        else:
            writer.add_tensor(
                target + ".weight", quantize(values, quantization), raw_dtype=quantization
            )
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
