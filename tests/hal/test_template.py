"""The start of a backend: `bedplate hal new`, and the guide page that goes with it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bedplate.core.errors import BedplateError
from bedplate.hal.errors import InvalidArgument
from bedplate.hal.template import create, include_dir

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "guide" / "write-a-backend.md"


def shell_blocks(page: str) -> list[str]:
    """The commands of a page, block by block."""
    return re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


@pytest.mark.timeout(180)
def test_the_pages_own_commands_lead_to_a_certificate(tmp_path: Path) -> None:
    """All of them, in order, in one shell that stops at the first failure."""
    blocks = shell_blocks(PAGE.read_text())
    assert len(blocks) == 4
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "BEDPLATE_DATA_DIR": str(tmp_path / "data"),
        "BEDPLATE_CACHE_DIR": str(tmp_path / "cache"),
    }
    place = tmp_path / "day"
    place.mkdir()
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join(blocks)],
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[7 7 7 7 7 7 7 7]" in done.stdout
    wanted = "certified: core mem queue timeline host_visible timeline_wait_host"
    assert wanted in done.stdout
    certificate = json.loads((place / "acme" / "certificate.json").read_text())
    verdicts = [case["verdict"] for case in certificate["cases"]]
    assert verdicts.count("fail") == 0
    assert re.search(r"taken +acme .*data/hal.d/acme.json +user", done.stdout)


def test_the_headers_are_installed(tmp_path: Path) -> None:
    """All of them, as they are in the tree."""
    installed = {path.name: path.read_text() for path in include_dir().rglob("hal*.h")}
    own = (ROOT / "native" / "hal" / "include").rglob("*.h")
    assert installed == {path.name: path.read_text() for path in own}


@pytest.mark.parametrize("name", ["a", "acme_9000", "x" * 32])
def test_texts_have_their_own_length(tmp_path: Path, name: str) -> None:
    """Every counted text of the source fits the name, whatever its length."""
    source = create(name, tmp_path / "new")[0].read_text()
    texts = re.findall(r'\{"([^"]*)", (\d+)\}', source)
    assert len(texts) == 4
    assert all(len(text) == int(length) for text, length in texts)
    assert "template" not in source


@pytest.mark.parametrize("name", ["", "Acme", "9acme", "a-b", "../a", "x" * 33])
def test_a_wrong_name_is_refused(tmp_path: Path, name: str) -> None:
    """Nothing is written."""
    with pytest.raises(InvalidArgument, match="cannot be called"):
        create(name, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    """A folder with something in it, and a file."""
    (tmp_path / "file").write_text("mine")
    for place in (tmp_path, tmp_path / "file"):
        with pytest.raises(InvalidArgument, match="not an empty folder"):
            create("acme", place)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_folder_that_cannot_be_made_is_told() -> None:
    """The path is at fault, or the machine; it is no internal error."""
    with pytest.raises(BedplateError, match="cannot write in the folder"):
        create("acme", Path("/proc/acme"))
