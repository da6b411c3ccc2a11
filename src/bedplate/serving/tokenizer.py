"""Tokenizers: built by the tokenizers library from a GGUF or tokenizer.json.

Besides encoding, a tokenizer gives the bytes of every token, which is what an
incremental detokeniser needs: tokens are byte runs, and one character may span
several of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, pre_tokenizers

from bedplate.serving.errors import ModelFileError, UnsupportedModel

_LLAMA3 = ("llama-bpe", "llama3")
_CONTROL = 3  # token types of GGUF: 1 normal, 2 unknown, 3 control, 4 user-defined, 6 byte
_USER_DEFINED = 4

# The split of Llama 3's tokenizer.json: words with one leading mark, digits by three.
_LLAMA3_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass(frozen=True)
class Tokenizer:
    """Text to token ids and back. Thread-safe.

    `token_bytes[id]` is the token's bytes, empty for control tokens; `end_ids`
    end a generation.
    """

    encoder: tokenizers.Tokenizer
    token_bytes: tuple[bytes, ...]
    control_ids: frozenset[int]
    end_ids: frozenset[int]
    begin_id: int | None

    @cached_property
    def longest_token_bytes(self) -> int:
        """The most bytes of a text that become one id, control tokens included."""
        texts = (self.encoder.id_to_token(i) or "" for i in self.control_ids)
        control = (len(text.encode("utf-8")) for text in texts)
        return max(max(map(len, self.token_bytes), default=1), max(control, default=1), 1)

    @property
    def size(self) -> int:
        """Number of ids."""
        return len(self.token_bytes)

    def encode(self, text: str, *, begin: bool = False) -> list[int]:
        """Ids of `text`; control tokens written in the text are recognised.

        `begin` puts the model's begin token in front where it has one.
        """
        ids: list[int] = self.encoder.encode(text, add_special_tokens=False).ids
        return [self.begin_id, *ids] if begin and self.begin_id is not None else ids

    def decode(self, ids: Sequence[int]) -> str:
        """Text of `ids`, control tokens left out; broken UTF-8 becomes U+FFFD."""
        return b"".join(self.token_bytes[i] for i in ids).decode("utf-8", "replace")


@cache
def _byte_of_character() -> dict[str, int]:
    """The byte-level alphabet: printable bytes stand for themselves, the other 68
    for the code points from U+0100 on. Source: GPT-2's published encoder.
    """
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table = {chr(b): b for b in plain}
    others = (b for b in range(256) if b not in plain)
    return table | {chr(256 + i): b for i, b in enumerate(others)}


def _bytes_of(token: str) -> bytes:
    alphabet = _byte_of_character()
    try:
        return bytes(alphabet[c] for c in token)
    except KeyError:
        return token.encode("utf-8")  # an added token is written as it is


def _wrap(
    encoder: tokenizers.Tokenizer,
    tokens: Sequence[str],
    control: frozenset[int],
    added: frozenset[int],
    ends: Sequence[int],
    begin: int | None,
) -> Tokenizer:
    table = tuple(
        b"" if i in control else token.encode("utf-8") if i in added else _bytes_of(token)
        for i, token in enumerate(tokens)
    )
    # A file may name ids that its table lacks; nothing can ever sample those.
    known = frozenset(i for i in ends if type(i) is int and 0 <= i < len(table))
    return Tokenizer(encoder, table, control, known, begin)


def _pre_tokenizer(kind: str) -> Any:
    if kind == "smollm":
        return pre_tokenizers.Sequence(
            [
                pre_tokenizers.Digits(individual_digits=True),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
            ]
        )
    if kind in _LLAMA3:
        return pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(Regex(_LLAMA3_SPLIT), "isolated"),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        )
    if kind in ("gpt-2", "default"):
        return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    return None


def from_gguf(path: Path, value: Callable[[str], Any]) -> Tokenizer:
    """The byte-level BPE tokenizer of a GGUF; `value(key)` reads its metadata.

    Raises `UnsupportedModel` for another kind and `ModelFileError` for damage.
    """
    kind, split = value("tokenizer.ggml.model"), value("tokenizer.ggml.pre") or "default"
    splitter = _pre_tokenizer(str(split))
    if kind != "gpt2" or splitter is None:
        raise UnsupportedModel(
            f"{path} has a tokenizer of kind {kind!r} with splitting {split!r}, "
            "which is not served",
            remedy="use the model's safetensors folder, which brings its own tokenizer.json",
        )
    tokens, merges = value("tokenizer.ggml.tokens"), value("tokenizer.ggml.merges")
    types = value("tokenizer.ggml.token_type")
    if not isinstance(tokens, list) or not isinstance(merges, list) or not isinstance(types, list):
        raise ModelFileError(f"{path} lacks tokenizer.ggml.tokens, token_type or merges")
    if len(types) != len(tokens):
        raise ModelFileError(f"{path} has {len(tokens)} tokens and {len(types)} token types")
    pairs = [tuple(m.split(" ")) for m in merges]
    if any(len(pair) != 2 for pair in pairs):
        raise ModelFileError(f"{path} has a merge that is not a pair of tokens")
    try:
        # Llama 3 takes a word that is a token as that token, whatever its merges say.
        whole_words = split in _LLAMA3
        bpe = models.BPE(
            vocab={t: i for i, t in enumerate(tokens)}, merges=pairs, ignore_merges=whole_words
        )
    except Exception as cause:  # the library raises plain Exception for a bad merge
        raise ModelFileError(f"{path} has merges that its tokens do not hold: {cause}") from cause
    encoder = tokenizers.Tokenizer(bpe)
    encoder.pre_tokenizer = splitter
    encoder.decoder = decoders.ByteLevel()
    control = frozenset(i for i, t in enumerate(types) if t == _CONTROL)
    added = frozenset(i for i, t in enumerate(types) if t == _USER_DEFINED)
    encoder.add_special_tokens(
        [AddedToken(tokens[i], special=True, normalized=False) for i in sorted(control)]
    )
    encoder.add_tokens([AddedToken(tokens[i], normalized=False) for i in sorted(added)])
    ends = [
        i
        for key in ("eos_token_id", "eot_token_id")
        if isinstance(i := value(f"tokenizer.ggml.{key}"), int) and 0 <= i < len(tokens)
    ]
    adds = value("tokenizer.ggml.add_bos_token")
    begins = split in _LLAMA3 if adds is None else bool(adds)
    begin = value("tokenizer.ggml.bos_token_id") if begins else None
    return _wrap(encoder, tokens, control, added, ends, begin)


def from_file(path: Path, ends: Any, begin: Any) -> Tokenizer:
    """The tokenizer of a tokenizer.json, byte-level kinds only.

    `ends` is an id, a list of ids or null; `begin` an id or null. Raises
    `ModelFileError` when the file is missing or damaged.
    """
    if not path.is_file():
        raise ModelFileError(f"{path.parent} lacks {path.name}")
    try:
        encoder = tokenizers.Tokenizer.from_file(str(path))
    except Exception as cause:  # the library raises plain Exception
        raise ModelFileError(f"{path} is not a tokenizer: {cause}") from cause
    # Left over from training; a prompt is taken whole, and nothing is put behind it.
    encoder.no_truncation()
    encoder.no_padding()
    if "ByteLevel" not in repr(encoder.decoder):
        raise UnsupportedModel(f"{path} is not a byte-level tokenizer, which alone is served")
    size = encoder.get_vocab_size(with_added_tokens=True)
    tokens = [encoder.id_to_token(i) or "" for i in range(size)]
    added = encoder.get_added_tokens_decoder()
    control = frozenset(i for i, token in added.items() if token.special)
    end_ids = [ends] if isinstance(ends, int) else list(ends or [])
    begins = _template_begins(encoder, begin)
    return _wrap(encoder, tokens, control, frozenset(added), end_ids, begin if begins else None)


def _template_begins(encoder: tokenizers.Tokenizer, begin: Any) -> bool:
    """Whether the tokenizer itself puts the begin token in front of a text."""
    ids = encoder.encode("a", add_special_tokens=True).ids
    return isinstance(begin, int) and bool(ids) and ids[0] == begin
