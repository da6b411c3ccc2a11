"""safetensors headers: sizes, ranges and names that must hold together."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from tests.serving.files import write_folder, write_gguf

from bedplate.serving.errors import ModelFileError, UnsupportedModel
from bedplate.serving.gguf_model import GgufModel
from bedplate.serving.safetensors_model import SafetensorsModel, read_header


def write(path: Path, header: object, data: bytes = b"", length: int | None = None) -> Path:
    """A file with this header; `length` lies about its size."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + data)
    return path


def entry(first: int, last: int, shape: list[object], dtype: str = "F32") -> dict[str, object]:
    """One tensor of a header."""
    return {"dtype": dtype, "shape": shape, "data_offsets": [first, last]}


def test_the_header_agrees_with_the_library(tmp_path: Path) -> None:
    """Every tensor's bytes are those that the safetensors library loads."""
    folder = write_folder(tmp_path / "tiny")
    model, loaded = SafetensorsModel(folder), load_file(folder / "model.safetensors")
    raw = model.tensor("layer.1.down")
    values = raw.data.view(np.float32).reshape(raw.shape)
    np.testing.assert_array_equal(values, loaded["model.layers.1.mlp.down_proj.weight"])


@pytest.mark.parametrize(
    ("header", "data", "length", "match"),
    [
        ({}, b"", 2**64 - 1, "claims"),
        ({"a": entry(0, 8, [2])}, bytes(4), None, "ends at"),
        ({"a": entry(0, 4, [1]), "b": entry(2, 6, [1])}, bytes(6), None, "starts at"),
        ({"a": entry(0, 4, [1]), "b": entry(6, 10, [1])}, bytes(10), None, "starts at"),
        ({"a": entry(0, 4, [1])}, bytes(8), None, "end at"),
        (b'{"a": {}, "b": {}, "b": {}}', b"", None, "'b' appears twice"),
        ({}, b"", 3, "claims 3 bytes, the file has 10"),
        ({"a": entry(0, 4, [1e300])}, bytes(4), None, "shape"),
        ({"a": entry(0, 4, [-1])}, bytes(4), None, "shape"),
        ({"a": entry(0, 4, [True])}, bytes(4), None, "shape"),
        ({"a": {"dtype": "F32"}}, b"", None, "lacks"),
        (b"[1]", b"", None, "not an object"),
        (b"{" * 4000, b"", None, "JSON"),
    ],
)
def test_hostile_headers_are_refused(
    tmp_path: Path, header: object, data: bytes, length: int | None, match: str
) -> None:
    """Lengths, gaps, overlaps, duplicates and wrong numbers: one sentence."""
    with pytest.raises(ModelFileError, match=match):
        read_header(write(tmp_path / "x.safetensors", header, data, length))


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    """Cut anywhere, the file is refused."""
    path = write_folder(tmp_path / "tiny") / "model.safetensors"
    content = path.read_bytes()
    for length in [*range(0, 64, 5), *range(64, len(content), 9973), len(content) - 1]:
        path.write_bytes(content[:length])
        with pytest.raises(ModelFileError):
            read_header(path)


def test_bytes_that_do_not_fit_the_shape_are_refused(tmp_path: Path) -> None:
    """A tensor whose range is not shape times dtype is refused when the model opens."""
    folder = write_folder(tmp_path / "tiny")
    path = folder / "model.safetensors"
    content = path.read_bytes()
    path.write_bytes(content.replace(b'"dtype":"F32","shape":[64]', b'"dtype":"F16","shape":[64]'))
    with pytest.raises(ModelFileError, match="bytes for shape"):
        SafetensorsModel(folder)


@pytest.mark.parametrize(
    ("changes", "error", "match"),
    [
        ({"architectures": ["FalconForCausalLM"]}, UnsupportedModel, "Falcon"),
        ({"hidden_act": "gelu"}, UnsupportedModel, "silu"),
        ({"rope_scaling": {"rope_type": "yarn"}}, UnsupportedModel, "yarn"),
        ({"num_attention_heads": 0}, ModelFileError, "heads as 0"),
        ({"num_key_value_heads": 3}, ModelFileError, "multiple"),
        ({"vocab_size": 300}, ModelFileError, r"needs \[300, 64\]"),
        ({"hidden_size": None}, ModelFileError, "sound value"),
        ({"num_hidden_layers": 3}, ModelFileError, "lacks the tensor model.layers.2"),
    ],
)
def test_a_wrong_configuration_is_refused(
    tmp_path: Path, changes: dict[str, object], error: type[Exception], match: str
) -> None:
    """The offending value is named."""
    with pytest.raises(error, match=match):
        SafetensorsModel(write_folder(tmp_path / "tiny", **changes))


def test_a_folder_without_its_parts_is_refused(tmp_path: Path) -> None:
    """Missing config.json and missing tensors are named."""
    with pytest.raises(ModelFileError, match=r"lacks config\.json"):
        SafetensorsModel(tmp_path)
    folder = write_folder(tmp_path / "tiny")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelFileError, match=r"no \.safetensors"):
        SafetensorsModel(folder)


def test_the_format_of_the_weights_is_said(tmp_path: Path) -> None:
    """What people read in the first line of `serve`."""
    model = SafetensorsModel(write_folder(tmp_path / "tiny"))
    assert model.weight_format() == "f32"
    assert model.has("layer.0.up")
    assert not model.has("layer.9.up")
    assert not model.has("rope_factors")
    for kind in ("Q8_0", "F16"):
        assert GgufModel(write_gguf(tmp_path / kind, kind=kind)).weight_format() == kind.lower()
