"""Break each function once and see a test fail.

    .venv/bin/python tools/mutate.py --test "CMD" [--build "CMD"] [--seconds N] FILE...

Works in the current tree, so run it in a worktree of its own: a file is
changed, the tests run, the file is restored. One mutation a function: the
first small change of meaning (an operator, a bound, a constant) that still
builds. A test run that ends with code 0 means that nobody noticed: a survivor.
Prints one line a function; exit 0 without survivors, 1 with.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

CHANGES = (
    (r" \+ ", " - "),
    (r" - ", " + "),
    (r" \* ", " + "),
    (r" / ", " * "),
    (r" % ", " / "),
    (r"\bbp_fma\(", "bp_fnma("),
    (r" == ", " != "),
    (r" && ", " || "),
    (r" and ", " or "),
    (r" & ", " | "),
    (r" < ", " <= "),
    (r" > ", " >= "),
    (r" <= ", " < "),
    (r" >= ", " > "),
    (r"\b1\b", "2"),
    (r"\b0\b", "1"),
    (r" is None", " is not None"),
    (r"return (?!None)(\S.*)$", r"return None and (\1)"),
)
C_FUNCTION = re.compile(r"^(?=[A-Za-z_])[^\n(=]*?\b(\w+)\(([^;{}=]*?)\) \{$", re.M)
RUST_FUNCTION = re.compile(r"^( *)(?:pub(?:\(crate\))? )?(?:const )?(?:unsafe )?fn (\w+)", re.M)
PYTHON_FUNCTION = re.compile(r"^( *)def (\w+)\(", re.M)


def functions(path: Path, text: str) -> Iterator[tuple[str, int, int]]:
    """(name, start, end) of each function's body, by the house's formatting."""
    if path.suffix == ".py":
        for match in PYTHON_FUNCTION.finditer(text):
            opened = re.compile(r":\n(?=\s)").search(text, match.end())
            if opened is None:
                continue
            inner = re.compile(rf"^(?!{match[1]} |\s*$)", re.M).search(text, opened.end())
            start = opened.end()
            if docstring := re.compile(r'\s*"""(?:.|\n)*?"""\n').match(text, start):
                start = docstring.end()
            yield match[2], start, inner.start() if inner else len(text)
        return
    if path.suffix == ".rs":
        for match in RUST_FUNCTION.finditer(text):
            start = text.find(" {\n", match.end())
            end = text.find(f"\n{match[1]}}}", start)
            if 0 <= start < end:
                yield match[2], start + 2, end
        return
    for match in C_FUNCTION.finditer(text):
        end = text.find("\n}", match.end())
        yield (match[2] if match[1] == "BP_KERNEL" else match[1]), match.end(), end


def mutants(body: str) -> Iterator[str]:
    """Bodies with one change, the most telling first; comments and texts are left alone."""
    for pattern, replacement in CHANGES:
        for match in re.finditer(pattern, body, re.M):
            line = body[body.rfind("\n", 0, match.start()) + 1 : match.start()]
            if re.search(r'#|//|/\*|^\s*\*|"', line) or "fail(" in line:
                continue
            if "<" in pattern and re.search(r"^\s*for \(", line):
                continue  # one turn more is mostly the same turn, or nothing
            changed = match.expand(replacement)
            yield body[: match.start()] + changed + body[match.end() :]
            break


def succeeds(command: str, seconds: int) -> bool:
    """Whether a command ends with code 0 in time; a hang counts as noticed."""
    try:
        run = subprocess.run(
            shlex.split(command), capture_output=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    return run.returncode == 0


def verdict(path: Path, text: str, span: tuple[int, int], arguments: argparse.Namespace) -> str:
    """caught, SURVIVED with the change, or `nothing to change`."""
    start, end = span
    for body in mutants(text[start:end]):
        path.write_text(text[:start] + body + text[end:], encoding="utf-8")
        if arguments.build and not succeeds(arguments.build, arguments.seconds):
            continue
        if not succeeds(arguments.test, arguments.seconds):
            return "caught"
        before, after = text[start:end].splitlines(), body.splitlines()
        changed = [new.strip() for old, new in zip(before, after, strict=False) if old != new]
        return f"SURVIVED: {changed[0] if changed else '?'}"
    return "nothing to change"


def main() -> int:
    """Mutate every function of the given files."""
    parser = argparse.ArgumentParser(description="break each function once and see a test fail")
    parser.add_argument("--test", required=True, help="the tests; code 0 is a survivor")
    parser.add_argument("--build", help="run after each change; a failure tries the next change")
    parser.add_argument("--seconds", type=int, default=300, help="of each command")
    parser.add_argument("files", nargs="+", type=Path)
    arguments = parser.parse_args()
    survivors = 0
    for path in arguments.files:
        text = path.read_text(encoding="utf-8")
        try:
            for name, start, end in functions(path, text):
                outcome = verdict(path, text, (start, end), arguments)
                survivors += outcome.startswith("SURVIVED")
                print(f"{path}:{name}: {outcome}", flush=True)
        finally:
            path.write_text(text, encoding="utf-8")
    if arguments.build:
        succeeds(arguments.build, arguments.seconds)
    print(f"{survivors} survivors")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
