"""The first query of a file, in a child."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from tests.hal import foreign

from bedplate.core.paths import native_library_dir
from bedplate.hal import probe, trust
from bedplate.hal.abi import ABI_VERSION


def ask(path: Path, deadline_s: float = probe.DEADLINE_S) -> str:
    """The reason that a file is refused for when it is asked, or nothing."""
    with trust.opened(path) as file:
        return probe.ask(file, deadline_s).reason or ""


def probed(path: Path, sha256: str) -> probe.ProbeResult:
    """The answer of the cache, or of the child."""
    with trust.opened(path) as file:
        return probe.probe(file, sha256)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("QUERY { abort(); }", "died of SIGABRT"),
        ("QUERY { *(volatile int *)8 = 1; return 0; }", "died of SIGSEGV"),
        ("__attribute__((constructor)) static void boom(void) { abort(); }", "died of SIGABRT"),
        ("QUERY { _exit(0); }", "its query ended with 0"),
        ("QUERY { return -4; }", "refused the query for ABI major 0 with status -4"),
        ("QUERY { *out = 0; return 0; }", "null table"),
        ("QUERY { api.queue = 0; *out = &api; return 0; }", "no queue table"),
        ("QUERY { api.major = 7; *out = &api; return 0; }", f"this host {ABI_VERSION}"),
        ("QUERY { api.reserved[2] = 1; *out = &api; return 0; }", "reserved or unknown"),
        ("QUERY { mem.reserved[0] = 1; *out = &api; return 0; }", "table mem has a non-zero"),
        ("QUERY { api.head.struct_size = 4; *out = &api; return 0; }", "struct_size 4"),
        ("QUERY { core.enumerate = 0; *out = &api; return 0; }", "no core.enumerate"),
        ("", "does not export bedplate_hal_backend_query"),
    ],
)
def test_a_broken_library_is_refused_and_we_live(tmp_path: Path, body: str, words: str) -> None:
    """Crashes, refusals and half answers each have their sentence."""
    assert words in ask(foreign.build(tmp_path, "broken", body))


def test_a_library_that_hangs_is_refused(tmp_path: Path) -> None:
    """At the deadline the child is killed."""
    library = foreign.build(tmp_path, "hang", "QUERY { for (;;) pause(); }")
    assert "did not answer" in ask(library, 0.3)


def test_a_file_that_is_no_library_is_refused(tmp_path: Path) -> None:
    """dlopen's own words come through."""
    text = tmp_path / "text.so"
    text.write_text("no library")
    assert "cannot open" in ask(text)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["libc.so.6"], "not absolute"),
        (["/nothing/at/all.so"], "cannot open /nothing/at/all.so"),
        (["/any.so", "99"], "descriptor 99 for /any.so is not an open regular file"),
        (["/any.so", "1"], "descriptor 1 for /any.so is not an open regular file"),
        (["/any.so", "-3"], "descriptor -3 for /any.so is not an open regular file"),
    ],
)
def test_the_loader_refuses_what_it_cannot_open(words: list[str], said: str) -> None:
    """A bare soname, a missing file, a descriptor that is closed, a pipe or negative."""
    program = str(native_library_dir() / "bedplate_hal_probe")
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert said in done.stdout


def test_an_answer_is_cached_by_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second time nothing is run; a failure is asked again."""
    monkeypatch.setenv("BEDPLATE_CACHE_DIR", str(tmp_path / "cache"))
    library = native_library_dir() / "hal.d" / "bedplate_hal_cpu.so"
    assert probed(library, trust.digest(library)) == probe.ProbeResult(None, 1)
    monkeypatch.setattr(probe, "ask", lambda file: probe.ProbeResult("asked"))
    assert probed(library, trust.digest(library)) == probe.ProbeResult(None, 1)
    assert probed(library, "1" * 64).reason == "asked"
    assert probed(library, "1" * 64).reason == "asked"


def test_an_upgrade_asks_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another loader or probe asks more than the one whose answer is kept."""
    monkeypatch.setenv("BEDPLATE_CACHE_DIR", str(tmp_path))
    library = native_library_dir() / "hal.d" / "bedplate_hal_cpu.so"
    assert probed(library, "6" * 64).devices == 1
    kept = tmp_path / "hal" / f"{'6' * 64}.json"
    before = json.loads(kept.read_text())
    kept.write_text(json.dumps(before | {"devices": 9, "asked_by": "0.1 " + "0" * 32}))
    assert probed(library, "6" * 64).devices == 1
    assert json.loads(kept.read_text()) == before
    kept.write_text('{"devices": 9}')  # as the first versions kept it
    assert probed(library, "6" * 64).devices == 1


@pytest.mark.parametrize("changed", [probe.PROGRAM, "libbedplate_hal.so"])
def test_who_asks_is_the_program_and_the_loader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    """A byte of either makes it another."""
    asked_by = probe.asked_by.__wrapped__
    for name in (probe.PROGRAM, "libbedplate_hal.so"):
        (tmp_path / name).write_bytes((native_library_dir() / name).read_bytes())
    assert asked_by().startswith(f"{ABI_VERSION} ")
    monkeypatch.setattr(probe, "native_library_dir", lambda: tmp_path)
    before = asked_by()
    with (tmp_path / changed).open("ab") as file:
        file.write(b"\0")
    assert asked_by() != before


