"""PTX text into words, each with its place.

One regular expression, linear in the text. A text that cannot be PTX (binary, not
ASCII outside of comments, above `LARGEST` characters) is refused before it is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from bedplate.simt.errors import PtxInvalid
from bedplate.simt.module import Place

LARGEST = 64 << 20
"""Characters; the largest PTX in common use, a fused attention library, has about 30 MB."""

LONGEST = {"integer": 80, "float": 1 << 10, "name": 1 << 16}
"""Characters of a word: 64 binary digits with their marks; the longest mangled names."""
_SHOWN = 160
"""Characters of a text that an error shows from both ends."""

_WORD = re.compile(
    r"""
      (?P<space>[ \t\r\f\v]+|//[^\n]*|/\*.*?\*/)
    | (?P<newline>\n)
    | (?P<float>0[fF][0-9a-fA-F]{8}\b|0[dD][0-9a-fA-F]{16}\b
        |\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)
    | (?P<integer>0[xX][0-9a-fA-F]+U?|0[bB][01]+U?|\d+U?)
    | (?P<name>[%$]?[A-Za-z_$][\w$]*|%\w+)
    | (?P<string>"[^"\n]*")
    | (?P<mark>\.|,|;|:|\[|\]|\{|\}|\(|\)|<|>|@|!|\||\+|-|=|\#|~|\*|/)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Word:
    """`kind` is float, integer, name, string, mark or end."""

    kind: str
    text: str
    place: Place
    spaced: bool = False


def words(text: str, name: str) -> Iterator[Word]:
    """The words of `text`, then one of kind `end`; raises `PtxInvalid`."""
    if len(text) > LARGEST:
        raise PtxInvalid(
            f"{name}: {len(text)} characters are more than {LARGEST}",
            remedy="give one module at a time",
        )
    position, line, start, spaced = 0, 1, 0, False
    while position < len(text):
        found = _WORD.match(text, position)
        if found is None:
            refuse(name, Place(line, position - start + 1), _odd(text, position))
        kind = str(found.lastgroup)
        if found.end() - position > LONGEST.get(kind, LARGEST):
            refuse(
                name, Place(line, position - start + 1), f"a word with {len(found[0])} characters"
            )
        if kind == "newline":
            line, start, spaced = line + 1, found.end(), True
        elif kind == "space":
            spaced = True
            if breaks := found[0].count("\n"):
                line, start = line + breaks, found.start() + found[0].rindex("\n") + 1
        else:
            yield Word(kind, found[0], Place(line, position - start + 1), spaced)
            spaced = False
        position = found.end()
    yield Word("end", "the end of the text", Place(line, position - start + 1))


def _odd(text: str, position: int) -> str:
    if text.startswith("/*", position):
        return "a comment that does not end"
    if text[position] == '"':
        return "a string that does not end on its line"
    return f"the character {text[position]!r} does not belong to PTX"


def refuse(name: str, place: Place, what: str, remedy: str | None = None) -> NoReturn:
    """Raise `PtxInvalid` for a place."""
    raise PtxInvalid(f"{name}:{place.line}:{place.column}: {shortened(what)}", remedy=remedy)


def shortened(what: str) -> str:
    """A sentence without the middle of what is too long to be read."""
    return what if len(what) <= 2 * _SHOWN else f"{what[:_SHOWN]} ... {what[-_SHOWN:]}"
