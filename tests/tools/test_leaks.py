from collections.abc import Callable
from pathlib import Path

import pytest
from checks.leaks import no_machine_facts, scan


@pytest.mark.parametrize(
    "line",
    [
        "pip install --index-url x",
        "--find-links /opt/wheels",
        "see https://files.example-registry.io/x.whl",
        "git clone ssh://git@host.io/x",
        "http://10.0.0.1:3141/simple",
        "open('/root/.config/x')",
        "cd /work/main",
        "/home/alice/src",
        "/tmp/build/xyz/file",
    ],
)
def test_what_names_a_machine_or_a_registry_is_found(line: str) -> None:
    """A clone must work on a machine that has none of these."""
    assert [number for number, _ in scan(f"fine\n{line}\n")] == [2]


@pytest.mark.parametrize(
    "line",
    [
        "curl http://127.0.0.1:8000/v1/models",
        "http://localhost:8000",
        "https://api.example.com/v1",
        "http://{host}:{port}/health",
        "ROOT/work/x",
        "src/root/x and ./work/y",
        "/home/user/models",
        "/var/lib/bedplate",
    ],
)
def test_what_every_machine_has_is_let_be(line: str) -> None:
    """Loopback, example names and standard folders are no leak."""
    assert scan(line) == []


def test_large_and_ignored_files(tree: Path, write: Callable[[str, str], Path]) -> None:
    """Large files are refused, what git ignores is not looked at."""
    write("big.bin", "x" * ((1 << 20) + 1))
    write(".gitignore", "build/\n")
    write("build/log", "/root/x.y")
    assert no_machine_facts(tree, False) == ["big.bin: 1048577 bytes, too large to track"]
