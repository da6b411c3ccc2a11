"""The texts that a kernel's lines point to, as far as they lie beside the PTX.

A `.file` may name any path of the machine that compiled; only the name's last part is
used, and looked for in the PTX's folder, so that a text cannot make us show another file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from bedplate.simt.module import Function, Instruction

MOST_BYTES = 1 << 20
"""Of a source that is shown; longer ones were made by a program."""

AROUND = 12
"""Lines before and behind what a function's instructions come from."""
Lines = Sequence[str]


@dataclass(frozen=True)
class Sources:
    """The lines of files by the name that `.loc` or the PTX has for them."""

    ptx: str
    texts: Mapping[str, Lines]

    def line(self, file: str, number: int) -> str | None:
        """A line, from 1; None when the file is not here or shorter."""
        lines = self.texts.get(file, ())
        return lines[number - 1] if 0 < number <= len(lines) else None

    def statement(self, made: Instruction) -> str:
        """An instruction as its line of the PTX has it, without remarks and tabs."""
        text = self.line(self.ptx, made.place.line)
        return made.text if text is None else " ".join(text.partition("//")[0].split())

    def source(self, made: Instruction) -> str:
        """Where its source is and what is written there; empty without `.loc`."""
        place = made.source
        if place is None:
            return ""
        text = self.line(place.file, place.line)
        return f"{place.file}:{place.line}" + ("" if text is None else f"  {text.strip()}")

    def excerpts(self, function: Function) -> list[Mapping[str, Any]]:
        """The lines of each text that a function is about, the PTX first, as JSON."""
        about: dict[str, list[int]] = {self.ptx: [function.place.line]}
        for made in function.instructions:
            about[self.ptx].append(made.place.line)
            if made.source is not None and made.source.file in self.texts:
                about.setdefault(made.source.file, []).append(made.source.line)
        found: list[Mapping[str, Any]] = []
        for file, lines in about.items():
            around = 1 if file == self.ptx else AROUND
            first = max(min(lines) - around, 1)
            part = self.texts[file][first - 1 : max(lines) + around]
            found.append({"file": file, "first": first, "lines": list(part)})
        return found


def _lines(text: str) -> Lines:
    """Lines as compilers count them, each safe to show."""
    return [plain(line.removesuffix("\r")) for line in text.split("\n")]


def plain(line: str) -> str:
    """A line without what a terminal would obey."""
    return "".join(c if c.isprintable() or c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in line)


def beside(ptx: Path, text: str, function: Function) -> Sources:
    """The PTX's own lines, and those of the sources that a function names."""
    texts: dict[str, Lines] = {str(ptx): _lines(text)}
    named = {made.source.file for made in function.instructions if made.source is not None}
    for file in sorted(named):
        path = ptx.parent / PurePosixPath(file).name
        try:
            if path.is_file() and path.stat().st_size <= MOST_BYTES:
                texts[file] = _lines(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError):
            continue
    return Sources(str(ptx), texts)
