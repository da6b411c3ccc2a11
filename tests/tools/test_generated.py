from collections.abc import Callable
from pathlib import Path

from checks.generated import current

Write = Callable[[str, str], Path]

GENERATOR = """
import pathlib, sys
if "--check" in sys.argv:
    sys.exit(0 if pathlib.Path("out").exists() else "out is not current")
pathlib.Path("out").write_text("")
"""


def test_an_old_file_is_named_and_fix_renews_it(tree: Path, write: Write) -> None:
    """Checking changes nothing; fixing runs the generator itself."""
    write("make_out.py", GENERATOR)
    write("tools/generated.toml", '[[generator]]\nname = "out"\ncommand = ["make_out.py"]\n')
    assert current(tree, False) == ["out: out is not current"]
    assert current(tree, True) == []
    assert current(tree, False) == []
