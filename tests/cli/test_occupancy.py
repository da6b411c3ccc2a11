"""`bedplate simt occupancy`: the table, JSON, ptxas's text, and wrong input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bedplate.cli.main import main

PTXAS = (
    "ptxas info    : Compiling entry function 'one' for 'sm_86'\n"
    "ptxas info    : Used 40 registers, used 2 barriers, 2048 bytes smem\n"
)
TWO = PTXAS + PTXAS.replace("'one'", "'two'").replace("40", "255")
COMMAND = ["simt", "occupancy", "--threads", "256"]


def test_people_see_limiter_and_other_block_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    """The block that was asked for is marked."""
    assert main([*COMMAND, "--arch", "sm_80", "--registers", "92"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("sm_80: 2 blocks of 256 threads on an SM, 16 of 64 warps (25%)")
    assert "limiter: registers" in out
    assert "256 *" in out
    assert "1024" in out


def test_registers_come_from_ptxas(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With its architecture, static shared memory and barriers; flags overrule."""
    file = tmp_path / "log"
    file.write_text(PTXAS)
    assert main([*COMMAND, "--ptxas", str(file), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["arch"] == "sm_86"
    assert document["usage"]["registers"] == 40
    assert document["usage"]["barriers"] == 2
    assert (document["blocks"], document["shared_bytes_of_block"]) == (6, 3072)
    flags = ["--registers", "128", "--static", "0", "--shared", "90000", "--arch", "sm_90"]
    assert main([*COMMAND, "--ptxas", str(file), *flags, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["arch"], document["usage"]["registers"]) == ("sm_90", 128)
    assert document["limiters"] == ["registers", "shared memory"]


def test_a_kernel_of_several_is_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And asked for when it is not."""
    file = tmp_path / "log"
    file.write_text(TWO)
    assert main([*COMMAND, "--ptxas", str(file), "--kernel", "two", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["usage"]["registers"] == 255
    assert main([*COMMAND, "--ptxas", str(file)]) == 2
    assert "2 kernels; choose --kernel of one, two" in capsys.readouterr().err
    assert main([*COMMAND, "--ptxas", str(file), "--kernel", "three"]) == 2
    assert "'three'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ([], "give --registers N"),
        (["--ptxas", "/nowhere/log"], "cannot read /nowhere/log"),
        (["--registers", "8", "--arch", "sm_91"], "sm_91"),
        (["--registers", "8", "--arch", "sm_110"], "give --threads-per-sm"),
        (["--registers", "8", "--carveout", "200"], "200 %"),
    ],
)
def test_wrong_input_is_one_sentence(
    flags: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2."""
    assert main([*COMMAND, *flags]) == 2
    assert words in capsys.readouterr().err
