"""Attempts to get code into this process that nobody registered. Each must fail.

The attacker's library writes a mark when it is merely opened, so that a test
sees not only what was refused but that nothing of it ran here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.hal import foreign

from bedplate.hal import discovery, doctor, probe, trust
from bedplate.hal import open as opening
from bedplate.hal.discovery import DIRECTORIES_VARIABLE, FILES_VARIABLE
from bedplate.hal.errors import BackendMissing, BackendRefused, Unavailable
from bedplate.hal.trust import TrustedFile

EVIL = """
#include <stdio.h>
__attribute__((constructor)) static void mark(void) {
    FILE *file = fopen("MARK", "a");
    fprintf(file, "%d\\n", (int)getpid());
    fclose(file);
}
static int32_t seven(uint32_t *count) { *count = 7; return 0; }
QUERY { core.enumerate = seven; *out = &api; return 0; }
"""


class Trap:
    """A folder of registrations, and a library that leaves a mark where it is opened."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = root / "hal.d"
        self.folder.mkdir(mode=0o755)
        self.elsewhere = root / "elsewhere"
        self.elsewhere.mkdir(mode=0o755)
        self.mark = root / "mark"
        monkeypatch.setenv("BEDPLATE_DATA_DIR", str(root / "data"))
        monkeypatch.setenv("BEDPLATE_CACHE_DIR", str(root / "cache"))
        monkeypatch.setenv(DIRECTORIES_VARIABLE, str(self.folder))

    def evil(self, folder: Path, name: str = "evil") -> Path:
        """The attacker's library."""
        return foreign.build(folder, name, EVIL.replace("MARK", str(self.mark)))

    def good(self, name: str = "acme") -> Path:
        """A library of ours, with one device."""
        return foreign.build(self.folder, name)

    def opened_by(self) -> set[int]:
        """The processes that opened the attacker's library."""
        return (
            {int(line) for line in self.mark.read_text().split()} if self.mark.exists() else set()
        )


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trap:
    """One for each test."""
    return Trap(tmp_path, monkeypatch)


def refused(trap: Trap, name: str = "acme") -> str:
    """The reason; and nothing was opened by anyone, in doctor, list or open."""
    found = [finding for finding in doctor.examine() if finding.path.stem == name]
    assert [finding.verdict for finding in found] == ["refused"]
    with pytest.raises((BackendRefused, BackendMissing)):
        opening.open_device(name)
    doctor.listing()
    assert trap.opened_by() == set()
    return found[0].reason or ""


def swap(victim: Path, evil: Path) -> Callable[[], None]:
    """Put another file at a path in one step, as an attacker would."""

    def now() -> None:
        os.replace(shutil.copy(evil, victim.with_suffix(".new")), victim)

    return now


