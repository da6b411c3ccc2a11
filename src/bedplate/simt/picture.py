"""The divergence picture of a profile's timeline for a terminal: rows issues, columns lanes.

Four signs: a lane runs, its guard is off (of a branch: it stays), it waits at another
block, it has ended. 80 columns; signs alone say everything, colour only helps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bedplate.simt.scalar import LANES
from bedplate.simt.sources import plain as safe

RUNS, OFF, WAITS, ENDED = range(4)
SIGNS = "█▒· "
PLAIN = "#o. "
"""For an output that knows only ASCII."""
COLOURS = ("36", "33", "2", "0")
"""Select Graphic Rendition: cyan, yellow, faint, as it is."""
MEANINGS = ("runs", "guard off, or stays", "waits")
WIDTH = 80


def states(mask: int, ran: int, live: int) -> list[int]:
    """The state of each lane in an issue."""
    return [
        RUNS if ran >> n & 1 else OFF if mask >> n & 1 else WAITS if live >> n & 1 else ENDED
        for n in range(LANES)
    ]


def picture(
    document: Mapping[str, Any], warp: int, rows: int, *, plain: bool, colour: bool
) -> Iterator[str]:
    """The lines of a picture of one warp; at most `rows` issues, the last line says of more."""
    timeline = document["timeline"]
    lines = {line: text for text in document["texts"][:1] for line, text in _numbered(text)}
    issues = [issue for issue in timeline["issues"] if issue[0] == warp]
    signs = PLAIN if plain else SIGNS
    meaning = ", ".join(f"{signs[n]} {MEANINGS[n]}" for n in (RUNS, OFF, WAITS))
    yield f"{safe(str(document['kernel']))}, block 0, warp {warp}: {len(issues)} issues"
    yield f" line  0       8       16      24     31  {meaning}"[:WIDTH]
    for _, line, mask, ran, live in issues[:rows]:
        drawn = _drawn(states(mask, ran, live), signs, colour=colour)
        text = " ".join(safe(lines.get(line, "")).split())
        room = WIDTH - 7 - LANES - 2
        text = text if len(text) <= room else text[: room - 3] + "..."
        yield f"{line:>5}  {drawn}  {text}".rstrip()
    if len(issues) > rows:
        yield f"       {len(issues) - rows} more; --rows shows them"
    elif timeline["cut"]:
        yield "       the timeline ends here, the launch went on"


def _numbered(text: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    return ((text["first"] + n, line) for n, line in enumerate(text["lines"]))


def _drawn(lanes: list[int], signs: str, *, colour: bool) -> str:
    if not colour:
        return "".join(signs[state] for state in lanes)
    made, last = [], None
    for state in lanes:
        if state != last:
            made.append(f"\x1b[0;{COLOURS[state]}m")
        made.append(signs[state])
        last = state
    return "".join(made) + "\x1b[0m"
