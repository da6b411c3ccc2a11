"""Released versions of the ABI, kept in the tree for as long as someone may have built on them.

`native/hal/abi/<major.minor>/` holds the spec and the headers of a release:
what an old host or an old backend is compiled from. `tags.toml` beside them
holds the SHA-256 of every file, so that a tag that was touched is seen.
"""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass
from pathlib import Path

from bedplate.hal.spec.model import Spec, load

SPEC = "native/hal/spec.toml"
FOLDER = "native/hal/abi"
HEADERS = "native/hal/include"
LIST = "tags.toml"
_NOTE = """\
# Released versions of the ABI; written by python -m bedplate.hal.spec --tag, never edited.
# A version is only added: what was built from its headers must keep working.
"""


class TagError(ValueError):
    """A tag cannot be made, or one is not what it was."""


@dataclass(frozen=True, order=True)
class Tag:
    """One released version, `version` as (major, minor)."""

    version: tuple[int, int]
    folder: Path
    digests: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        """`major.minor`."""
        return f"{self.version[0]}.{self.version[1]}"

    def spec(self) -> Spec:
        """The spec as it was."""
        return load(self.folder / "spec.toml")

    def touched(self) -> list[str]:
        """One line for each file that is not what it was when the tag was made."""
        wanted = dict(self.digests)
        present = {str(path.relative_to(self.folder)): path for path in _files(self.folder)}
        lines = [
            f"{self.folder.name}/{name} is missing" for name in sorted(wanted.keys() - present)
        ]
        for name, path in sorted(present.items()):
            if name not in wanted:
                lines.append(f"{self.folder.name}/{name} does not belong to the tag")
            elif _digest(path) != wanted[name]:
                lines.append(f"{self.folder.name}/{name} was changed after the tag")
        return lines


def tags(root: Path) -> list[Tag]:
    """All tags of a source tree, oldest first."""
    listed = root / FOLDER / LIST
    if not listed.exists():
        return []
    made = []
    for name, digests in tomllib.loads(listed.read_text()).items():
        major, minor = (int(part) for part in name.split("."))
        made.append(Tag((major, minor), root / FOLDER / name, tuple(sorted(digests.items()))))
    return sorted(made)


def make(root: Path) -> Tag:
    """Keep the tree's present ABI as a tag. TagError when its version is one already."""
    spec = load(root / SPEC)
    name = f"{spec.major}.{spec.minor}"
    known = tags(root)
    if known and (spec.major, spec.minor) <= known[-1].version:
        raise TagError(f"the version {name} is not above the newest tag, {known[-1].name}")
    folder = root / FOLDER / name
    if folder.exists():
        raise TagError(f"{folder} exists and is in no list")
    content = {"spec.toml": (root / SPEC).read_text()}
    for path in sorted((root / HEADERS).rglob("*.h")):
        content[str(path.relative_to(root / HEADERS))] = path.read_text()
    for place, text in content.items():
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    digests = {place: _digest(folder / place) for place in sorted(content)}
    listed = folder.parent / LIST
    lines = [f'\n["{name}"]', *(f'"{place}" = "{value}"' for place, value in digests.items()), ""]
    before = listed.read_text() if listed.exists() else _NOTE
    listed.write_text(before + "\n".join(lines))
    return Tag((spec.major, spec.minor), folder, tuple(digests.items()))


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
