"""The 50 prompts of the comparison, as token ids, 5 to 2,000 tokens long.

Twenty are written out: languages, code, numbers, repetition, odd bytes. Thirty are
runs of the licence text of this repository, which does not change.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

WRITTEN = (
    "The capital of France is",
    "Once upon a time there was a small robot who",
    "def fibonacci(n):\n    if n < 2:\n        return n\n    return",
    "1, 1, 2, 3, 5, 8, 13, 21, 34,",
    "La mer est calme ce matin, et les bateaux",
    "Die Katze sitzt auf dem warmen Ofen und",
    "日本の首都は東京です。京都は",
    "Ďábelské ódy: příliš žluťoučký kůň",
    "🦙🦙🦙 llamas graze on 😀 hills",
    "SELECT name, COUNT(*) FROM orders WHERE price > 10 GROUP BY",
    '{"name": "Ada", "born": 1815, "fields": ["mathematics",',
    "the the the the the the the the the the the the",
    "Water boils at 100 degrees Celsius, which in Fahrenheit is",
    "<html><body><h1>Title</h1><p>Some text",
    "Q: What is the largest planet?\nA: Jupiter.\nQ: What is the smallest?\nA:",
    "To bake bread you need flour, water, salt and",
    'int main(void) { printf("hello\\n");',
    "Dear Sir or Madam,\n\nI am writing to complain about",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa b",
    "\t\t\n  \n   x = 1\n\t\ty = 2\n",
)
SHORTEST, LONGEST, SLICES = 5, 2000, 30


def prompts(encode: Callable[[str], list[int]]) -> list[list[int]]:
    """The prompts under one tokenizer; `encode` adds no begin token."""
    licence = (Path(__file__).parents[3] / "LICENSE").read_text("utf-8")
    ids = encode(licence)
    if len(ids) < LONGEST:
        raise ValueError(f"the licence has {len(ids)} tokens, {LONGEST} are needed")
    found = [encode(text) for text in WRITTEN]
    for i in range(SLICES):
        length = round(SHORTEST * (LONGEST / SHORTEST) ** (i / (SLICES - 1)))
        start = (i * 37) % (len(ids) - length + 1)
        found.append(ids[start : start + length])
    return found
