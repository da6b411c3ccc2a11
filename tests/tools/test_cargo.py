from collections.abc import Callable
from pathlib import Path

import pytest
from checks import external

Write = Callable[[str, str], Path]
CARGO = """[package]
name = "small"
version = "0.1.0"
edition = "2021"
"""
LOCK = """version = 3

[[package]]
name = "small"
version = "0.1.0"
"""


def said(out: str) -> bool:
    """Whether a part of cargo is not there, and that was said."""
    return "NOT RUN" in out


def test_rust_that_is_not_formatted_or_has_lint_is_told(
    tree: Path, write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    """A crate in good order, then with two spaces and a needless return; or NOT RUN, said."""
    write("small/Cargo.toml", CARGO)
    write("small/Cargo.lock", LOCK)
    source = write("small/src/lib.rs", "pub fn one() -> u32 {\n    1\n}\n")
    assert external.rustfmt(tree, False) == external.clippy(tree, False) == []
    source.write_text("pub fn  one() -> u32 {\n    return 1;\n}\n")
    unformatted = external.rustfmt(tree, False)
    assert unformatted or said(capsys.readouterr().out)
    if unformatted:
        assert unformatted == ["small/src/lib.rs: not formatted, run `cargo fmt` there"]
        external.rustfmt(tree, True)
        assert source.read_text().startswith("pub fn one() -> u32 {")
    lint = external.clippy(tree, False)
    assert lint or said(capsys.readouterr().out)
    assert all("return" in line for line in lint)


def test_a_part_of_cargo_that_is_missing_is_a_note(
    tree: Path, write: Write, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No violation: Debian has them in packages of their own, and no build needs them."""
    write("small/Cargo.toml", CARGO)
    folder = write("bin/cargo", "#!/bin/sh\nexit 101\n")
    folder.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder.parent), prepend=":")
    assert external.rustfmt(tree, False) == external.clippy(tree, False) == []
    notes = capsys.readouterr().out.splitlines()
    assert notes == [
        "  note: cargo fmt NOT RUN: not installed, in Debian `rustfmt`",
        "  note: cargo clippy NOT RUN: not installed, in Debian `rust-clippy`",
    ]
