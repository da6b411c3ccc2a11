"""The code of a source text: comments and literals blanked, lines and columns kept.

What a lint looks for stands in prose too: in a docstring that warns of it, in a
message. Python's own tokens say what is a literal; C, C++, CUDA and Rust share one
small scanner. A Python file with an error keeps its text from there on: a finding in
prose can be looked at, a call that was missed cannot. What a f-string computes is code.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator

_LITERALS = re.compile(
    r"""//(?:\\\r?\n|[^\n])*"""
    r"""|/\*"""
    r"""|(?:\b(?:u8|[uUL])?R)"(?P<fence>[^()\\\s"]{0,16})\(.*?\)(?P=fence)\""""
    r"""|\bb?r(?P<hash>\#*)".*?"(?P=hash)"""
    r"""|"(?:\\.|[^"\\])*"?"""
    r"""|(?<![0-9A-Za-z_])(?:b|u8|[uUL])?'(?:\\.[^'\n]{0,10}|[^'\\\n])'""",
    re.DOTALL,
)
"""C's and Rust's in one; a lifetime ('a) and a digit separator (1'000) are no literals."""
_COMMENT_ENDS = re.compile(r"/\*|\*/")
_FIELD_WORDS = ("FSTRING_START", "FSTRING_MIDDLE", "FSTRING_END")


def code_of(text: str, suffix: str) -> str:
    """`text` with spaces for comments and literals, by the language of a file's ending."""
    spans = _python(text) if suffix == ".py" else _braces(text, nests=suffix == ".rs")
    parts, done = [], 0
    for start, end in spans:
        parts += [text[done:start], re.sub(r"[^\n]", " ", text[start:end])]
        done = max(done, end)
    return "".join([*parts, text[done:]]).replace("\\\n", " \n")


def _braces(text: str, *, nests: bool) -> Iterator[tuple[int, int]]:
    at = 0
    while found := _LITERALS.search(text, at):
        at = found.end()
        if found[0] == "/*":
            at = _comment_end(text, at, nests=nests)
        yield found.start(), at


def _comment_end(text: str, at: int, *, nests: bool) -> int:
    depth = 1
    for mark in _COMMENT_ENDS.finditer(text, at):
        depth += (1 if nests else 0) if mark[0] == "/*" else -1
        if not depth:
            return mark.end()
    return len(text)


def _python(text: str) -> Iterator[tuple[int, int]]:
    starts = [0]
    # The tokeniser's lines end at \n alone, whatever else a form feed or a \r is.
    for line in io.StringIO(text, newline="\n"):
        starts.append(starts[-1] + len(line))
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline="\n").readline):
            start, end = (starts[row - 1] + column for row, column in (token.start, token.end))
            kind = tokenize.tok_name[token.type]
            prefix = re.split("['\"]", token.string, maxsplit=1)[0]
            if kind == "STRING" and "f" in prefix.lower():
                yield from _between_fields(text, start, end)
            elif kind in ("COMMENT", "STRING", *_FIELD_WORDS):
                yield start, end
    except (tokenize.TokenError, SyntaxError):
        return


def _between_fields(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The parts of an f-string that are text and not code."""
    depth, since = 0, start
    for mark in re.finditer(r"\{\{|\}\}|[{}]", text[start:end]):
        at = start + mark.start()
        if mark[0] == "{":
            if not depth:
                yield since, at + 1
            depth += 1
        elif mark[0] == "}}" and depth > 1:
            depth -= 2
        elif mark[0].startswith("}") and depth:
            depth -= 1
        else:
            continue
        since = at if not depth else since
    if not depth:
        yield since, end
