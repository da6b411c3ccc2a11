"""`bedplate simt`: what is printed, saved and refused."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest

from bedplate.cli.main import main

PTX = """.version 9.0
.target sm_90
.address_size 64
.visible .entry twice(.param .u64 data, .param .f32 factor) {
.reg .b32 %r<2>;
.reg .f32 %f<4>;
.reg .b64 %rd<4>;
ld.param.u64 %rd1, [data];
ld.param.f32 %f1, [factor];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd2, %r1, 4;
add.s64 %rd3, %rd1, %rd2;
ld.global.f32 %f2, [%rd3];
mul.f32 %f3, %f2, %f1;
st.global.f32 [%rd3], %f3;
ret;
}
"""
LAUNCH = 'grid = 1\nblock = [4]\nargs = ["x.npy", "f32:2"]\n'


@pytest.fixture
def ptx(tmp_path: Path) -> Path:
    """A kernel, a launch file and its array."""
    (tmp_path / "launch.toml").write_text(LAUNCH)
    np.save(tmp_path / "x.npy", np.arange(4, dtype=np.float32))
    path = tmp_path / "twice.ptx"
    path.write_text(PTX)
    return path


def test_run_prints_what_changed(ptx: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The only kernel is chosen, and arrays that changed are shown."""
    words = ["--block", "4", "--arg", "arange:f32[2x2]", "--arg", "f32:3"]
    assert main(["simt", "run", str(ptx), *words]) == 0
    assert capsys.readouterr().out == "argument 0, float32[2x2]: 0.0 3.0 6.0 9.0\n"


