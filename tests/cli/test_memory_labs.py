"""The guide's labs of device memory and streams: pasted in order they print what the page says."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bedplate.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
LABS = (ROOT / "docs" / "guide" / "memory-labs.md").read_text()
BLOCK = re.compile(r"^```sh\n(.*?)^```\n(?:\n```\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
BLOCKS = BLOCK.findall(LABS)
AT_WORK = re.compile(r"^(?:reading|replaying|looking at) .*\n", re.MULTILINE)
HERE = re.compile(r"(bedplate|python) ([^>|&]*)(?:> (\S+) )?(?:(\|\||&&) echo \"exit \$\?\")?")
"""A line that needs no shell: what it runs, where to, and when its exit code is printed."""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of what the page's commands read."""
    for part in ("runtime/include", "runtime/examples", "hal/include"):
        shutil.copytree(ROOT / "native" / part, tmp_path / "native" / part)
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    activate = f"PATH={Path(sys.executable).parent}:$PATH\n"
    (tmp_path / ".venv" / "bin" / "activate").write_text(activate)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pieces(commands: str) -> Iterator[tuple[str, re.Match[str] | None]]:
    """Commands for a shell, as few as can be, and lines for this process between them."""
    kept: list[str] = []
    for line in commands.splitlines(keepends=True):
        found = HERE.fullmatch(line.strip())
        if not found:
            kept.append(line)
            continue
        if kept:
            yield "".join(kept), None
            kept = []
        yield line, found
    if kept:
        yield "".join(kept), None


def run_here(found: re.Match[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What a line prints, told that it is at work left out."""
    words, code = shlex.split(found[2]), 0
    if found[1] == "bedplate":
        code = main(words)
    else:
        sys.argv = words
        runpy.run_path(words[0], run_name="__main__")
    seen = capsys.readouterr()
    printed = seen.out + AT_WORK.sub("", seen.err)
    if found[3]:
        Path(found[3]).write_text(printed)
        printed = ""
    assert (code == 0) == (found[4] != "||"), printed
    return printed + (f"exit {code}\n" if found[4] else "")


def test_the_page_prints_what_it_says(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its programs and `bedplate` in this process, the rest in a shell."""
    monkeypatch.setattr(sys, "argv", [""])
    first = BLOCKS[0][0]
    build = first[first.index("build()") :]
    for commands, said in BLOCKS:
        printed = ""
        for text, found in pieces(commands):
            if found:
                printed += run_here(found, capsys)
            else:
                subprocess.run(["bash", "-euc", build + text], check=True)
        assert printed == said
    assert len(BLOCKS) == 13
    assert not (tree / "labs").exists()


@pytest.mark.soak
@pytest.mark.timeout(300)
def test_the_whole_page_in_a_shell(tree: Path) -> None:
    """All commands, in order, as a reader pastes them; the output of each block is exact."""
    script = "exec 2>&1\n" + "".join(f"{commands}echo '@@'\n" for commands, _ in BLOCKS)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    printed = AT_WORK.sub("", done.stdout).split("@@\n")[:-1]
    assert printed == [said for _, said in BLOCKS]
