"""What the generator promises: current files, and no spec that breaks the ABI's own rules."""

from pathlib import Path

import pytest

from bedplate.hal.spec.__main__ import main, stale
from bedplate.hal.spec.layout import layouts
from bedplate.hal.spec.model import SpecError, parse

ROOT = Path(__file__).resolve().parents[2]


def document(**changes: object) -> dict:
    """A smallest spec, with parts replaced."""
    head = {
        "name": "bp_head",
        "doc": "",
        "frozen": True,
        "fields": ["uint32_t struct_version", "uint32_t struct_size"],
    }
    thing = {
        "name": "bp_thing",
        "doc": "",
        "fields": ["bp_head head", "uint64_t bytes", "uint64_t reserved[4]"],
    }
    return {"abi": {"major": 0, "minor": 1}, "struct": [head, thing | changes]}


def test_committed_files_are_what_the_spec_implies() -> None:
    """A change of the spec without a run of the generator is seen."""
    assert stale(ROOT) == []


def test_check_names_a_stale_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--check writes nothing, names the file and exits with 1; a run mends it."""
    spec = tmp_path / "native/hal/spec.toml"
    spec.parent.mkdir(parents=True)
    spec.write_text((ROOT / "native/hal/spec.toml").read_text())
    assert main(["--check", "--root", str(tmp_path)]) == 1
    assert "native/hal/include/bedplate/hal.h" in capsys.readouterr().out
    assert not (tmp_path / "docs").exists()
    assert main(["--root", str(tmp_path)]) == 0
    assert main(["--check", "--root", str(tmp_path)]) == 0


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        (["uint64_t bytes", "uint64_t reserved[4]"], "does not start with bp_head"),
        (["bp_head head", "uint64_t bytes"], "reserved"),
        (["bp_head head", "uint32_t a", "uint64_t reserved[4]"], "hole before reserved"),
        (["bp_head head", "uint64_t reserved[4]", "uint32_t a"], "hole at its end"),
        (["bp_head head", "long bytes", "uint64_t reserved[4]"], "type long"),
        (["bp_head head", "bool on", "uint64_t reserved[4]"], "type bool"),
        (["bp_head head", "bp_other x", "uint64_t reserved[4]"], "unknown type bp_other"),
        (
            ["bp_head head", "bp_thing *a", "int32_t f(bp_head h)", "uint64_t reserved[4]"],
            "by value",
        ),
        (["bp_head head", "uint64_t a", "uint64_t a", "uint64_t reserved[4]"], "repeats a field"),
        (["bp_head head", "uint64_t a:3", "uint64_t reserved[4]"], "cannot read"),
    ],
)
def test_a_spec_that_breaks_a_rule_is_refused(fields: list[str], why: str) -> None:
    """Types, holes, heads, reserved words and by-value structs are held to the rules."""
    with pytest.raises(SpecError, match=why):
        layouts(parse(document(fields=fields)))


def test_a_number_is_given_once() -> None:
    """Two constants of a group cannot share a number, nor two groups a name."""
    twice = [{"name": "a", "doc": "", "values": ["BP_A = 1 -- x", "BP_B = 1 -- y"]}]
    with pytest.raises(SpecError, match="BP_B repeats"):
        parse(document() | {"group": twice})


def test_offsets_follow_c() -> None:
    """The layout is the natural one, the size includes the tail."""
    layout = layouts(parse(document()))["bp_thing"]
    assert layout.offsets == {"head": 0, "bytes": 8, "reserved": 16}
    assert layout.size == 48