def test_a_launch_file_and_what_is_saved(ptx: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Files are found beside the launch file; JSON holds launch/1."""
    out = ptx.parent / "out.npy"
    launch = ["--launch", str(ptx.parent / "launch.toml"), "--save", f"0={out}", "--json"]
    assert main(["simt", "run", str(ptx), *launch]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["launch"]["schema"] == "bedplate.launch/1"
    assert document["launch"]["block"] == [4, 1, 1]
    assert document["changed"][0]["first"] == [0.0, 2.0, 4.0, 6.0]
    assert np.load(out).tolist() == [0.0, 2.0, 4.0, 6.0]


def test_verify_says_how_much_was_compared(ptx: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Seven registers are written by one warp."""
    launch = ["--launch", str(ptx.parent / "launch.toml"), "--verify"]
    assert main(["simt", "run", str(ptx), *launch]) == 0
    assert "both engines agree: 7 registers of 1 blocks" in capsys.readouterr().out


def test_profile_and_report(ptx: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A JSON file with the profiler's names, and its table by line."""
    file = ptx.parent / "p.json"
    launch = ["--launch", str(ptx.parent / "launch.toml"), "--profile", str(file), "--json"]
    assert main(["simt", "run", str(ptx), *launch]) == 0
    name = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
    assert json.loads(capsys.readouterr().out)["launch"]["counters"][name] == 1
    assert json.loads(file.read_text())["metrics"][name] == 1
    assert main(["simt", "report", str(file)]) == 0
    table = capsys.readouterr().out
    assert "twice on sm_90, 1.00 sectors a request" in table
    assert "          1   12.5%          1          1          0          0          0" in table
    file.write_text("[]")
    assert main(["simt", "report", str(file)]) == 2
    assert "is no profile" in capsys.readouterr().err


def test_checks(ptx: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is wrong, in words and in a file; the exit code is the one that was asked for."""
    file = ptx.parent / "c.sarif"
    words = ["--block", "5", "--arg", "arange:f32[4]", "--arg", "f32:3", "--check", "all"]
    assert main(["simt", "run", str(ptx), *words, "--error-exitcode", "9"]) == 9
    said = capsys.readouterr().out
    assert "Invalid __global__ read of size 4 bytes" in said
    assert "ERROR SUMMARY: 2 errors, 0 warnings" in said
    assert main(["simt", "run", str(ptx), *words, "--check-report", str(file)]) == 0
    assert len(json.loads(file.read_text())["runs"][0]["results"]) == 2
    assert main(["simt", "run", str(ptx), *words, "--verify"]) == 2
    assert main(["simt", "run", str(ptx), *words, "--check-report", "x.txt"]) == 2
    words[1] = "4"
    assert main(["simt", "run", str(ptx), *words, "--json", "--error-exitcode", "9"]) == 0
    out = capsys.readouterr().out
    assert json.loads(out[out.index("{") :])["checked"]["findings"] == []


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--kernel", "twicee"], 2, "no kernel 'twicee'; the nearest is 'twice'"),
        (["--arg", "f32:2"], 2, "twice takes 2 arguments, not 1"),
        (["--arg", "f32:2", "--arg", "f32:2"], 2, "argument 0 of twice is .u64, not float32"),
        (["--arg", "ones:f33[2]"], 2, "no type 'f33'; the nearest is"),
        (["--arg", "u32:-1"], 2, "'u32:-1' does not fit u32"),
        (["--arg", "lots"], 2, "'lots' is not understood"),
        (["--block", "2000"], 2, "a block of 2000 is not between 1 and 1024"),
        (["--block", "x"], 2, "--block is ['x']"),
        (["--launch", "none.toml"], 2, "cannot read none.toml"),
        (["--save", "0"], 2, "'0' is not of the form"),
        (["--arg", "u64:64", "--arg", "f32:1"], 1, "address 0x40 is in no allocation"),
    ],
)
def test_wrong_input(
    ptx: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, told: str
) -> None:
    """One sentence with the value; a fault is 1, anything wrong with what was given 2."""
    assert main(["simt", "run", str(ptx), *words]) == code
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1


def test_what_is_no_ptx(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A binary, a missing file, an instruction that is not known."""
    binary = tmp_path / "k.cubin"
    binary.write_bytes(b"\x7fELF\xff\xfe")
    assert main(["simt", "run", str(binary)]) == 2
    assert main(["simt", "run", str(tmp_path / "none.ptx")]) == 2
    odd = tmp_path / "odd.ptx"
    odd.write_text(PTX.replace("mul.f32", "mull.f32"))
    assert main(["simt", "run", str(odd)]) == 2
    assert "odd.ptx:14:1: the instruction 'mull' is not supported" in capsys.readouterr().err


def test_a_file_without_an_end_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Before it fills the memory."""
    assert main(["simt", "run", "/dev/zero"]) == 2
    assert "/dev/zero has more than 67108864 bytes; give PTX" in capsys.readouterr().err


def test_a_trace_in_words_and_in_lines_of_json(
    ptx: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On stdout or in a file, by the reference; what changed is told as ever."""
    launch = ["--launch", str(ptx.parent / "launch.toml")]
    assert main(["simt", "run", str(ptx), *launch, "--trace", "-"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2] == "block 0 warp 0  0000000f     10  mov.u32 %r1, %tid.x;"
    assert lines[-1] == "argument 0, float32[4]: 0.0 2.0 4.0 6.0"
    file = ptx.parent / "t.jsonl"
    assert main(["simt", "run", str(ptx), *launch, "--trace", str(file)]) == 0
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert [row["line"] for row in rows] == list(range(8, 17))
    assert rows[2]["mask"] == 15
    capsys.readouterr()
    assert main(["simt", "run", str(ptx), *launch, "--trace", "-", "--json"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [json.loads(line) for line in said[:9]] == rows
    assert json.loads("\n".join(said[9:]))["changed"][0]["first"] == [0.0, 2.0, 4.0, 6.0]
    assert main(["simt", "run", str(ptx), *launch, "--trace", str(ptx.parent)]) == 2
    assert "cannot write" in capsys.readouterr().err


def test_stepping_by_a_script(
    ptx: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From stdin, shown as a session; an end of the script leaves the launch."""
    launch = ["--launch", str(ptx.parent / "launch.toml"), "--step"]
    monkeypatch.setattr("sys.stdin", io.StringIO("b 15\nc\np %f3\nc\n"))
    assert main(["simt", "run", str(ptx), *launch]) == 0
    out = capsys.readouterr().out
    assert (
        "(simt) b 15\nbreakpoint 1 at 15\n(simt) c\nbreakpoint 1\nblock 0 warp 0  ####...." in out
    )
    assert "0:   0   2   4   6 (0) (0) (0) (0)" in out
    assert out.endswith("9 instructions\nargument 0, float32[4]: 0.0 2.0 4.0 6.0\n")
    monkeypatch.setattr("sys.stdin", io.StringIO("si\n"))
    assert main(["simt", "run", str(ptx), *launch]) == 0
    out = capsys.readouterr().out
    assert "argument 0" not in out
    assert "no array changed" not in out
    for wrong in ("--json", "--verify"):
        assert main(["simt", "run", str(ptx), *launch, wrong]) == 2
        assert "cannot go together" in capsys.readouterr().err


class Terminal(io.StringIO):
    """An output that says it is a terminal."""

    encoding = "utf-8"  # type: ignore[assignment]

    def isatty(self) -> bool:
        return True


def test_a_profile_as_page_and_picture(
    ptx: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From one file; colour only on a terminal whose user did not say no."""
    file, page = ptx.parent / "p.json", ptx.parent / "p.html"
    launch = ["--launch", str(ptx.parent / "launch.toml"), "--profile", str(file)]
    assert main(["simt", "run", str(ptx), *launch]) == 0
    assert "argument 0, float32[4]: 0.0 2.0 4.0 6.0" in capsys.readouterr().out
    assert main(["simt", "report", str(file), "--html", str(page)]) == 0
    assert capsys.readouterr().out == f"wrote {page}\n"
    assert page.read_text().startswith("<!doctype html>")
    picture = ["simt", "report", str(file), "--picture"]
    assert main(picture) == 0
    plain = capsys.readouterr().out
    assert "   10  ████" + " " * 30 + "mov.u32 %r1, %tid.x;" in plain
    for refused, coloured in (("", True), ("1", False)):
        monkeypatch.setenv("NO_COLOR", refused)
        terminal = Terminal()
        monkeypatch.setattr("sys.stdout", terminal)
        assert main(picture) == 0
        assert ("\x1b[" in terminal.getvalue()) == coloured
    monkeypatch.undo()
    for wrong in (["--warp", "1"], ["--rows", "0"]):
        assert main([*picture, *wrong]) == 2
    document = json.loads(file.read_text())
    document["kernel"] = document["lines"][0]["file"] = "\x1b[2J"
    file.write_text(json.dumps(document))
    assert main(picture[:-1]) == 0
    assert "\x1b" not in capsys.readouterr().out
    document["timeline"]["issues"][0][0] = None
    file.write_text(json.dumps(document))
    assert main(["simt", "report", str(file), "--html", str(page)]) == 2
    assert "is no profile" in capsys.readouterr().err


def test_printf_of_a_launch_that_is_watched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under a trace, steps and a profile the kernel says what it says alone."""
    text = (Path(__file__).parents[1] / "simt" / "kernels" / "print.sm_90a.ptx").read_text()
    path = tmp_path / "print.ptx"
    path.write_text(text)
    words = ["simt", "run", str(path), *("--kernel", "many", "--arg", "s32:1")]
    words += ["--grid", "2", "--block", "2"]
    for mode in ("--trace", "--profile"):
        assert main([*words, mode, str(tmp_path / "file")]) == 0
        assert "0.0.0\n0.1.0\n1.0.0\n1.1.0\n" in capsys.readouterr().out
    assert main([*words, "--trace", "-", "--json"]) == 0
    assert "1.1.0" not in capsys.readouterr().out
    call = text[: text.rindex("call.uni")].count("\n") + 1
    steps = f"b {call}\nc\nc\nc\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(steps))
    assert main([*words, "--step"]) == 0
    out = capsys.readouterr().out
    assert "(simt) c\n0.0.0\n0.1.0\n[now block 1, warp 0]\nbreakpoint 1\n" in out
    assert "\n1.0.0\n1.1.0\nthe launch has ended" in out
    assert out.count("0.0.0\n") == 1


def test_printf_is_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a launch that fails too; beside a document it is on standard error."""
    text = (Path(__file__).parents[1] / "simt" / "kernels" / "print.sm_90a.ptx").read_text()
    path = tmp_path / "print.ptx"
    path.write_text(text)
    words = ["simt", "run", str(path), *("--kernel", "many", "--arg", "s32:1")]
    words += ["--grid", "2", "--block", "2"]
    assert main(words) == 0
    assert capsys.readouterr().out.startswith("0.0.0\n0.1.0\n1.0.0\n1.1.0\n")
    assert main([*words, "--json"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("{")
    assert "1.1.0\n" in said.err
    assert main([*words[:5], "--arg", "s32:1500", *words[7:]]) == 0
    assert "printf: 1904 more calls found no room" in capsys.readouterr().out
    head, many, rest = text.partition(".visible .entry many(")
    path.write_text(head + many + rest.replace("\tret;", "\ttrap;", 1))
    assert main(words) == 1
    assert capsys.readouterr().out.startswith("0.0.0\n0.1.0\n")
