"""Makes expected.json: what transformers computes on the model's own weights.

    python tests/serving/golden/make.py MODEL.gguf

Needs requirements/peers.txt; takes about ten minutes on two cores. The GGUF's
weights are dequantised by the gguf library and given to transformers in float32,
so both sides multiply by the same numbers.

For each prompt it stores, for every position, the best token, its logit, and the
margin to the second; for chosen positions a digest of the whole logits row, which
is eight projections on fixed random signs; and for each number format sigma, the
standard deviation that its rounding must be expected to cause in the logits.

Sigma is derived, not fitted to our output: the reference runs again with Gaussian
noise on every product, of the variance that the format's rounding has there, and
sigma is the root mean square change of the logits of a position.

- float32: each of K terms is rounded at most once, u = 2^-24, relative to the sum
  of magnitudes: std = u sqrt(K/3) (|x| |W|^T).
- bfloat16: both factors are rounded, u = 2^-8, uniform: var = 2 u^2/3 (x^2)(W^2)^T;
  keys and values are rounded once more.
- quantized: activations as int8 in blocks of 32 with scale max/127, error uniform
  over one step: var = (scale^2/12)(W^2)^T; keys and values in bfloat16.

Source: Higham and Mary, "A new approach to probabilistic rounding error analysis"
(2019), for treating roundings as independent.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
import transformers
from gguf import GGUFReader
from gguf.quants import dequantize
from transformers import LlamaConfig, LlamaForCausalLM

sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.serving.golden.digest import SCHEMA, digest_rows, rows_kept, signs
from tests.serving.golden.prompts import prompts

RUNS = 2
NEW_TOKENS = 32
FORMATS = ("float32", "bfloat16", "quantized")


def load(path: Path) -> tuple[LlamaForCausalLM, dict[str, object]]:
    """The model in float32, and the file's metadata."""
    reader = GGUFReader(path)
    meta = {k: f.contents() for k, f in reader.fields.items()}
    heads, kv_heads = meta["llama.attention.head_count"], meta["llama.attention.head_count_kv"]
    weights = {
        t.name: torch.from_numpy(dequantize(t.data, t.tensor_type).copy()) for t in reader.tensors
    }
    config = LlamaConfig(
        vocab_size=weights["token_embd.weight"].shape[0],
        hidden_size=meta["llama.embedding_length"],
        intermediate_size=meta["llama.feed_forward_length"],
        num_hidden_layers=meta["llama.block_count"],
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        max_position_embeddings=meta["llama.context_length"],
        rms_norm_eps=meta["llama.attention.layer_norm_rms_epsilon"],
        rope_theta=meta["llama.rope.freq_base"],
        rope_parameters={"rope_type": "default", "rope_theta": meta["llama.rope.freq_base"]},
        tie_word_embeddings=True,
        attn_implementation="eager",
    )
    model = LlamaForCausalLM(config).float().eval()
    model.load_state_dict(rename(weights, heads, kv_heads), strict=False)
    model.tie_weights()
    return model, meta


