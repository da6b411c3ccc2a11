"""The ABI report: each kind of change made to a copy of the spec, and what is said of it."""

from __future__ import annotations

import itertools
import re
import shutil
from pathlib import Path

import pytest

from bedplate.hal.spec.__main__ import main
from bedplate.hal.spec.report import Change, compare, report
from bedplate.hal.spec.tags import FOLDER, SPEC, TagError, make, tags

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree whose spec is the newest tag's: nothing changed yet."""
    for place in (FOLDER, "native/hal/include"):
        shutil.copytree(ROOT / place, tmp_path / place)
    shutil.copy(tags(ROOT)[-1].folder / "spec.toml", tmp_path / SPEC)
    return tmp_path


def change(tree: Path, *edits: tuple[str, str]) -> None:
    """Replace text of the tree's spec, and take the next minor."""
    spec = tree / SPEC
    text = spec.read_text()
    for before, after in edits:
        assert before in text, before
        text = text.replace(before, after, 1)
    spec.write_text(
        re.sub(r"(?m)^minor = (\d+)$", lambda m: f"minor = {int(m[1]) + 1}", text, count=1)
    )


TAG_FIELD = '  "uint64_t tag -- the caller\'s; echoed in logs and error text",\n'
WAIT_FIELD = '  "const bp_fence *wait -- array",\n'
BATCH_END = '  "uint32_t command_count",\n  "uint32_t flags -- 0",\n  "uint64_t reserved[4]",\n'
FLUSH = (
    '  "int32_t flush(uint64_t device, uint64_t queue)'
    ' -- starts what was submitted; does not wait",\n'
)
QUEUE_END = 'waits for the command that runs",\n  "uint64_t reserved[4]",\n'
BUSY = '  "BP_BUSY = -13 -- the object is in use",\n'
FENCE = 'fields = ["uint64_t timeline -- handle", '
VERSION = 'declaration = "int32_t bp_hal_version(uint32_t *major, uint32_t *minor)"'


def test_the_tree_is_an_append_to_its_newest_tag() -> None:
    """What `make check` holds, and every tag is one to the tag before it."""
    lines, refused = report(ROOT)
    assert refused == 0, lines
    known = tags(ROOT)
    for old, new in itertools.pairwise(known):
        assert all(change.appended for change in compare(old.spec(), new.spec()))


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (BATCH_END, BATCH_END + '  "uint64_t more",\n', "bp_batch.more: uint64_t more at offset"),
        (QUEUE_END, QUEUE_END + '  "int32_t drain(uint64_t queue)",\n', "bp_queue.drain"),
        (BUSY, BUSY + '  "BP_TIRED = -14 -- not now",\n', "BP_TIRED: -14 of status"),
        (
            "[[function]]",
            '[[struct]]\nname = "bp_new"\ndoc = ""\nfrozen = true\nfields = ["uint64_t a"]\n\n'
            "[[function]]",
            "bp_new: a new type of 8 bytes",
        ),
        (
            "[[function]]",
            '[[function]]\nscope = "loader"\ndoc = ""\ndeclaration = "int32_t bp_hal_new(void)"\n\n'
            "[[function]]",
            r"bp_hal_new: int32_t bp_hal_new\(\) \(loader\)",
        ),
    ],
)
def test_an_append_is_named_and_allowed(tree: Path, before: str, after: str, said: str) -> None:
    """Fields and functions behind what was there, new constants, types and exports."""
    change(tree, (before, after))
    lines, refused = report(tree)
    assert refused == 0
    assert re.search(f"appended  {said}", "\n".join(lines))


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (TAG_FIELD + WAIT_FIELD, WAIT_FIELD + TAG_FIELD, "bp_batch.tag: moved from offset 8 to 16"),
        (TAG_FIELD, "", "bp_batch.tag: is gone from offset 8"),
        (
            TAG_FIELD,
            TAG_FIELD.replace(" tag ", " mark "),
            "bp_batch.mark: uint64_t mark at offset 8",
        ),
        (TAG_FIELD, TAG_FIELD.replace("uint64_t", "int64_t"), "bp_batch.tag: was uint64_t tag"),
        (
            TAG_FIELD,
            TAG_FIELD + '  "uint64_t more",\n',
            "inside the 88 bytes that older peers know",
        ),
        (
            BATCH_END,
            BATCH_END.replace('"uint64_t res', '"uint64_t more",\n  "uint64_t res'),
            "bp_batch.reserved: moved from offset 56 to 64",
        ),
        ("float eps", "uint32_t eps", "bp_rmsnorm_attributes.eps: was float eps"),
        ("char text[192]", "char text[256]", "bp_native_fault.text: was char text[192]"),
        ("char text[192]", "char text[256]", "bp_native_fault.reserved: moved from offset 224"),
        (
            BATCH_END,
            BATCH_END.replace("reserved[4]", "more", 1),
            "bp_batch has no uint64_t reserved[4]",
        ),
        (FLUSH, "", "bp_queue.flush: is gone"),
        (
            FLUSH,
            FLUSH.replace("device, uint64_t", "device, uint32_t"),
            "bp_queue.flush: was int32_t",
        ),
        (BUSY, "", "BP_BUSY: the constant is gone"),
        (BUSY, BUSY.replace("-13", "-14"), "BP_BUSY: was -13 of status, is -14"),
        (FENCE, FENCE + '"uint64_t more", ', "bp_fence.value: moved from offset 8 to 16"),
        (
            '"uint64_t value -- reached when',
            '"uint64_t last", "uint64_t value -- reached when',
            "in a frozen struct",
        ),
        (VERSION, VERSION.replace(", uint32_t *minor", ""), "bp_hal_version: was int32_t"),
        ("needed = false", "needed = true", "bp_module: needed was False, is True"),
        ('extension = "bp.ops.1"', 'extension = "bp.ops.2"', "extension was 'bp.ops.1'"),
        ('tensors = "a b bias?', 'tensors = "b a bias?', "bp_matmul_attributes: tensors was"),
        (
            'uint64_t first_block, uint64_t block_count)"',
            'uint64_t first_block)"',
            "bp_native_entry",
        ),
    ],
)
def test_anything_else_is_refused_by_name(tree: Path, before: str, after: str, said: str) -> None:
    """Reorders, removals, renames, sizes, types, numbers, reserved words, frozen structs."""
    change(tree, (before, after))
    lines, refused = report(tree)
    assert refused
    assert any("REFUSED" in line and said in line for line in lines), lines
    assert main(["--report", "--root", str(tree)]) == 1