def test_a_swap_between_check_and_load_gains_nothing(
    trap: Trap, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file that was hashed is the one that is loaded, whatever lies at its path by then."""
    good = trap.good()
    foreign.register(good, "acme")
    now = swap(good, trap.evil(trap.elsewhere))
    asked = probe.probe

    def slow(file: TrustedFile, sha256: str) -> probe.ProbeResult:
        result = asked(file, sha256)
        now()
        return result

    monkeypatch.setattr(opening, "probe", slow)
    assert opening.load("acme").device_count() == 1
    assert trap.opened_by() == set()


def test_a_swap_before_the_child_gains_nothing(trap: Trap, monkeypatch: pytest.MonkeyPatch) -> None:
    """The child is asked about the open file too, not about the path."""
    good = trap.good()
    foreign.register(good, "acme")
    now = swap(good, trap.evil(trap.elsewhere))
    asked = probe.probe

    def late(file: TrustedFile, sha256: str) -> probe.ProbeResult:
        now()
        return asked(file, sha256)

    monkeypatch.setattr(opening, "probe", late)
    assert opening.load("acme").device_count() == 1
    assert trap.opened_by() == set()


def test_a_symlink_turned_between_check_and_load_gains_nothing(
    trap: Trap, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The registered name is a link beside its target, and is turned."""
    trap.good("real")
    link = trap.folder / "acme.so"
    link.symlink_to("real.so")
    foreign.register(link, "acme")
    evil = trap.evil(trap.folder)
    asked = probe.probe

    def turning(file: TrustedFile, sha256: str) -> probe.ProbeResult:
        result = asked(file, sha256)
        link.unlink()
        link.symlink_to(evil.name)
        return result

    monkeypatch.setattr(opening, "probe", turning)
    assert opening.load("acme").device_count() == 1
    assert trap.opened_by() == set()


def test_a_replaced_library_is_not_the_old_one(trap: Trap) -> None:
    """A new file at a known path is loaded as what it is; the old one keeps working."""
    good = trap.good()
    foreign.register(good, "acme")
    old = opening.load("acme")
    other = foreign.build(
        trap.elsewhere,
        "acme",
        "static int32_t two(uint32_t *n) { *n = 2; return 0; }"
        "QUERY { core.enumerate = two; *out = &api; return 0; }",
    )
    os.replace(other, good)
    with pytest.raises(BackendRefused, match="SHA-256"):
        opening.load("acme")
    foreign.register(good, "acme")
    assert opening.load("acme").device_count() == 2
    assert old.device_count() == 1


def test_a_library_changed_in_place_is_refused(trap: Trap) -> None:
    """It is mapped already, so its new content cannot be had in this process."""
    good = trap.good()
    foreign.register(good, "acme")
    opening.load("acme")
    with good.open("ab") as file:
        file.write(b"more")
    foreign.register(good, "acme")
    with pytest.raises(Unavailable, match="changed in place"):
        opening.load("acme")


def test_a_changed_file_with_the_old_hash_is_refused(trap: Trap) -> None:
    """Nothing of it is opened."""
    good = trap.good()
    foreign.register(good, "acme")
    swap(good, trap.evil(trap.elsewhere))()
    assert "SHA-256" in refused(trap)


def test_nothing_runs_here_before_the_child_was_asked(trap: Trap) -> None:
    """A constructor runs in the child; if that refuses, never in this process."""
    body = EVIL.replace("MARK", str(trap.mark)).replace("*out = &api; return 0;", "abort();")
    foreign.register(foreign.build(trap.folder, "acme", body), "acme")
    found = [finding for finding in doctor.examine() if finding.backend == "acme"]
    assert "SIGABRT" in (found[0].reason or "")
    with pytest.raises(BackendRefused):
        opening.load("acme")
    assert trap.opened_by()
    assert os.getpid() not in trap.opened_by()


def test_discovery_opens_nothing(trap: Trap) -> None:
    """Not even a well registered library."""
    foreign.register(trap.evil(trap.folder, "acme"), "acme")
    assert discovery.find("acme", discovery.discover()).name == "acme"
    assert trap.opened_by() == set()


@pytest.mark.parametrize("what", ["library", "manifest", "folder", "above"])
def test_what_anyone_may_write_is_refused(trap: Trap, what: str) -> None:
    """The file, its manifest, its directory, and a directory above without the sticky bit."""
    evil = trap.evil(trap.folder, "acme")
    registered = foreign.register(evil, "acme")
    place = {
        "library": evil,
        "manifest": registered,
        "folder": trap.folder,
        "above": trap.folder.parent,
    }[what]
    place.chmod(0o777)
    assert "may be written by" in refused(trap)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("what", ["library", "manifest", "folder", "above"])
def test_what_another_user_owns_is_refused(trap: Trap, what: str) -> None:
    """The owner of a directory above may put another in the place of ours."""
    evil = trap.evil(trap.folder, "acme")
    registered = foreign.register(evil, "acme")
    place = {
        "library": evil,
        "manifest": registered,
        "folder": trap.folder,
        "above": trap.folder.parent,
    }[what]
    os.chown(place, 4242, -1)
    assert "belongs to the user 4242" in refused(trap)


@pytest.mark.parametrize("text", ["libevil.so", "evil", "./evil.so"])
def test_a_bare_soname_is_never_searched_for(
    trap: Trap, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """Neither LD_LIBRARY_PATH nor the current directory makes it exist."""
    trap.evil(trap.elsewhere, "libevil")
    trap.evil(trap.elsewhere)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(trap.elsewhere))
    monkeypatch.chdir(trap.elsewhere)
    foreign.register(trap.folder / "none.so", "acme", library=text)
    assert "cannot be read" in refused(trap)


@pytest.mark.parametrize("variable", [FILES_VARIABLE, DIRECTORIES_VARIABLE])
def test_the_current_directory_registers_nothing(
    trap: Trap, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """Whoever can make us start there could otherwise choose our code."""
    foreign.register(trap.evil(trap.folder, "acme"), "acme")
    monkeypatch.delenv(DIRECTORIES_VARIABLE)
    monkeypatch.chdir(trap.folder)
    for value in (".", "", ":", "./", "acme.json", "./acme.json", "../hal.d"):
        monkeypatch.setenv(variable, value)
        assert "acme" not in {finding.backend for finding in doctor.examine()}
        with pytest.raises(BackendMissing):
            opening.load("acme")
    assert trap.opened_by() == set()


@pytest.mark.parametrize("how", ["dots", "folder link", "library link", "manifest link"])
def test_a_manifest_stays_in_its_own_directory(trap: Trap, how: str) -> None:
    """By `..`, by a linked folder, by a linked library, by a linked manifest."""
    evil = trap.evil(trap.elsewhere)
    hash_of = trust.digest(evil)
    if how == "dots":
        foreign.register(trap.folder / "x.so", "acme", library="../elsewhere/evil.so")
        wanted = "outside its own directory"
    elif how == "folder link":
        (trap.folder / "sub").symlink_to(trap.elsewhere)
        foreign.register(trap.folder / "x.so", "acme", library="sub/evil.so", sha256=hash_of)
        wanted = "outside the manifest's directory"
    elif how == "library link":
        (trap.folder / "acme.so").symlink_to(evil)
        foreign.register(trap.folder / "acme.so", "acme")
        wanted = "leads out of its directory"
    else:
        (trap.folder / "acme.json").symlink_to(foreign.register(evil, "acme"))
        wanted = "leads out of its directory"
    assert wanted in refused(trap)


def test_a_pipe_in_the_place_of_a_file_does_not_hang_us(trap: Trap) -> None:
    """Opening one waits for its other end, for ever."""
    os.mkfifo(trap.folder / "acme.json", 0o644)
    assert "not a regular file" in refused(trap)
    (trap.folder / "acme.json").unlink()
    os.mkfifo(trap.folder / "acme.so", 0o644)
    foreign.register(trap.folder / "none.so", "acme", library="acme.so")
    assert "not a regular file" in refused(trap)


PROGRAM = """
import os, site, sys
for path in sys.argv[1:]:
    site.addsitedir(path)
from bedplate.hal import discovery, trust
real = os.getegid
seen = trust.secure_execution()
os.getegid = os.getgid  # what the kernel says in AT_SECURE is left
auxiliary = trust.secure_execution()
names = sorted(c.name or "?" for c in discovery.discover() if c.origin.startswith("BEDPLATE"))
print(seen, auxiliary, names)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a set-group-id program")
def test_extra_rights_are_seen_and_the_environment_is_ignored(trap: Trap, tmp_path: Path) -> None:
    """A real set-group-id interpreter: the kernel's own AT_SECURE, and no variable counts."""
    foreign.register(trap.evil(trap.folder, "acme"), "acme")
    program = tmp_path / "python"
    shutil.copy(Path(sys.executable).resolve(), program)
    places = [path for path in sys.path if path.endswith("-packages")]
    environment = os.environ | {
        "PYTHONHOME": f"{sys.base_prefix}:{sys.base_exec_prefix}",
        FILES_VARIABLE: str(trap.folder / "acme.json"),
    }

    def run() -> str:
        done = subprocess.run(
            [str(program), "-c", PROGRAM, *places],
            env=environment,
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    program.chmod(0o755)
    assert run() == "False False ['acme', 'acme']"
    os.chown(program, 0, 4242)
    program.chmod(0o2755)
    told = run()
    if told.startswith("False"):
        pytest.skip("NOT RUN: set-group-id has no effect on this file system")
    assert told == "True True []"
    assert trap.opened_by() == set()
