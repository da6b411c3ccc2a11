import json
from pathlib import Path

import lock

ROOT = Path(__file__).resolve().parents[2]


def test_a_pin_has_all_hashes_and_no_address() -> None:
    """What is written is what `pip install --require-hashes` reads."""
    text = lock.render("run", {"b": ("2", {"f" * 64, "a" * 64}), "a": ("1", {"0" * 64})})
    assert text.splitlines()[1:] == [
        "a==1 \\",
        f"    --hash=sha256:{'0' * 64}",
        "b==2 \\",
        f"    --hash=sha256:{'a' * 64} \\",
        f"    --hash=sha256:{'f' * 64}",
    ]


def test_the_repository_holds_one_version_of_a_library() -> None:
    """No two requirement files disagree, and constraints.txt repeats them."""
    versions: dict[str, set[str]] = {}
    for path in (ROOT / "requirements").glob("*.txt"):
        for line in path.read_text().splitlines():
            if "==" in line and not line.startswith((" ", "#")):
                name, version = line.split(" ")[0].split("==")
                versions.setdefault(name, set()).add(version)
    assert versions
    assert json.dumps({n: sorted(v) for n, v in versions.items() if len(v) > 1}) == "{}"
