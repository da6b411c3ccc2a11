"""The lint of the runtime contract: what it sees, what it lets pass, what it asks for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bedplate.core.errors import UsageError
from bedplate.core.gates import GateVerdict
from bedplate.runtime.api import RuntimeContract
from bedplate.runtime.lint import scan

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("line", "call", "ending"),
    [
        ("queue.synchronize()", "synchronize", ".py"),
        ("    torch.cuda.synchronize( )", "synchronize", ".py"),
        ("synchronize()", "synchronize", ".py"),
        ("x = [synchronize(d) for d in all]", "synchronize", ".py"),
        ('f"{self.queue.synchronize()!r:>{9}} s"', "synchronize", ".py"),
        ("cudaDeviceSynchronize();", "synchronize", ".cu"),
        ("cudaEventSynchronize(event);", "synchronize", ".cu"),
        ("runtime.eventSynchronize(event)", "synchronize", ".py"),
        ("queue->synchronize();", "synchronize", ".cpp"),
        ("if (late) torch::cuda::synchronize();", "synchronize", ".cpp"),
        ("status = cuCtxSynchronize();", "synchronize", ".c"),
        ("#define WAIT(x) check(cuCtxSynchronize())", "synchronize", ".h"),
        ("#define WAIT(x) \\\n  hipStreamSynchronize(x)", "synchronize", ".h"),
        ("clFinish(queue);", "synchronize", ".c"),
        ("clWaitForEvents(1, &event);", "synchronize", ".c"),
        ("fn end<'a>(q: &'a Queue) { q.synchronize() }", "synchronize", ".rs"),
        ("x = self.device.allocate(5)", "allocate", ".py"),
        ("x = self._device.allocate(5)", "allocate", ".py"),
        ("x = devices[0].allocate(5)", "allocate", ".py"),
        ("x = gpu_device().allocate(5)", "allocate", ".py"),
        ("x = dev.allocate(5)", "allocate", ".py"),
        ("torch.cuda.empty_cache()", "allocate", ".py"),
        ("api->memory->allocate(device, 5, &out);", "allocate", ".c"),
        ("mem->create(device, &wanted, &memory);", "allocate", ".c"),
        ("cudaMallocAsync(&p, n, s);", "allocate", ".cu"),
        ("cudaMallocHost(&p, n);", "allocate", ".cu"),
        ("cudaHostAlloc(&p, n, 0);", "allocate", ".cu"),
        ("cuMemHostAlloc(&p, n, 0);", "allocate", ".c"),
        ("hipHostMalloc(&p, n, 0);", "allocate", ".cpp"),
        ("clSVMAlloc(context, 0, n, 0);", "allocate", ".c"),
        ("clReleaseMemObject(memory);", "allocate", ".c"),
        ("cuMemMap(a, b, 0, h, 0);", "allocate", ".c"),
        ("const int n = 1'000'000; cudaFree(p); // '", "allocate", ".cu"),
        ('puts("a \\" // "); cudaFree(p);', "allocate", ".cu"),
        ('puts(R"x(a )" ")x"); cudaFree(p);', "allocate", ".cu"),
    ],
)
def test_calls_are_seen(line: str, call: str, ending: str) -> None:
    """By the vendors' names and by ours, in a macro and beside literals."""
    lines = line.count("\n")
    assert list(scan(f"a = 1\n{line}\n", ending)) == [(2 + lines, call)]


def test_a_call_over_lines_is_seen_at_its_name() -> None:
    """Once a line, however often it stands there."""
    text = "x = (\n    self.device\n    .allocate\n    (5)\n)\nq.synchronize(); r.synchronize()\n"
    assert list(scan(text)) == [(3, "allocate"), (6, "synchronize")]
    assert list(scan("q\n  ->synchronize\n();", ".cpp")) == [(2, "synchronize")]


@pytest.mark.parametrize(
    ("line", "ending"),
    [
        ("# queue.synchronize() would wait", ".py"),
        ('"""Never call\ndevice.allocate(5) here."""', ".py"),
        ('say("use queue.synchronize() instead")', ".py"),
        ('f"{{queue.synchronize()}} {name}"', ".py"),
        ("// cudaDeviceSynchronize();", ".cu"),
        ("// goes on \\\n cudaDeviceSynchronize();", ".cu"),
        ("/* cuMemAlloc() is slow,\n cudaMalloc() too */", ".c"),
        ("/* outer /* inner */ device.allocate(5) */", ".rs"),
        ('log("cudaMalloc(%d) failed");', ".cu"),
        ('puts(R"(a " cudaFree(p) )");', ".cu"),
        ('let s = r#"a " device.allocate(5)"#;', ".rs"),
        ("def synchronize(self): ...", ".py"),
        ("async def synchronize(self): ...", ".py"),
        ("void synchronize(Queue *);", ".hpp"),
        ("void Queue::synchronize() {}", ".cpp"),
        ("pub fn synchronize(&self) {}", ".rs"),
        ("pool.allocate(5, stream)", ".py"),
        ("timeline.wait(7)", ".py"),
    ],
)
def test_prose_definitions_and_pools_are_not(line: str, ending: str) -> None:
    """A comment, a docstring, a message, a definition, and the right way to do it."""
    assert list(scan(line, ending)) == []