def test_a_cache_that_cannot_be_used_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file where the folder should be, and rubbish where the answer should be."""
    monkeypatch.setenv("BEDPLATE_CACHE_DIR", str(tmp_path / "file"))
    (tmp_path / "file").write_text("")
    library = native_library_dir() / "hal.d" / "bedplate_hal_cpu.so"
    assert probed(library, "2" * 64).reason is None
    monkeypatch.setenv("BEDPLATE_CACHE_DIR", str(tmp_path))
    (tmp_path / "hal").mkdir()
    (tmp_path / "hal" / f"{'3' * 64}.json").write_text("[]")
    assert probed(library, "3" * 64).reason is None


def test_a_backend_without_its_device_is_unavailable_not_refused(tmp_path: Path) -> None:
    """It answered its query; doctor and list tell its own sentence."""
    body = """
    static int32_t nobody(uint32_t *count) { *count = 0; return -4; }
    static int32_t why(char *buffer, uint64_t capacity, uint64_t *length) {
        static const char text[] = "there is no such card";
        if (length) *length = sizeof(text) - 1;
        if (capacity >= sizeof(text)) memcpy(buffer, text, sizeof(text));
        return 0;
    }
    QUERY { core.enumerate = nobody; core.last_error = why; *out = &api; return 0; }
    """
    with trust.opened(foreign.build(tmp_path, "cardless", body)) as file:
        result = probe.ask(file)
    assert result == probe.ProbeResult("there is no such card", unavailable=True)
    with trust.opened(foreign.build(tmp_path, "broken", "QUERY { return -4; }")) as file:
        assert not probe.ask(file).unavailable


def test_a_cache_that_others_may_write_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer put there would skip the child."""
    monkeypatch.setenv("BEDPLATE_CACHE_DIR", str(tmp_path))
    library = native_library_dir() / "hal.d" / "bedplate_hal_cpu.so"
    kept = tmp_path / "hal" / f"{'4' * 64}.json"
    kept.parent.mkdir()
    kept.write_text(json.dumps({"devices": 9, "asked_by": probe.asked_by()}))
    kept.chmod(0o644)
    assert probed(library, "4" * 64).devices == 9
    kept.chmod(0o666)
    assert probed(library, "4" * 64).devices == 1


LOOKED_AT = """
static int32_t properties(uint32_t index, bp_device_properties *out) { %s return 0; }
static int32_t claims(uint32_t i, bp_capability *out, uint32_t room, uint32_t *count) {
    %s *count = 0; return 0;
}
QUERY { core.properties = properties; core.capabilities = claims; *out = &api; return 0; }
"""


@pytest.mark.parametrize(
    ("properties", "claims", "words"),
    [
        ("abort();", "", "died of SIGABRT"),
        ("", "abort();", "died of SIGABRT"),
        ("for (;;) pause();", "", "did not answer"),
        ("out->name.data = (char *)8; out->name.length = 9;", "", "died of SIGSEGV"),
        ("out->driver.data = (char *)8; out->driver.length = 9;", "", "died of SIGSEGV"),
        ("out->property_count = 1; out->properties = (void *)8;", "", "died of SIGSEGV"),
        ("", "", ""),
        ("return -12;", "return -12;", ""),
    ],
)
def test_what_is_asked_before_an_open_is_asked_in_the_child(
    tmp_path: Path, properties: str, claims: str, words: str
) -> None:
    """One that crashes when it describes its device does not end `hal list` for all."""
    said = ask(foreign.build(tmp_path, "looked", LOOKED_AT % (properties, claims)), 1.0)
    assert words in said
    assert bool(said) == bool(words)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("raise(40);", "died of signal 40 when"),
        ('printf("devices=\\302\\262\\n"); fflush(stdout); _exit(0);', "ended with 0"),
        ('printf("devices=-1\\n"); fflush(stdout); _exit(0);', "ended with 0"),
    ],
)
def test_an_odd_end_or_answer_is_a_refusal(tmp_path: Path, body: str, words: str) -> None:
    """A signal without a name, and a number that is none."""
    text = f"#include <signal.h>\n#include <stdio.h>\nQUERY {{ {body} return 0; }}"
    assert words in ask(foreign.build(tmp_path, "odd", text))


@pytest.mark.parametrize(
    "content",
    [
        "[" * 4000,
        '{"devices": 1e400%s}',
        '{"devices": -3%s}',
        '{"devices": 4294967296%s}',
        '{"devices": true%s}',
        "{",
    ],
)
def test_a_cache_that_is_garbage_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    """The file is asked again, and its answer takes the garbage's place."""
    monkeypatch.setenv("BEDPLATE_CACHE_DIR", str(tmp_path / "cache"))
    library = foreign.build(tmp_path, "minimal")
    assert probed(library, "5" * 64).devices == 1
    (path,) = (tmp_path / "cache" / "hal").iterdir()
    answer, asked_by = path.read_text(), f', "asked_by": "{probe.asked_by()}"'
    path.write_text(content.replace("%s", asked_by))
    assert probed(library, "5" * 64) == probe.ProbeResult(None, 1)
    assert path.read_text() == answer
