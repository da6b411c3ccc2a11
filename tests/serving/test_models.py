"""One model in two formats, and Llama 3's rope scaling."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf.quants import quantize
from safetensors.numpy import load_file, save_file
from tests.serving.conftest import SMALL
from tests.serving.files import write_folder, write_gguf

from bedplate.serving.api import Engine, Precision, UnsupportedModel, find_model, open_model
from bedplate.serving.errors import LimitsError, ModelFileError
from bedplate.serving.models.llama import inverse_frequencies
from bedplate.serving.safetensors_model import SafetensorsModel

EXACT = replace(SMALL, precision=Precision.FLOAT32)
PROMPT = [1, *range(10, 60)]

# What transformers 5.24.0 computes (ROPE_INIT_FUNCTIONS["llama3"], head size 64, base 500,000).
PAIRS = [0, 8, 15, 16, 17, 20, 24, 31]
FREQUENCIES = [1.0, 0.037606031, 0.0013718937, 0.00052484602, 0.00017850779, 3.4281024e-05,
               6.6478697e-06, 3.7673226e-07]  # fmt: skip
LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 8192.0}  # fmt: skip


def scores(path: Path) -> np.ndarray:
    """Float32 logits of a fixed prompt."""
    with Engine(str(path), EXACT) as engine:
        return engine.score(PROMPT)


def test_a_folder_and_a_gguf_of_one_model_agree(tmp_path: Path) -> None:
    """Both conventions of rotary halves and row orders give the same logits."""
    one = scores(write_folder(tmp_path / "tiny"))
    two = scores(write_gguf(tmp_path / "tiny.gguf", kind="F32"))
    np.testing.assert_allclose(one, two, atol=2e-5 * np.abs(one).max())


def test_half_precision_files_load(tmp_path: Path) -> None:
    """F16 and BF16 matrices differ from float32 by their rounding."""
    exact = scores(write_gguf(tmp_path / "exact.gguf", kind="F32"))
    for kind, unit in (("F16", 2**-11), ("BF16", 2**-8)):
        rounded = scores(write_gguf(tmp_path / f"{kind}.gguf", kind=kind))
        error = np.abs(rounded - exact).max()
        assert 0 < error < 40 * unit * exact.std()


def test_an_untied_head_is_used(tmp_path: Path) -> None:
    """A model with a head of its own needs its tensor."""
    with pytest.raises(ModelFileError, match="lm_head"):
        SafetensorsModel(write_folder(tmp_path / "tiny", tie_word_embeddings=False))


def test_llama3_scaling_keeps_short_waves_and_slows_long_ones(tmp_path: Path) -> None:
    """The published smooth scaling: fast pairs as they were, slow ones divided by the factor."""
    folder = write_folder(
        tmp_path / "tiny", rope_scaling={"rope_type": "llama3", **LLAMA3}, rope_theta=500000.0
    )
    config = SafetensorsModel(folder).config
    wide = replace(config, head_dim=64)
    scaled = inverse_frequencies(wide)
    np.testing.assert_allclose(scaled[PAIRS], FREQUENCIES, rtol=1e-6)
    plain = inverse_frequencies(replace(wide, rope_scaling=None))
    wavelength = 2 * np.pi / plain.astype(np.float64)
    kept, slowed = wavelength < 8192 / 4, wavelength > 8192
    np.testing.assert_allclose(scaled[kept], plain[kept], rtol=1e-6)
    np.testing.assert_allclose(scaled[slowed], plain[slowed] / 8, rtol=1e-6)
    between = scaled[~kept & ~slowed] / plain[~kept & ~slowed]
    assert ((between > 1 / 8) & (between < 1)).all()
    assert (np.diff(between) < 0).all()


@pytest.mark.parametrize(
    ("name", "error", "match"),
    [
        ("missing.gguf", ModelFileError, "neither a path nor a known name"),
        ("weights.bin", ModelFileError, "pickle"),
        ("model.safetensors", ModelFileError, "give its folder"),
        ("text.gguf", ModelFileError, "truncated"),
        ("bert.gguf", UnsupportedModel, "architecture 'bert'"),
    ],
)
def test_what_is_not_a_model_is_refused(
    tmp_path: Path, name: str, error: type[Exception], match: str
) -> None:
    """One sentence with the path and the remedy."""
    path = tmp_path / name
    if name.startswith("bert"):
        write_gguf(path, architecture="bert")
    elif not name.startswith("missing"):
        path.write_bytes(b"hello")
    with pytest.raises(error, match=match):
        open_model(find_model(str(path)))


def rewritten(path: Path, key: str, value: object, kind: gguf.GGUFValueType) -> Path:
    """The tiny GGUF with one more key."""
    reader = gguf.GGUFReader(write_gguf(path.with_suffix(".plain")))
    writer = gguf.GGUFWriter(path, "llama")
    for field in reader.fields.values():
        if not field.name.startswith(("GGUF.", "general.architecture")) and field.name != key:
            inner = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(field.name, field.contents(), field.types[0], sub_type=inner)
    writer.add_key_value(key, value, kind)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, np.array(tensor.data))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize(
    ("key", "value", "kind", "match"),
    [
        ("llama.rope.scaling.type", "yarn", gguf.GGUFValueType.STRING, "scales rope by 'yarn'"),
        ("llama.rope.dimension_count", 8, gguf.GGUFValueType.UINT32, "rotates 8 of 16"),
        ("llama.block_count", float("nan"), gguf.GGUFValueType.FLOAT32, "wrong kind"),
    ],
)
def test_a_gguf_that_would_compute_something_else_is_refused(
    tmp_path: Path, key: str, value: object, kind: gguf.GGUFValueType, match: str
) -> None:
    """Scaling, partial rotation and numbers that are none: a typed refusal."""
    with pytest.raises((UnsupportedModel, ModelFileError), match=match):
        open_model(rewritten(tmp_path / "x.gguf", key, value, kind))


@pytest.mark.parametrize(
    "changes",
    [
        {"rms_norm_eps": 10**400},
        {"rope_scaling": "x", "rope_theta": None},
        {"architectures": 5},
        {"num_hidden_layers": [1]},
        {"eos_token_id": 1.5},
    ],
)
def test_values_of_the_wrong_kind_are_a_damaged_file(
    tmp_path: Path, changes: dict[str, object]
) -> None:
    """Whatever type a setting has, the answer is one sentence of a typed error."""
    folder = write_folder(tmp_path / "tiny", **changes)
    with pytest.raises((ModelFileError, UnsupportedModel)):
        Engine(str(folder), SMALL)


@pytest.mark.parametrize("tied", [True, False])
def test_the_weights_are_counted(tmp_path: Path, tied: bool) -> None:
    """The number is that of the elements of all tensors."""
    folder = write_folder(tmp_path / "tiny", tie_word_embeddings=tied)
    if not tied:
        head = load_file(folder / "model.safetensors")
        head["lm_head.weight"] = head["model.embed_tokens.weight"].copy()
        save_file(head, folder / "model.safetensors")
    tensors = load_file(folder / "model.safetensors").values()
    assert SafetensorsModel(folder).config.parameters == sum(t.size for t in tensors)


def test_a_model_is_named_by_its_path_whatever_it_says_of_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `up` names it: the stem of the file, the folder's name for `.`; never nothing."""
    path = rewritten(tmp_path / "x.gguf", "general.basename", "base", gguf.GGUFValueType.STRING)
    with Engine(str(path), SMALL) as engine:
        assert engine.name == "x"
    monkeypatch.chdir(write_folder(tmp_path / "folder"))
    with Engine(".", SMALL) as engine:
        assert engine.name == "folder"
    with pytest.raises(LimitsError, match="name to serve the model under is empty"):
        Engine(str(path), SMALL, name="")


