"""The first query of a file, in a child."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.hal import foreign

from bedplate.core.paths import native_library_dir
from bedplate.hal import probe, trust


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
        ("QUERY { api.major = 7; *out = &api; return 0; }", "speaks ABI 7.1, this host 0.2"),
        ("QUERY { api.reserved[2] = 1; *out = &api; return 0; }", "reserved or unknown"),
        ("QUERY { mem.reserved[0] = 1; *out = &api; return 0; }", "table mem has a non-zero"),
        ("QUERY { api.head.struct_size = 4; *out = &api; return 0; }", "struct_size 4"),
        ("QUERY { core.enumerate = 0; *out = &api; return 0; }", "no core.enumerate"),
        ("", "does not export bedplate_hal_backend_query"),
    ],
)
def test_a_broken_library_is_refused_and_we_live(tmp_path: Path, body: str, words: str) -> None:
    """Crashes, refusals and half answers each have their sentence."""
    result = probe.ask(foreign.build(tmp_path, "broken", body))
    assert words in (result.reason or "")


def test_a_library_that_hangs_is_refused(tmp_path: Path) -> None:
    """At the deadline the child is killed."""
    library = foreign.build(tmp_path, "hang", "QUERY { for (;;) pause(); }")
    assert "did not answer" in (probe.ask(library, 0.3).reason or "")


def test_a_file_that_is_no_library_is_refused(tmp_path: Path) -> None:
    """dlopen's own words come through."""
    text = tmp_path / "text.so"
    text.write_text("no library")
    assert "cannot open" in (probe.ask(text).reason or "")
    assert "not absolute" in (probe.ask(Path("libc.so.6")).reason or "")


def test_an_answer_is_cached_by_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second time nothing is run; a failure is asked again."""
    monkeypatch.setenv("BEDPLATE_CACHE_DIR", str(tmp_path / "cache"))
    library = native_library_dir() / "hal.d" / "bedplate_hal_cpu.so"
    assert probe.probe(library, trust.digest(library)) == probe.ProbeResult(None, 1)
    monkeypatch.setattr(probe, "ask", lambda path: probe.ProbeResult("asked"))
    assert probe.probe(library, trust.digest(library)) == probe.ProbeResult(None, 1)
    assert probe.probe(library, "1" * 64).reason == "asked"
    assert probe.probe(library, "1" * 64).reason == "asked"


def test_a_cache_that_cannot_be_used_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file where the folder should be, and rubbish where the answer should be."""
    monkeypatch.setenv("BEDPLATE_CACHE_DIR", str(tmp_path / "file"))
    (tmp_path / "file").write_text("")
    library = native_library_dir() / "hal.d" / "bedplate_hal_cpu.so"
    assert probe.probe(library, "2" * 64).reason is None
    monkeypatch.setenv("BEDPLATE_CACHE_DIR", str(tmp_path))
    (tmp_path / "hal").mkdir()
    (tmp_path / "hal" / f"{'3' * 64}.json").write_text("[]")
    assert probe.probe(library, "3" * 64).reason is None


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
    result = probe.ask(foreign.build(tmp_path, "cardless", body))
    assert result == probe.ProbeResult("there is no such card", unavailable=True)
    assert not probe.ask(foreign.build(tmp_path, "broken", "QUERY { return -4; }")).unavailable
