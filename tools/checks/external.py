"""Checks that a tool of requirements/dev.txt makes, or a part of cargo."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from checks.tree import files

BIN = Path(sys.executable).parent
# Headers of released ABI versions are never changed, not even their spaces.
TAGGED = "native/hal/abi/"
NATIVE_SUFFIXES = (".c", ".h", ".cpp", ".hpp", ".cu", ".cuh")


def ruff_format(root: Path, fix: bool) -> list[str]:
    """Python is formatted."""
    mode = [] if fix else ["--check"]
    found = _run("ruff", "format", "--quiet", *mode)
    names = [line.partition("-->")[2].partition(":")[0].strip() for line in found]
    return [f"{name}: not formatted, run `make format`" for name in names if name] or found


def ruff_lint(root: Path, fix: bool) -> list[str]:
    """Python has no lint."""
    return _run("ruff", "check", "--quiet", "--output-format=concise", *["--fix"][: int(fix)])


def mypy(root: Path, fix: bool) -> list[str]:
    """Types hold, strictly."""
    return _run("mypy", "--no-error-summary", "--hide-error-context")


def import_linter(root: Path, fix: bool) -> list[str]:
    """No import climbs, and no framework is imported at run time."""
    return _run("lint-imports", "--no-logo", "--no-cache")


def clang_format(root: Path, fix: bool) -> list[str]:
    """C and C++ are formatted."""
    sources = [str(path.relative_to(root)) for path in files(root, *NATIVE_SUFFIXES)]
    sources = [name for name in sources if not name.startswith(TAGGED)]
    if not sources:
        return []
    mode = ["-i"] if fix else ["--dry-run", "--Werror"]
    found = _run("clang-format", *mode, *sources)
    return [line for line in found if "error:" in line or "NOT RUN" in line]


def rustfmt(root: Path, fix: bool) -> list[str]:
    """Rust is formatted; a note where cargo has no rustfmt, which no build needs."""
    mode = [] if fix else ["--", "--check", "-l"]
    return [f"{line}: not formatted, run `cargo fmt` there" for line in _cargo(root, "fmt", *mode)]


def clippy(root: Path, fix: bool) -> list[str]:
    """Rust has no lint; a note where cargo has no clippy."""
    target = root / "build" / "cargo-clippy"
    words = ["--offline", "--locked", "--quiet", "--all-targets", "--target-dir", str(target)]
    found = _cargo(root, "clippy", *words, "--message-format", "short", "--", "-D", "warnings")
    return [line for line in found if ": error" in line] or found


def _cargo(root: Path, tool: str, *words: str) -> list[str]:
    """What a part of cargo printed in each crate where it failed."""
    probe = subprocess.run(["cargo", tool, "--version"], capture_output=True, check=False)
    if probe.returncode:
        package = {"fmt": "rustfmt", "clippy": "rust-clippy"}[tool]
        print(f"  note: cargo {tool} NOT RUN: not installed, in Debian `{package}`")
        return []
    found = []
    for manifest in (path for path in files(root, ".toml") if path.name == "Cargo.toml"):
        command = ["cargo", tool, *words]
        done = subprocess.run(
            command, cwd=manifest.parent, capture_output=True, text=True, check=False
        )
        if done.returncode:
            lines = (done.stdout + done.stderr).splitlines()
            found += [line.replace(f"{root}/", "") for line in lines if line.strip()]
    return found


def _run(tool: str, *arguments: str) -> list[str]:
    """The lines that a tool printed if it failed, else none."""
    program = BIN / tool
    if not program.exists():
        return [f"NOT RUN: {tool} is not installed; run `make dev`"]
    done = subprocess.run([str(program), *arguments], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return []
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    return lines or [f"{tool} failed"]