def with_tensor(path: Path, name: str, values: np.ndarray, kind: str = "F32") -> Path:
    """The tiny GGUF with one tensor more, or in the place of its namesake."""
    reader = gguf.GGUFReader(write_gguf(path.with_suffix(".plain")))
    writer = gguf.GGUFWriter(path, "llama")
    for field in reader.fields.values():
        if not field.name.startswith(("GGUF.", "general.architecture")):
            inner = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(field.name, field.contents(), field.types[0], sub_type=inner)
    for tensor in reader.tensors:
        if tensor.name != name:
            writer.add_tensor(tensor.name, np.array(tensor.data))
    quantization = gguf.GGMLQuantizationType[kind]
    writer.add_tensor(name, quantize(values, quantization), raw_dtype=quantization)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


ONES = np.ones(64, np.float32)
PAIR_ONES = np.ones(8, np.float32)


@pytest.mark.parametrize(
    ("name", "values", "kind", "match"),
    [
        ("blk.1.attn_norm.weight", ONES, "Q8_0", r"attn_norm.weight .* is Q8_0"),
        ("output_norm.weight", ONES * np.inf, "F32", r"output_norm.weight .* is inf at 0"),
        ("rope_freqs.weight", PAIR_ONES[:3], "F32", r"rope_freqs.weight .* shape \[3\].* \[8\]"),
        ("rope_freqs.weight", PAIR_ONES[:1], "F32", r"rope_freqs.weight .* shape \[1\]"),
        ("rope_freqs.weight", np.arange(8, dtype=np.float32), "F32", r"rope_freqs.* is 0\.0 at 0"),
        ("rope_freqs.weight", PAIR_ONES * np.nan, "F16", r"rope_freqs.* is nan at 0"),
        ("blk.0.attn_q.bias", ONES, "F32", r"holds the tensor blk\.0\.attn_q\.bias"),
    ],
)
def test_a_vector_of_another_kind_is_refused_by_name(
    tmp_path: Path, name: str, values: np.ndarray, kind: str, match: str
) -> None:
    """Block formats, numbers that are none, lengths that would be broadcast: exit code 2."""
    with pytest.raises((ModelFileError, UnsupportedModel), match=match) as info:
        open_model(with_tensor(tmp_path / "x.gguf", name, values, kind))
    assert info.value.exit_code == 2