def test_python_with_an_error_is_looked_at_as_it_stands() -> None:
    """A finding more can be looked at; a call that was missed cannot."""
    assert list(scan("x = (\nqueue.synchronize()\n")) == [(2, "synchronize")]


def tree(folder: Path, source: str, settings: str = "") -> Path:
    """A tree with one engine file."""
    engine = folder / "src" / "bedplate" / "serving"
    engine.mkdir(parents=True)
    (engine / "step.py").write_text(source)
    if settings:
        (folder / "standards.toml").write_text(settings)
    return folder


ALLOW = """[[runtime_contract.allow]]
path = "src/bedplate/serving/step.py"
call = "synchronize"
reason = "{reason}"
"""


def test_a_violation_names_file_line_and_remedy(tmp_path: Path) -> None:
    """And an exception with a reason lets it pass."""
    result = RuntimeContract().check(tree(tmp_path / "a", "x = 1\nqueue.synchronize()\n"))
    assert result.verdict is GateVerdict.FAILED
    (found,) = result.findings
    assert (found.path, found.line) == ("src/bedplate/serving/step.py", 2)
    assert "standards.toml" in found.remedy
    given = tree(tmp_path / "b", "queue.synchronize()\n", ALLOW.format(reason="it is the end"))
    assert RuntimeContract().check(given).verdict is GateVerdict.PASSED


def test_an_exception_that_nobody_needs_is_a_finding(tmp_path: Path) -> None:
    """Else the list only grows."""
    result = RuntimeContract().check(tree(tmp_path, "x = 1\n", ALLOW.format(reason="once")))
    assert "any more" in result.findings[0].message


def test_exceptions_need_a_reason_and_a_known_call(tmp_path: Path) -> None:
    """One sentence each; a broken file too."""
    silent = tree(tmp_path / "a", "", ALLOW.format(reason=" "))
    with pytest.raises(UsageError, match="for no reason"):
        RuntimeContract().check(silent)
    changed = ALLOW.format(reason="x").replace('"synchronize"', '"sync"')
    with pytest.raises(UsageError, match="no call is named 'sync'"):
        RuntimeContract().check(tree(tmp_path / "b", "", changed))


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("[[[", "cannot be read"),
        ("runtime_contract = 5", r"runtime_contract: expected table, got int"),
        ("[runtime_contrat]", "runtime_contrat: unknown key; the nearest is 'runtime_contract'"),
        ("[runtime_contract]\nfolder = []", "runtime_contract.folder: unknown key; .* 'folders'"),
        ("[runtime_contract]\nfolders = 'src'", "runtime_contract.folders: expected array, got"),
        ("[runtime_contract]\nfolders = ['../x']", "folders: '../x' is no folder of the tree"),
        ("[runtime_contract]\nallow = [5]", r"allow\[0\]: expected table, got int"),
        ("[[runtime_contract.allow]]\npath = 'a'", r"allow\[0\].call: it is missing"),
    ],
)
def test_a_bad_file_is_refused_with_its_key(tmp_path: Path, text: str, part: str) -> None:
    """One sentence with the file, the key and what to do; exit code 2."""
    with pytest.raises(UsageError, match=part) as caught:
        RuntimeContract().check(tree(tmp_path, "", text))
    assert str(tmp_path / "standards.toml") in str(caught.value)
    assert caught.value.remedy


def test_only_files_are_read(tmp_path: Path) -> None:
    """A pipe that nobody writes to and a folder are passed over; as standards.toml refused."""
    given = tree(tmp_path, "x = 1\n")
    os.mkfifo(given / "src" / "bedplate" / "serving" / "pipe.py")
    (given / "src" / "bedplate" / "serving" / "folder.py").mkdir()
    assert RuntimeContract().check(given).verdict is GateVerdict.PASSED
    os.mkfifo(given / "standards.toml")
    with pytest.raises(UsageError, match="is no file"):
        RuntimeContract().check(given)


def test_a_tree_without_an_engine_is_not_run(tmp_path: Path) -> None:
    """Never a pass."""
    assert RuntimeContract().check(tmp_path).verdict is GateVerdict.NOT_RUN


def test_our_own_tree_passes() -> None:
    """With the exceptions that it names."""
    assert RuntimeContract().check(ROOT).verdict is GateVerdict.PASSED
