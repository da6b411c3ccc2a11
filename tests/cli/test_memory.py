"""`bedplate memory`: tables, JSON, pages, and one sentence for wrong input."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from bedplate.cli.main import main

TRACE = "Thread,Time,Action,Pointer,Size,Stream\n0,1,allocate,0x1,3000000,0\n0,2,free,0x1,0,0\n"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """One request and its free."""
    path = tmp_path / "small.csv"
    path.write_text(TRACE)
    return path


def test_replay_prints_a_table_and_json(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One row a policy; the model of PyTorch is marked without a recording."""
    assert main(["memory", "replay", str(trace)]) == 0
    out = capsys.readouterr().out
    assert "bedplate" in out
    assert "MODEL NOT VALIDATED" in out
    assert main(["memory", "replay", str(trace), "--policy", "slab", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows[0]["policy"] == "slab"
    assert rows[0]["live_peak_bytes"] == 3_000_000


def test_that_a_command_is_at_work_is_no_data(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pipe of stdout gets the answer alone; stderr hears the rest."""
    for words in (["replay"], ["replay", "--sanitize"], ["plan"]):
        assert main(["memory", words[0], str(trace), *words[1:]]) == 0
        seen = capsys.readouterr()
        assert "reading " not in seen.out
        assert f"reading {trace}" in seen.err
        assert not re.search(r"(replaying|looking|planning) .* records", seen.out)


def test_plan_show_and_convert(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The plan's size and bound, a picture here and as a page, and another form."""
    assert main(["memory", "plan", str(trace), "--out", str(tmp_path / "plan.json")]) == 0
    assert "1 requests fit in" in capsys.readouterr().out
    assert json.loads((tmp_path / "plan.json").read_bytes())["offsets"] == [0]
    assert main(["memory", "show", str(trace)]) == 0
    assert "█" in capsys.readouterr().out
    assert main(["memory", "show", str(trace), "--html", str(tmp_path / "p.html")]) == 0
    assert "<svg" in (tmp_path / "p.html").read_text()
    assert main(["memory", "convert", str(trace), str(tmp_path / "t.bpt")]) == 0
    assert main(["memory", "replay", str(tmp_path / "t.bpt"), "--policy", "buddy"]) == 0


def test_nothing_that_fitted_has_no_ratio(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A device too small for every request: a dash, not a perfect ratio."""
    words = ["memory", "replay", str(trace), "--policy", "rmm", "--capacity", "1MiB"]
    assert main(words) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    (row,) = [row for row in rows if row[:1] == ["rmm"]]
    assert row[:6] == ["rmm", "0", "B", "0", "B", "-"]


def test_a_trace_without_a_request_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By every verb: there is nothing to replay, place, draw or write."""
    empty = tmp_path / "empty.csv"
    empty.write_text(TRACE.splitlines()[0] + "\n")
    for words in (["replay"], ["plan"], ["show"]):
        assert main(["memory", *words, str(empty)]) == 2
        assert "empty.csv holds no request" in capsys.readouterr().err
    assert main(["memory", "convert", str(empty), str(tmp_path / "e.bpt")]) == 2


def test_a_recorded_job_is_told_in_one_line(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """However narrow the table below it is."""
    what = "a job whose description is far longer than the table of its replay, and then some"
    (trace.parent / "jobs.json").write_text(json.dumps([{"job": "small", "what": what}]))
    assert main(["memory", "replay", str(trace), "--policy", "slab"]) == 0
    assert what in capsys.readouterr().out.splitlines()


def test_the_picture_says_what_it_shows(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The axes, the policy, and the two figures that the shades stand for."""
    assert main(["memory", "show", str(trace), "--policy", "slab"]) == 0
    *_, axes, held = capsys.readouterr().out.splitlines()
    assert "addresses upwards, 2 records to the right" in axes
    assert held.strip().startswith("slab: at most 2.9 MiB live, ")


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["replay", "NONE.csv"], "NONE.csv cannot be read: No such file or directory\n"),
        (["replay", "TRACE", "--policy", "pytroch"], "unknown policy 'pytroch'"),
        (["show", "TRACE", "--policy", "x"], "unknown policy"),
        (["replay", "TRACE", "--capacity", "much"], "much"),
        (["convert", "TRACE", "out.txt"], "neither .csv nor .bpt"),
        (
            ["replay", "TRACE", "--explain", "--sanitize", "--capacity", "1GB"],
            "--sanitize has no end of memory and --explain needs one; give one of them",
        ),
        (["make", "streams", "x.csv", "--records", "-5"], "records is -5; give a whole number"),
        (["make", "streams", "x.csv", "--forget", "1.5"], "forget is 1.5; give a part of the"),
        (["show", "TRACE", "--html", "no/such/folder/p.html"], "no/such/folder"),
    ],
)
def test_wrong_input_is_one_sentence(
    trace: Path, words: list[str], part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2, the value in it, no traceback."""
    given = [str(trace) if word == "TRACE" else word for word in words]
    assert main(["memory", *given]) == 2
    err = capsys.readouterr().err
    assert part in err
    assert "Traceback" not in err


WORK = (
    "Thread,Time,Action,Pointer,Size,Stream\n0,1,allocate,0x1,3000000,0\n0,2,use,0x1,,1\n"
    "{told}0,4,free,0x1,0,0\n0,5,allocate,0x2,3000000,0\n"
)


def test_a_sanitized_replay_fails_on_an_unsafe_reuse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """1 and the block with both streams while `used_on` lacks, 0 with it; JSON has the records."""
    path = tmp_path / "job.csv"
    path.write_text(WORK.format(told=""))
    words = ["memory", "replay", str(path), "--sanitize"]
    assert main(words) == 1
    out = capsys.readouterr().out
    assert "bedplate: 1 unsafe in 4 records" in out
    assert "stream 0 gets the block of record 0" in out
    assert "stream 1 may still be at work" in out
    assert main([*words, "--policy", "bedplate", "--policy", "best-fit", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [(entry["policy"], len(entry["unsafe"])) for entry in found] == [
        ("bedplate", 1),
        ("best-fit", 1),
    ]
    assert found[0]["unsafe"][0]["second"] == 3
    path.write_text(WORK.format(told="0,3,used_on,0x1,,1\n"))
    assert main(words) == 0
    assert main([*words, "--capacity", "1GiB"]) == 2
    assert "leave out --capacity" in capsys.readouterr().err


def test_show_takes_a_capacity(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On a device too small the request is not drawn, and that is said."""
    assert main(["memory", "show", str(trace), "--capacity", "2MB"]) == 0
    assert "1 requests did not fit" in capsys.readouterr().out
    assert main(["memory", "show", str(trace), "--capacity", "4GiB"]) == 0
    assert "did not fit" not in capsys.readouterr().out


def test_replay_takes_a_policy_of_yours(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A library by its path, beside others in one table; one that is none is refused."""
    root = Path(__file__).parents[2]
    includes = [f"-I{root / part / 'include'}" for part in ("native/runtime", "native/hal")]
    library = str(tmp_path / "mine.so")
    source = root / "native" / "runtime" / "examples" / "first_fit.c"
    command = ["gcc", "-shared", "-fPIC", *includes, str(source), "-o", library]
    subprocess.run(command, check=True)
    words = ["memory", "replay", str(trace), "--policy", library, "--policy", "best-fit"]
    assert main(words) == 0
    assert library in capsys.readouterr().out
    assert main(["memory", "replay", str(trace), "--policy", str(tmp_path / "none.so")]) == 2
    assert "exports no bp_runtime_policy_1" in capsys.readouterr().err


def test_traces_by_seed_and_why_they_do_not_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A seed is printed and makes the same file; a capacity too small is explained."""
    paths = [str(tmp_path / f"{name}.csv") for name in "abc"]
    for path, seed in zip(paths, ("7", "7", None), strict=True):
        words = ["memory", "make", "training", path, "--records", "900"]
        assert main([*words, *(["--seed", seed] if seed else [])]) == 0
        assert f"seed {seed or ''}" in capsys.readouterr().out
    assert Path(paths[0]).read_bytes() == Path(paths[1]).read_bytes() != Path(paths[2]).read_bytes()
    words = ["memory", "replay", paths[0], "--explain"]
    assert main([*words, "--capacity", "100MB"]) == 1
    out = capsys.readouterr().out
    assert "do not fit in pool `activations`" in out
    assert "live " in out
    assert main([*words, "--capacity", "64GiB"]) == 0
    assert "records fit" in capsys.readouterr().out
    assert main([*words, "--capacity", "100MB", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["bytes"] > 0
    assert main(words) == 2
    assert "--capacity" in capsys.readouterr().err
    assert main(["memory", "make", "dreams", paths[0]]) == 2
    assert "no workload 'dreams'" in capsys.readouterr().err


def test_what_is_left_out_of_a_file_is_told(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On stderr, whatever the verb, and the rest is used."""
    log = tmp_path / "t.bpt"
    assert main(["memory", "convert", str(trace), str(log)]) == 0
    log.write_bytes(log.read_bytes()[:-3])
    capsys.readouterr()
    for verb in ("replay", "plan", "show"):
        assert main(["memory", verb, str(log)]) == 0
        assert "t.bpt ends inside a record; its last 37 bytes" in capsys.readouterr().err


def test_a_model_that_is_not_validated_says_how(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a recorded peak: what to write where; with another peak: what it was."""
    assert main(["memory", "replay", str(trace)]) == 0
    assert '[{"job": "small", "peak_reserved_bytes": N}]' in capsys.readouterr().out
    jobs = [{"job": "small", "peak_reserved_bytes": 1 << 30}]
    (trace.parent / "jobs.json").write_text(json.dumps(jobs))
    assert main(["memory", "replay", str(trace)]) == 0
    assert "more than 1 % from the recorded 1.0 GiB" in capsys.readouterr().out
    jobs = [{"job": "small", "peak_reserved_bytes": 20 << 20}]
    (trace.parent / "jobs.json").write_text(json.dumps(jobs))
    assert main(["memory", "replay", str(trace)]) == 0
    assert "NOT VALIDATED" not in capsys.readouterr().out


def test_a_recorded_jobs_words_do_not_steer_the_terminal(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They come from a file that somebody else wrote."""
    words = "clear \x1b[2J and \x07 ring"
    job = {"job": "small", "what": words, "device": words, "torch": words}
    (trace.parent / "jobs.json").write_text(json.dumps([{**job, "peak_reserved_bytes": 5}]))
    for more in ([], ["--json"]):
        assert main(["memory", "replay", str(trace), *more]) == 0
        seen = capsys.readouterr()
        assert "\x1b" not in seen.out + seen.err
        assert "\x07" not in seen.out + seen.err
    assert main(["memory", "replay", str(trace)]) == 0
    assert r"clear \x1b[2J and \x07 ring" in capsys.readouterr().out


def test_planned_fails_what_lies_beyond_the_capacity(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And holds no more than the device has."""
    words = ["memory", "replay", str(trace), "--policy", "planned", "--json", "--capacity"]
    assert main([*words, "1MiB"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["out_of_memory"], row["reserved_peak_bytes"]) == (1, 0)
    assert main([*words, "4MiB"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["out_of_memory"], row["reserved_peak_bytes"]) == (0, 3_000_320)


def test_too_many_streams_are_the_traces(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Told by the replay, the explanation and the sanitizer of ours; others place it."""
    path = tmp_path / "many.csv"
    rows = [f"0,1,allocate,{n + 1:#x},5,s{n}" for n in range(1025)]
    path.write_text("\n".join([TRACE.splitlines()[0], *rows, ""]))
    for more in (["--policy", "bedplate"], ["--explain", "--capacity", "1GB"], ["--sanitize"]):
        assert main(["memory", "replay", str(path), *more]) == 2
        assert "the trace has 1,025 streams; `bedplate` knows 1,024" in capsys.readouterr().err
    assert main(["memory", "replay", str(path), "--policy", "best-fit"]) == 0
