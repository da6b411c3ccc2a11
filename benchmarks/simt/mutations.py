"""Mutated PTX: each text is a module or one typed sentence with its place, in bounded time.

    python -m benchmarks.simt.mutations --out results.json [--quick] [--state FILE]

Half of the texts are pieces of what nvcc writes with words cut, doubled or swapped; half are
small kernels of one instruction with a word or a line changed, of which many still load. Text
N is made from seed N alone, so a failure comes back. With `--state` a run goes on where an
earlier one of the same commit was stopped.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time

from benchmarks.simt import fuzz, progress
from benchmarks.trial import ROOT

from bedplate.simt.api import PtxInvalid
from bedplate.simt.parser import parse
from bedplate.simt.signature import table

COUNT, QUICK = 1_000_000, 2_000
LONGEST_S = 5.0
HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"
WORDS = (
    *"{}()[]<>,;:.@!|+-=_",
    *("%r1", "%rd99999999", "%p1", "0", "4294967296", "0f7F", "0x", "1e999", '"', "/*", "\\"),
    *("\x07", ".reg", ".param", ".shared", ".align", ".b32", ".func", "call", "bra", "mov.b32"),
    *(".v4", "é", ".ftz", ".sat", ".rn", ".u64", ".f32", ".pred", "ret", "exit", "%tid.x"),
)


def sources() -> tuple[list[str], list[str]]:
    """Whole files of nvcc, and a small kernel for each form of one lane."""
    folder = ROOT / "tests" / "simt" / "kernels"
    files = [path.read_text() for path in sorted(folder.glob("*.ptx"))]
    small = []
    for form in table.FORMS:
        if form.lanewise and form.opcode not in fuzz.LEFT_OUT:
            name = next(form.spellings())
            slots = form.match(name.split(".")[1:])
            assert slots is not None
            small.append(HEAD + fuzz.kernel(name, "k", form, slots)[0])
    return files, small


def cut(draw: random.Random, text: str) -> str:
    """A piece of a file with some of its words cut, doubled, swapped or replaced."""
    lines = text.splitlines()
    start = draw.randrange(len(lines))
    chosen = [HEAD] * draw.randint(0, 1) + lines[: draw.randint(5, 30)]
    chosen += lines[start : start + draw.randint(1, 60)]
    made = "\n".join(chosen)
    for _ in range(draw.randint(1, 6)):
        at = draw.randrange(len(made) + 1)
        end = min(at + draw.choice((0, 1, 1, 4, 30)), len(made))
        piece = draw.choice((draw.choice(WORDS), made[at:end] * 2, "", chr(draw.randrange(256))))
        made = made[:at] + piece + made[end:]
    return made


def changed(draw: random.Random, text: str) -> str:
    """A small kernel with one or two words or lines that are other ones of the same kernel."""
    lines = text.splitlines()
    for _ in range(draw.randint(1, 2)):
        at = draw.randrange(3, len(lines))
        words = lines[at].split(" ")
        match draw.randrange(5):
            case 0:
                lines[at] = draw.choice(lines)
            case 1:
                lines.insert(at, draw.choice(lines))
            case 2:
                words[draw.randrange(len(words))] = draw.choice(WORDS)
                lines[at] = " ".join(words)
            case 3:
                other = draw.choice(lines[3:]).split(" ")
                words[draw.randrange(len(words))] = draw.choice(other)
                lines[at] = " ".join(words)
            case _:
                parts = lines[at].split(".")
                parts[draw.randrange(len(parts))] = draw.choice(text.split("."))[:12]
                lines[at] = ".".join(parts)
    return "\n".join(lines)


def mutated(seed: int, files: list[str], small: list[str]) -> str:
    """The text of a seed."""
    draw = random.Random(seed)
    return cut(draw, draw.choice(files)) if seed % 2 else changed(draw, draw.choice(small))


def judge(text: str) -> bool:
    """Whether it is a module; what is wrong is one sentence with its place, said in time."""
    began = time.thread_time()
    said = ""
    try:
        parse(text, "f.ptx")
    except PtxInvalid as fault:
        said = str(fault)
        assert said.startswith("f.ptx"), said
        assert "\n" not in said, said
    assert time.thread_time() - began < LONGEST_S, "it took too long"
    return not said


def campaign(count: int, done: progress.Done) -> None:
    """Judge the texts from the first seed that is not done."""
    files, small = sources()
    done.counts.setdefault("loaded", 0)
    for seed in range(done.next, count):
        text = mutated(seed, files, small)
        try:
            done.counts["loaded"] += judge(text)
        except Exception as cause:
            raise AssertionError(f"seed {seed}: {cause!r}\n{text[-600:]}") from cause
        done.advance(seed + 1, count)


def main() -> int:
    """Run, print and store; 1 when a text gave anything else."""
    parser = argparse.ArgumentParser(description="mutated texts of PTX")
    progress.words(parser)
    given = parser.parse_args()
    count = QUICK if given.quick else COUNT
    done = progress.Done.begin(given.state)
    try:
        campaign(count, done)
    except AssertionError as fault:
        print(fault, file=sys.stderr)
        return 1
    quality = {"other errors": 0, "loaded": done.counts["loaded"], "seeds": f"0 to {count - 1}"}
    done.store(given.out, name="mutated_texts", unit="texts", value=count, quality=quality)
    print(json.dumps(quality | {"seconds": round(done.seconds, 1)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
