"""The start of a backend of one's own: `bedplate hal new NAME`.

What is written builds with a C compiler and the installed headers alone; it
passes the conformance suite before a line of it is changed.
"""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

from bedplate.core.paths import native_library_dir, unusable
from bedplate.hal.errors import InvalidArgument

_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")


def include_dir() -> Path:
    """The folder of the installed headers, for `-I`."""
    return native_library_dir().parent / "include"


def create(name: str, folder: Path) -> list[Path]:
    """Write a backend's first files into a new or empty folder; their paths.

    Raises InvalidArgument for a name that no backend may have, or a folder
    that holds something already; what `core.paths.unusable` makes of a folder
    that cannot be made or written.
    """
    if not _NAME.fullmatch(name):
        raise InvalidArgument(
            f"a backend cannot be called {name!r}",
            remedy="use up to 32 lower-case letters, digits and _, a letter first",
        )
    try:
        return _write(name, folder)
    except OSError as cause:
        raise unusable(folder, cause) from cause


def _write(name: str, folder: Path) -> list[Path]:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidArgument(
            f"{folder} is not an empty folder", remedy="choose another with --out"
        )
    folder.mkdir(parents=True, exist_ok=True)
    # Others must not be able to write where code is loaded from.
    folder.chmod(0o755)
    files = resources.files("bedplate.hal.template")
    source = files.joinpath("backend.c").read_text().replace("template", name)
    for counted in (f"{name}.kind", f"{name} device", f"{name}-1"):
        source = re.sub(rf'"{re.escape(counted)}", \d+', f'"{counted}", {len(counted)}', source)
    rules = files.joinpath("rules.mk").read_text()
    rules = rules.replace("@NAME@", name).replace("@INCLUDE@", str(include_dir()))
    made = {folder / f"{name}.c": source, folder / "Makefile": rules}
    for path, text in made.items():
        path.write_text(text)
        path.chmod(0o644)
    return list(made)