def test_sound_rope_factors_and_half_vectors_are_used(tmp_path: Path) -> None:
    """Factors of one change nothing, others do; a norm may be stored in half precision."""
    plain = scores(write_gguf(tmp_path / "plain.gguf"))
    ones = scores(with_tensor(tmp_path / "ones.gguf", "rope_freqs.weight", PAIR_ONES))
    np.testing.assert_array_equal(ones, plain)
    twos = scores(with_tensor(tmp_path / "twos.gguf", "rope_freqs.weight", PAIR_ONES * 2))
    assert np.abs(twos - plain).max() > 0
    open_model(with_tensor(tmp_path / "half.gguf", "output_norm.weight", ONES, "F16"))


def test_a_folder_with_a_tensor_that_nobody_reads_is_refused(tmp_path: Path) -> None:
    """A bias would be left out of every answer; stored frequencies and a tied head are not."""
    folder = write_folder(tmp_path / "tiny")
    tensors = load_file(folder / "model.safetensors")
    harmless = {
        "model.layers.0.self_attn.rotary_emb.inv_freq": PAIR_ONES,
        "lm_head.weight": tensors["model.embed_tokens.weight"].copy(),
    }
    save_file({**tensors, **harmless}, folder / "model.safetensors")
    open_model(folder)
    bias = {"model.layers.0.self_attn.q_proj.bias": ONES}
    save_file({**tensors, **bias}, folder / "model.safetensors")
    with pytest.raises(UnsupportedModel, match=r"layers\.0\.self_attn\.q_proj\.bias"):
        open_model(folder)
