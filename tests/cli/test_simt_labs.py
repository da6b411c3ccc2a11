"""The guide's labs of the software GPU: its commands print what the page says."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bedplate.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
LABS = (ROOT / "docs" / "guide" / "ptx-labs.md").read_text()
BLOCK = re.compile(r"^```sh\n(.*?)^```\n(?:\n```\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
BLOCKS = BLOCK.findall(LABS)
SECTIONS = dict(
    re.findall(r"^## \d+\. [^\n]+: `(\w+)`$(.*?)(?=^## )", LABS, re.MULTILINE | re.DOTALL)
)


@pytest.fixture
def labs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the page's first commands make."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shelled(commands: str) -> bool:
    """Whether commands need a shell."""
    return any(mark in commands for mark in ("|", "<<", "for ", "grep"))


@pytest.mark.parametrize("name", SECTIONS)
def test_a_lab_prints_what_the_page_says(
    labs: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its plain commands, in this process: `lab`, and `bedplate` without a pipe."""
    os.chdir(labs / "examples" / "simt")
    tried = 0
    for commands, said in BLOCK.findall(SECTIONS[name]):
        lines = commands.replace("\\\n", " ").splitlines()
        plain = [line for line in lines if not shelled(line)]
        if shelled(commands) and not commands.startswith("lab "):
            continue
        for line in plain:
            words = shlex.split(line)
            if words[0] == "lab":
                lab, kernel = words[1:]
                launch = f"{lab}/{lab}.ptx --launch {lab}/launch.toml --kernel {kernel}"
                words = ["", "simt", "run", *launch.split(), "--profile", f"{kernel}.json"]
            assert main(words[1:]) == 0
            tried += 1
        printed = capsys.readouterr().out
        assert printed == said if plain == lines else said.startswith(printed)
    assert tried


@pytest.mark.soak
@pytest.mark.timeout(300)
def test_the_whole_page_in_a_shell(labs: Path) -> None:
    """All commands, in order, as a reader pastes them; the output of each block is exact."""
    script = "exec 2>&1\n" + "".join(f"{commands}echo '@@'\n" for commands, _ in BLOCKS)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        env=os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert done.stdout.split("@@\n")[:-1] == [said for _, said in BLOCKS]


def test_every_lab_has_a_section() -> None:
    """In the page's order, from one to twelve."""
    named = re.findall(r"^## (\d+)\. .+: `(\w+)`$", LABS, re.MULTILINE)
    assert [int(number) for number, _ in named] == list(range(1, 13))
    folders = {path.name for path in (ROOT / "examples" / "simt").iterdir() if path.is_dir()}
    assert {name for _, name in named} == folders
