"""Tokenizers from both formats: known ids, and bytes that join to the text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import tokenizers
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.serving.files import vocabulary, write_folder, write_gguf
from tokenizers import processors

from bedplate.serving.errors import ModelFileError, UnsupportedModel
from bedplate.serving.gguf_model import GgufModel
from bedplate.serving.packaged import DEFAULT_MODEL, find_model
from bedplate.serving.safetensors_model import SafetensorsModel
from bedplate.serving.tokenizer import Tokenizer, from_file


@pytest.fixture(scope="module")
def default() -> Tokenizer:
    """The default model's tokenizer."""
    return GgufModel(find_model(DEFAULT_MODEL)).tokenizer()


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("own fox", [845, 16438]),
        ("\nUser:", [198, 11126, 42]),
        ("🦙", [10813, 116, 243]),
        ("😀", [10813, 242, 218]),
        ("ď", [143, 233]),
        ("<|im_end|>", [2]),
    ],
)
def test_known_ids_of_the_default_model(default: Tokenizer, text: str, ids: list[int]) -> None:
    """Ids that the model's original tokenizer gives; control tokens are recognised."""
    assert default.encode(text) == ids


def test_the_begin_token_comes_on_request_and_where_there_is_one(default: Tokenizer) -> None:
    """Asked for: in front. Not asked for, or a model without one: not there."""
    begins = replace(default, begin_id=7)
    assert begins.encode("own fox", begin=True) == [7, 845, 16438]
    assert begins.encode("own fox") == [845, 16438]
    assert replace(default, begin_id=None).encode("own fox", begin=True) == [845, 16438]


@settings(deadline=None, max_examples=200)
@given(text=st.text(max_size=60).filter(lambda t: "<" not in t))
def test_any_text_comes_back(default: Tokenizer, text: str) -> None:
    """The bytes of the tokens of a text are the text, for bytes the vocabulary has.

    The default model was trained without tokens for some lead bytes, 0xF1 for one.
    """
    known = {b[0] for b in default.token_bytes if len(b) == 1}
    assume(known.issuperset(text.encode()))
    ids = default.encode(text)
    assert default.decode(ids) == text


def test_both_formats_give_one_tokenizer(tmp_path: Path) -> None:
    """The tiny model's GGUF and folder tokenize alike and end alike."""
    one = GgufModel(write_gguf(tmp_path / "tiny.gguf")).tokenizer()
    two = SafetensorsModel(write_folder(tmp_path / "tiny")).tokenizer()
    text = "he said <|im_end|> the hé"
    assert one.encode(text) == two.encode(text)
    assert one.token_bytes == two.token_bytes
    assert one.end_ids == two.end_ids == {2}
    assert one.control_ids == two.control_ids == {0, 1, 2}
    assert one.size == len(vocabulary())


def test_an_unknown_kind_is_refused_with_a_remedy() -> None:
    """A tokenizer of another kind names itself and the way out."""
    from bedplate.serving.tokenizer import from_gguf

    values = {"tokenizer.ggml.model": "t5", "tokenizer.ggml.pre": "default"}
    with pytest.raises(UnsupportedModel, match=r"'t5'.*safetensors folder"):
        from_gguf(Path("x.gguf"), values.get)


def test_damaged_tables_are_refused() -> None:
    """Types that do not match the tokens, and merges that are not pairs."""
    from bedplate.serving.tokenizer import from_gguf

    values = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": ["a", "b"],
        "tokenizer.ggml.token_type": [1],
        "tokenizer.ggml.merges": [],
    }
    with pytest.raises(ModelFileError, match="2 tokens and 1 token types"):
        from_gguf(Path("x.gguf"), values.get)
    values |= {"tokenizer.ggml.token_type": [1, 1], "tokenizer.ggml.merges": ["ab"]}
    with pytest.raises(ModelFileError, match="not a pair"):
        from_gguf(Path("x.gguf"), values.get)
    values |= {"tokenizer.ggml.merges": ["a c"]}
    with pytest.raises(ModelFileError, match="merges"):
        from_gguf(Path("x.gguf"), values.get)


def test_a_missing_tokenizer_file_is_named(tmp_path: Path) -> None:
    """The folder and the file are in the sentence."""
    folder = write_folder(tmp_path / "tiny")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ModelFileError, match=r"lacks tokenizer\.json"):
        SafetensorsModel(folder).tokenizer()
    (folder / "tokenizer.json").write_text("{")
    with pytest.raises(ModelFileError, match="not a tokenizer"):
        SafetensorsModel(folder).tokenizer()


@pytest.mark.parametrize(("asked", "wanted"), [(7, 7), (8, None), (None, None), ("7", None)])
def test_a_tokenizer_file_begins_only_with_what_its_own_template_puts_in_front(
    tmp_path: Path, asked: object, wanted: int | None
) -> None:
    """The configuration's begin id counts where the file's post-processor begins with it."""
    folder = write_folder(tmp_path / "tiny")
    encoder = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    token = encoder.id_to_token(7)
    encoder.post_processor = processors.TemplateProcessing(
        single=f"{token} $A", special_tokens=[(token, 7)]
    )
    encoder.save(str(tmp_path / "tokenizer.json"))
    assert from_file(tmp_path / "tokenizer.json", 2, asked).begin_id == wanted
    assert from_file(folder / "tokenizer.json", 2, asked).begin_id is None


def test_truncation_and_padding_of_a_tokenizer_file_do_not_touch_prompts(tmp_path: Path) -> None:
    """A long text is not cut, a short one not filled up."""
    folder = write_folder(tmp_path / "tiny")
    plain = SafetensorsModel(folder).tokenizer()
    encoder = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    encoder.enable_truncation(4)
    encoder.enable_padding(length=8, pad_id=1)
    encoder.save(str(folder / "tokenizer.json"))
    changed = SafetensorsModel(folder).tokenizer()
    for text in ("a", "hello there, this is longer"):
        assert changed.encode(text) == plain.encode(text)


@pytest.mark.parametrize("ends", [[2, 99_999], [2, -1], [2, "3"], [2, True], 2])
def test_end_ids_that_the_table_lacks_are_none(tmp_path: Path, ends: object) -> None:
    """What a configuration names beyond the vocabulary can never be sampled."""
    folder = write_folder(tmp_path / "tiny")
    assert from_file(folder / "tokenizer.json", ends, None).end_ids == {2}