def test_names_of_arguments_and_words_are_free(tree: Path) -> None:
    """A compiler sees neither."""
    change(tree, ("uint64_t queue) -- starts", "uint64_t which) -- begins"))
    assert report(tree) == ([report(tree)[0][0]], 0)


@pytest.mark.parametrize(
    ("minor", "refused"), [(0, True), (None, True), (1, False), (2, True)], ids=str
)
def test_an_append_takes_the_next_minor(tree: Path, minor: int | None, refused: bool) -> None:
    """Not the tagged one, not one below, not one that skips; and never another major."""
    own = tags(tree)[-1].version[1]
    change(tree, (BUSY, BUSY + '  "BP_TIRED = -14 -- not now",\n'))
    spec = tree / SPEC
    wanted = own if minor is None else own - 1 if minor == 0 else own + minor
    spec.write_text(spec.read_text().replace(f"minor = {own + 1}", f"minor = {wanted}", 1))
    lines, count = report(tree)
    assert bool(count) is refused, lines


def test_a_tag_is_made_once_and_never_touched(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same version twice is refused; a changed, missing or foreign file is named."""
    with pytest.raises(TagError, match="not above the newest"):
        make(tree)
    change(tree, (BUSY, BUSY + '  "BP_TIRED = -14 -- not now",\n'))
    assert main(["--tag", "--root", str(tree)]) == 1
    assert "run python -m bedplate.hal.spec first" in capsys.readouterr().out
    assert main(["--root", str(tree)]) == 0
    assert main(["--tag", "--root", str(tree)]) == 0
    made = tags(tree)[-1]
    assert (made.version[1], made.touched()) == (tags(ROOT)[-1].version[1] + 1, [])
    assert "BP_TIRED" in (made.folder / "bedplate/hal.h").read_text()
    assert report(tree)[1] == 0
    header = made.folder / "bedplate/hal.h"
    header.write_text(header.read_text() + "\n")
    (made.folder / "more.h").write_text("")
    (made.folder / "bedplate/hal_native.h").unlink()
    lines, refused = report(tree)
    assert refused == 3
    for words in ("hal.h was changed", "hal_native.h is missing", "more.h does not belong"):
        assert any(words in line for line in lines), lines


def test_a_tree_without_a_tag_is_told_so(tree: Path) -> None:
    """The gate never passes because there is nothing to compare with."""
    shutil.rmtree(tree / FOLDER)
    assert report(tree) == (
        ["no version of the ABI is tagged: run python -m bedplate.hal.spec --tag"],
        1,
    )


def test_a_change_reads_as_one_line() -> None:
    """Verdict, place, what."""
    assert str(Change("bp_x.y", "moved", False)) == "REFUSED   bp_x.y: moved"
