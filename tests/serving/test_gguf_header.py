"""The GGUF header check: sound files pass, and no damage gets through or crashes it."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from gguf import GGUFReader
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.serving.files import write_gguf

from bedplate.serving.errors import ModelFileError, ServingError, UnsupportedModel
from bedplate.serving.gguf_header import SkippedArray, read_header


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a sound file."""
    return write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf", kind="Q8_0").read_bytes()


def put(tmp_path: Path, content: bytes) -> Path:
    """`content` as a file."""
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1"])
def test_the_table_agrees_with_the_library(tmp_path: Path, kind: str) -> None:
    """Every tensor has the offset, size and shape that the gguf library reads."""
    path = write_gguf(tmp_path / "tiny.gguf", kind=kind)
    table = read_header(path).tensors
    read = GGUFReader(path).tensors
    assert set(table) == {t.name for t in read}
    for t in read:
        entry = table[t.name]
        assert (entry.offset_bytes, entry.bytes) == (t.data_offset, t.n_bytes)
        assert entry.shape == tuple(int(n) for n in reversed(t.shape))


def test_every_truncation_is_refused(tmp_path: Path, sound: bytes) -> None:
    """Cut anywhere, the file is refused with one sentence that names it."""
    for length in [*range(0, 200, 7), *range(200, len(sound), 4099), len(sound) - 1]:
        with pytest.raises(ModelFileError, match=r"model\.gguf"):
            read_header(put(tmp_path, sound[:length]))


def header(tensors: int, keys: int, rest: bytes = b"", version: int = 3) -> bytes:
    """A header with these counts, and zeros after it."""
    return b"GGUF" + struct.pack("<IQQ", version, tensors, keys) + rest + bytes(64)


def tensor(name: bytes, shape: tuple[int, ...], kind: int = 0, offset: int = 0) -> bytes:
    """One row of a tensor table."""
    sizes = struct.pack(f"<{len(shape)}Q", *shape)
    start = struct.pack("<Q", len(name)) + name + struct.pack("<I", len(shape))
    return start + sizes + struct.pack("<IQ", kind, offset)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (header(2**60, 0), "counts"),
        (header(0, 2**60), "counts"),
        (header(1, 0, tensor(b"t", (2**42 + 1, 2**22))), "dimension|bytes"),
        (header(1, 0, tensor(b"t", (2**63 - 1, 2, 1, 1))), "dimension"),
        (header(1, 0, tensor(b"t", (0,))), "dimension of 0"),
        (header(1, 0, tensor(b"t", (4,), offset=2**64 - 32)), "lies at"),
        (header(1, 0, tensor(b"t", (4,), offset=3)), "lies at"),
        (header(1, 0, tensor(b"t", (33,), kind=8)), "whole blocks"),
        (header(2, 0, tensor(b"t", (4,)) * 2), "twice"),
        (header(1, 0, struct.pack("<Q", 2**64 - 1)), "bytes long"),
        (header(0, 1, struct.pack("<Q", 1) + b"k" + struct.pack("<I", 99)), "unknown type"),
        (
            header(0, 1, struct.pack("<Q", 1) + b"k" + struct.pack("<IIQ", 9, 8, 2**61)),
            "counts",
        ),
        (header(0, 1, struct.pack("<Q", 1) + b"k" + struct.pack("<IIQ", 9, 4, 2**62)), "array"),
        (
            header(0, 1, struct.pack("<Q", 17) + b"general.alignment" + struct.pack("<II", 4, 3)),
            "alignment",
        ),
        (b"PK\x03\x04" + bytes(64), "not a GGUF"),
    ],
)
def test_hostile_headers_are_refused(tmp_path: Path, content: bytes, match: str) -> None:
    """Counts that overflow, ranges outside the file, loops: one sentence, nothing mapped."""
    with pytest.raises(ModelFileError, match=match):
        read_header(put(tmp_path, content))


def test_a_type_that_is_not_served_names_the_remedy(tmp_path: Path) -> None:
    """Q6_K (type 14) is a sound file of a kind that is not served."""
    with pytest.raises(UnsupportedModel, match=r"ggml type 14.*convert"):
        read_header(put(tmp_path, header(1, 0, tensor(b"t", (256,), kind=14))))


@settings(
    deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_mutated_headers_never_crash(tmp_path: Path, sound: bytes, data: st.DataObject) -> None:
    """Any few bytes of the header changed: a table inside the file, or a typed refusal."""
    changed = bytearray(sound)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, min(len(sound), 9000) - 1))
        changed[at] = data.draw(st.integers(0, 255))
    try:
        table = read_header(put(tmp_path, bytes(changed))).tensors
    except ServingError:
        return
    assert all(e.offset_bytes + e.bytes <= len(sound) for e in table.values())


def key(name: bytes, kind: int, rest: bytes) -> bytes:
    """One key with its value."""
    return struct.pack("<Q", len(name)) + name + struct.pack("<I", kind) + rest


def test_the_values_are_those_that_the_library_reads(tmp_path: Path) -> None:
    """Every kept key: texts, numbers, and the arrays of the tokenizer."""
    path = write_gguf(tmp_path / "tiny.gguf")
    values = read_header(path).values
    fields = GGUFReader(path).fields
    assert set(values) == {name for name in fields if not name.startswith("GGUF.")}
    for name, value in values.items():
        assert value == fields[name].contents()


def test_arrays_that_serving_does_not_read_are_skipped_whole(tmp_path: Path) -> None:
    """A huge array of numbers makes no objects; it is not the same as no key."""
    count = 1 << 20
    array = struct.pack("<IQ", 0, count) + bytes(count)
    content = header(0, 2, key(b"llama.block_count", 9, array) + key(b"other", 9, array))
    assert read_header(put(tmp_path, content)).values == {"llama.block_count": SkippedArray(count)}


def test_work_is_bounded_by_what_a_sound_file_holds(tmp_path: Path) -> None:
    """Strings beyond any vocabulary, all arrays together, and a text beyond any template."""
    most = 1 << 22
    strings = struct.pack("<IQ", 8, most // 2 + 1) + bytes(8 * (most // 2 + 1))
    content = header(0, 2, key(b"a", 9, strings) + key(b"b", 9, strings))
    with pytest.raises(ModelFileError, match=r"key b, an array of .* counts"):
        read_header(put(tmp_path, content))
    long = struct.pack("<Q", (1 << 24) + 1) + bytes((1 << 24) + 1)
    with pytest.raises(ModelFileError, match="bytes long"):
        read_header(put(tmp_path, header(0, 1, key(b"general.name", 8, long))))
    twice = key(b"general.name", 8, struct.pack("<Q", 0)) * 2
    with pytest.raises(ModelFileError, match="twice"):
        read_header(put(tmp_path, header(0, 2, twice)))
