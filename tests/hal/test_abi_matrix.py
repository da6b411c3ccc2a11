"""Hosts and backends of every released ABI version, compiled from its own headers, together.

Beside the tags stand the present headers, and those of a version that does not
exist yet: the present spec with a field and a function appended in a temporary
copy. What must not work is made in the same way: a reorder, another size, a
reserved word put to use.
"""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from bedplate.core.paths import native_library_dir
from bedplate.hal import abi
from bedplate.hal.spec.__main__ import main as generate
from bedplate.hal.spec.model import load
from bedplate.hal.spec.report import compare
from bedplate.hal.spec.tags import SPEC, tags

ROOT = Path(__file__).resolve().parents[2]
HEADERS = ROOT / "native" / "hal" / "include"
BACKEND = ROOT / "src" / "bedplate" / "hal" / "template" / "backend.c"
HOST = Path(__file__).parent / "native" / "host.c"
MODES = ("direct", "loader")


@dataclass(frozen=True)
class Version:
    """Headers of a version, and a host and a backend made of them."""

    minor: int
    host: Path
    backend: Path


def mutated(folder: Path, *edits: tuple[str, str]) -> Path:
    """The include folder of the present spec with text replaced and the next minor."""
    for place in (SPEC, "native/hal/include"):
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / place).is_dir():
            shutil.copytree(ROOT / place, target)
        else:
            shutil.copy(ROOT / place, target)
    text = (folder / SPEC).read_text()
    for before, after in edits:
        assert before in text, before
        text = text.replace(before, after, 1)
    minor = f"minor = {abi.ABI_MINOR}"
    (folder / SPEC).write_text(text.replace(minor, f"minor = {abi.ABI_MINOR + 1}", 1))
    assert generate(["--root", str(folder)]) == 0
    return folder / "native" / "hal" / "include"


def compiled(folder: Path, name: str, headers: Path, *flags: str) -> Version:
    """Host and backend of a version; the kit of today where the version had none."""
    include = [f"-I{headers}", f"-I{HEADERS}"]
    command = ["gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", *flags, *include]
    libraries = native_library_dir()
    host, backend = folder / f"host-{name}", folder / f"backend-{name}.so"
    link = [f"-L{libraries}", f"-Wl,-rpath,{libraries}", "-lbedplate_hal", "-ldl"]
    subprocess.run([*command, str(HOST), "-o", str(host), *link], check=True)
    shared = ["-shared", "-fPIC", "-fvisibility=hidden", "-pthread"]
    subprocess.run([*command, *shared, str(BACKEND), "-o", str(backend)], check=True)
    text = (headers / "bedplate" / "hal.h").read_text()
    found = re.search(r"define BP_ABI_MINOR (\d+)u", text)
    assert found
    return Version(int(found[1]), host, backend)


NAMES = [tag.name for tag in tags(ROOT)]
TAG_END = '  "uint32_t command_count",\n  "uint32_t flags -- 0",\n  "uint64_t reserved[4]",\n'
QUEUE_END = 'waits for the command that runs",\n  "uint64_t reserved[4]",\n'
FUTURE = (
    (TAG_END, TAG_END + '  "uint64_t more -- of a future host",\n'),
    (QUEUE_END, QUEUE_END + '  "int32_t drain(uint64_t device, uint64_t queue)",\n'),
)


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Version]:
    """By name: every tag, `present` and `future`."""
    folder = tmp_path_factory.mktemp("matrix")
    made = {tag.name: compiled(folder, tag.name, tag.folder) for tag in tags(ROOT)}
    made["present"] = compiled(folder, "present", HEADERS)
    made["future"] = compiled(folder, "future", mutated(folder / "f", *FUTURE), "-DFUTURE")
    return made


def run(host: Path, mode: str, backend: Path) -> tuple[int, list[str]]:
    """Exit status and lines of a host."""
    done = subprocess.run(
        [host, mode, backend], capture_output=True, text=True, timeout=30, check=False
    )
    return done.returncode, done.stdout.splitlines()


ALL = [*NAMES, "present", "future"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("host", "backend"), list(itertools.product(ALL, ALL)))
def test_every_host_works_with_every_backend(
    versions: dict[str, Version], host: str, backend: str, mode: str
) -> None:
    """Old with new and new with old; the minor that counts is the smallest of all sides."""
    sides = [versions[host].minor, versions[backend].minor]
    if mode == "loader":
        sides.append(abi.ABI_MINOR)
    status, lines = run(versions[host].host, mode, versions[backend].backend)
    assert (status, lines[0], lines[-1]) == (0, f"negotiated 0.{min(sides)}", "ok"), lines
    if host == "future":
        # A callee refuses the tail that it does not know; a table says how far it reaches.
        assert f"more {'accepted' if backend == 'future' else 'refused'}" in lines
        known = backend == "future" and mode == "direct"
        assert f"drain {'known' if known else 'unknown'}" in lines


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("host", ALL)
def test_every_host_works_with_our_own_backend(
    versions: dict[str, Version], host: str, mode: str
) -> None:
    """`cpu` as it is installed."""
    library = native_library_dir() / "hal.d" / "bedplate_hal_cpu.so"
    status, lines = run(versions[host].host, mode, library)
    wanted = f"negotiated 0.{min(versions[host].minor, abi.ABI_MINOR)}"
    assert (status, lines[0], lines[-1]) == (0, wanted, "ok"), lines


CREATE = (
    '  "int32_t create(uint64_t device, const bp_memory_info *wanted, uint64_t *memory)'
    ' -- content undefined",\n'
)
RELEASE = '  "int32_t release(uint64_t device, uint64_t memory)",\n'
ALIGNMENT = '  "uint64_t alignment -- power of two; 0 is the device\'s own",\n'
MEMORY_END = 'host pointer under BP_CAP_HOST_VISIBLE, else null",\n'


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("what", "edit"),
    [
        ("a reorder", (CREATE + RELEASE, RELEASE + CREATE)),
        ("another size", (ALIGNMENT, ALIGNMENT + '  "uint64_t more",\n')),
    ],
)
def test_the_matrix_sees_what_the_report_refuses(
    versions: dict[str, Version], tmp_path: Path, what: str, edit: tuple[str, str], mode: str
) -> None:
    """A backend of a spoiled spec fails with today's host, and the report names the change."""
    spoiled = compiled(tmp_path, "spoiled", mutated(tmp_path / "tree", edit))
    status, lines = run(versions["present"].host, mode, spoiled.backend)
    assert status != 0, lines
    changes = compare(load(ROOT / SPEC), load(tmp_path / "tree" / SPEC))
    assert [change for change in changes if not change.appended], what


@pytest.mark.parametrize("mode", MODES)
def test_a_reserved_word_put_to_use_is_refused(
    versions: dict[str, Version], tmp_path: Path, mode: str
) -> None:
    """By every backend, with INVALID_EXT, and by the report."""
    edit = (MEMORY_END, MEMORY_END + '  "uint64_t more -- where reserved[0] lay",\n')
    spoiled = compiled(tmp_path, "misuse", mutated(tmp_path / "tree", edit), "-DMISUSE")
    for name in (*NAMES, "present"):
        status, lines = run(spoiled.host, mode, versions[name].backend)
        assert (status, lines[-1]) == (0, "the reserved word is refused"), lines
    changes = compare(load(ROOT / SPEC), load(tmp_path / "tree" / SPEC))
    assert any("bp_memory_info.reserved: moved" in str(change) for change in changes)