def rename(weights: dict[str, torch.Tensor], heads: int, kv_heads: int) -> dict[str, torch.Tensor]:
    """GGUF's names and rotary row order to Hugging Face's."""
    roles = {
        "attn_norm": "input_layernorm",
        "attn_q": "self_attn.q_proj",
        "attn_k": "self_attn.k_proj",
        "attn_v": "self_attn.v_proj",
        "attn_output": "self_attn.o_proj",
        "ffn_norm": "post_attention_layernorm",
        "ffn_gate": "mlp.gate_proj",
        "ffn_up": "mlp.up_proj",
        "ffn_down": "mlp.down_proj",
    }
    found = {
        "model.embed_tokens.weight": weights["token_embd.weight"],
        "model.norm.weight": weights["output_norm.weight"],
        "lm_head.weight": weights["token_embd.weight"],
    }
    for name, stored in weights.items():
        if not name.startswith("blk."):
            continue
        value = stored
        _, layer, role, _ = name.split(".")
        count = {"attn_q": heads, "attn_k": kv_heads}.get(role)
        if count:
            rows, columns = value.shape
            value = value.reshape(count, rows // count // 2, 2, columns).swapaxes(1, 2)
            value = value.reshape(rows, columns)
        found[f"model.layers.{layer}.{roles[role]}.weight"] = value
    return found


class Powers:
    """|W|^T and (W^2)^T of one layer, kept, since every run needs them."""

    _kept: ClassVar[dict[int, Powers]] = {}

    def __init__(self, weight: torch.Tensor) -> None:
        self.magnitude = weight.abs().T
        self.square = (weight * weight).T

    @classmethod
    def of(cls, module: torch.nn.Linear) -> Powers:
        """The powers of this layer's weight."""
        key = id(module)
        if key not in cls._kept:
            cls._kept[key] = cls(module.weight)
        return cls._kept[key]


class Noise:
    """Adds the rounding noise of one format to every product of a model."""

    def __init__(self, model: LlamaForCausalLM, form: str, seed: int) -> None:
        self._form = form
        self._random = torch.Generator().manual_seed(seed)
        self._handles = [
            module.register_forward_hook(self._hook(name))
            for name, module in model.named_modules()
            if isinstance(module, torch.nn.Linear)
        ]

    def _hook(self, name: str):
        stored = name.endswith(("k_proj", "v_proj"))

        def add(module: torch.nn.Linear, inputs: tuple[torch.Tensor], out: torch.Tensor):
            x, powers = inputs[0], Powers.of(module)
            if self._form == "float32":
                std = (x.abs() @ powers.magnitude) * (2.0**-24 * (x.shape[-1] / 3) ** 0.5)
            elif self._form == "bfloat16":
                std = ((x * x) @ powers.square * (2 * 2.0**-16 / 3)).sqrt()
            else:
                blocks = x.unflatten(-1, (-1, 32))
                scale = blocks.abs().amax(-1, keepdim=True) / 127
                step = scale.expand_as(blocks).flatten(-2)
                std = ((step * step / 12) @ powers.square).sqrt()
            if stored and self._form != "float32":
                std = (std * std + out * out * (2.0**-16 / 3)).sqrt()
            return out + std * torch.randn(out.shape, generator=self._random)

        return add

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        for handle in self._handles:
            handle.remove()


def logits_of(model: LlamaForCausalLM, ids: list[int]) -> torch.Tensor:
    """Logits of every position, float32 [tokens, vocabulary]."""
    return model(torch.tensor([ids])).logits[0]


def sigma(model: LlamaForCausalLM, ids: list[int], exact: torch.Tensor, form: str) -> list[float]:
    """Standard deviation of the logits of each position under the format's noise."""
    total = torch.zeros(len(ids))
    for run in range(RUNS):
        with Noise(model, form, seed=run):
            total += ((logits_of(model, ids) - exact) ** 2).mean(-1)
    return (total / RUNS).sqrt().tolist()


def greedy(model: LlamaForCausalLM, ids: list[int]) -> list[int]:
    """The continuation of `NEW_TOKENS` tokens, best token by best token."""
    out = model.generate(
        torch.tensor([ids]), max_new_tokens=NEW_TOKENS, do_sample=False, pad_token_id=2
    )
    return out[0, len(ids) :].tolist()


def entry(model: LlamaForCausalLM, ids: list[int]) -> dict[str, object]:
    """Everything that is stored of one prompt."""
    exact = logits_of(model, ids)
    best = exact.topk(2, -1)
    kept = rows_kept(len(ids))
    return {
        "ids": ids if len(ids) <= 64 else None,
        "length": len(ids),
        "best": best.indices[:, 0].tolist(),
        "logit": [round(v, 4) for v in best.values[:, 0].tolist()],
        "margin": [round(v, 4) for v in (best.values[:, 0] - best.values[:, 1]).tolist()],
        "digests": np.round(digest_rows(exact[kept].numpy(), signs(exact.shape[1])), 5).tolist(),
        "sigma": {
            form: [float(f"{v:.3g}") for v in sigma(model, ids, exact, form)] for form in FORMATS
        },
        "greedy": greedy(model, ids),
    }


def main() -> None:
    """Write expected.json beside this file."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("model", type=Path)
    path = arguments.parse_args().model
    model, meta = load(path)
    from bedplate.serving.tokenizer import from_gguf

    tokenizer = from_gguf(path, meta.get)
    entries = []
    with torch.inference_mode():
        for i, ids in enumerate(prompts(tokenizer.encode)):
            entries.append(entry(model, ids))
            print(f"{i + 1:2} of 50, {len(ids)} tokens", file=sys.stderr, flush=True)
    document = {
        "schema": SCHEMA,
        "model": path.name,
        "transformers": transformers.__version__,
        "torch": torch.__version__.split("+")[0],
        "runs": RUNS,
        "prompts": entries,
    }
    text = json.dumps(document, separators=(",", ":")).replace('{"ids"', '\n{"ids"')
    Path(__file__).with_name("expected.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
