"""Address over time: which bytes of the device a trace's blocks held, and when.

For a terminal a few rows of shade; for a browser one HTML file with an SVG and
nothing from outside.
"""

from __future__ import annotations

import html
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bedplate.core.units import format_bytes
from bedplate.runtime.replay import Outcome
from bedplate.runtime.trace import ALLOCATE, FREE, Trace

SHADES = " ░▒▓█"
GAP = 1 << 30
"""Addresses further apart than this are drawn together: a driver's holes tell nothing."""


@dataclass(frozen=True)
class Lives:
    """The blocks of a trace: born and died by record number, offset and size in bytes."""

    born: NDArray[np.int64]
    died: NDArray[np.int64]
    offset: NDArray[np.int64]
    size: NDArray[np.int64]
    extent: int


def lives(trace: Trace, places: NDArray[np.uint64]) -> Lives:
    """Match requests with frees; addresses are moved together over large gaps."""
    open_at: dict[int, int] = {}
    born: list[int] = []
    died: list[int] = []
    address: list[int] = []
    size: list[int] = []
    for number in range(len(trace)):
        key = int(trace["address"][number])
        if trace["action"][number] == ALLOCATE:
            if trace["bytes"][number] == 0 or places[number] == 0:
                continue
            open_at[key] = len(born)
            born.append(number)
            died.append(len(trace))
            address.append(int(places[number]))
            size.append(int(trace["bytes"][number]))
        elif trace["action"][number] == FREE and key in open_at:
            died[open_at.pop(key)] = number
    order = sorted(range(len(born)), key=lambda i: address[i])
    offset = [0] * len(born)
    base, end = 0, 0
    for rank, index in enumerate(order):
        if rank == 0 or address[index] > end + GAP:
            base = address[index] - (0 if rank == 0 else end - base + (1 << 24))
        offset[index] = address[index] - base
        end = max(end, address[index] + size[index])
    extent = max((at + bytes for at, bytes in zip(offset, size, strict=True)), default=0)
    return Lives(
        born=np.array(born, np.int64),
        died=np.array(died, np.int64),
        offset=np.array(offset, np.int64),
        size=np.array(size, np.int64),
        extent=extent,
    )


def grid(found: Lives, records: int, rows: int, columns: int) -> NDArray[np.float64]:
    """The part of each cell's bytes and time that is live, 0 to 1; row 0 is the lowest."""
    filled = np.zeros((rows, columns))
    if not found.extent:
        return filled
    high = found.extent / rows
    wide = max(records, 1) / columns
    for b, d, o, s in zip(found.born, found.died, found.offset, found.size, strict=True):
        first, last = int(o / high), min(int((o + s - 1) / high), rows - 1)
        left, right = int(b / wide), min(int((d - 1) / wide), columns - 1)
        down = np.minimum(np.arange(first, last + 1) * high + high, o + s) - np.maximum(
            np.arange(first, last + 1) * high, o
        )
        over = np.minimum(np.arange(left, right + 1) * wide + wide, d) - np.maximum(
            np.arange(left, right + 1) * wide, b
        )
        filled[first : last + 1, left : right + 1] += np.outer(down / high, over / wide)
    return np.minimum(filled, 1.0)


def text(trace: Trace, outcome: Outcome, rows: int = 20, columns: int = 72) -> str:
    """The picture in characters, above what it shows."""
    found = lives(trace, outcome.places)
    shade = grid(found, len(trace), rows, columns)
    lines = [
        "".join(SHADES[min(int(part * len(SHADES)), len(SHADES) - 1)] for part in row)
        for row in shade[::-1]
    ]
    top, margin = format_bytes(found.extent), " " * 12
    return "\n".join(
        [
            f"{top:>10} ┐",
            *(f"{'':>10} │{line}".rstrip() for line in lines),
            f"{'0':>10} └{'─' * columns}",
            f"{margin}addresses upwards, {len(trace):,} records to the right; fuller is darker",
            f"{margin}{outcome.policy}: at most {format_bytes(outcome.live_peak_bytes)} live, "
            f"{format_bytes(outcome.reserved_peak_bytes)} reserved",
        ]
    )


def page(trace: Trace, outcome: Outcome, title: str, most: int = 40_000) -> str:
    """The picture as one HTML page, blocks as boxes that say what they are.

    Above `most` blocks the smallest are left out, and the page says so.
    """
    found = lives(trace, outcome.places)
    order = np.argsort(-found.size, kind="stable")[:most]
    width, height = 1200, 640
    across = width / max(len(trace), 1)
    up = height / max(found.extent, 1)
    boxes = []
    for i in order:
        b, d, o, s = (int(a[i]) for a in (found.born, found.died, found.offset, found.size))
        hue = (o * 2654435761 // (1 << 20)) % 360
        boxes.append(
            f'<rect x="{b * across:.2f}" y="{height - (o + s) * up:.2f}" '
            f'width="{max((d - b) * across, 0.3):.2f}" height="{max(s * up, 0.3):.2f}" '
            f'fill="hsl({hue} 55% 55%)"><title>{format_bytes(s)} at {format_bytes(o)}, '
            f"records {b} to {d}</title></rect>"
        )
    steps = np.linspace(0, max(len(trace) - 1, 0), num=min(len(trace), 1200), dtype=np.int64)
    peak = max(int(outcome.reserved.max()) if len(outcome.reserved) else 0, found.extent, 1)
    line = " ".join(
        f"{int(n) * across:.1f},{height - float(outcome.reserved[n]) * height / peak:.1f}"
        for n in steps
    )
    scale = f"on a scale of its own to {format_bytes(peak)}"
    if peak == found.extent:
        scale = "on the same scale"
    left_out = len(found.size) - len(order)
    note = f" The {left_out:,} smallest of {len(found.size):,} blocks are not drawn." * (
        left_out > 0
    )
    safe = html.escape(title)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{safe}</title>
<style>
 body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; padding: 0 2rem;
        max-width: 1280px; color: #1c2430; background: #fcfcfa; }}
 svg {{ background: #fff; border: 1px solid #cdd3da; width: 100%; height: auto; }}
 .axis {{ font-size: 13px; fill: #5a6572; }}
</style></head><body>
<h1>{safe}</h1>
<p>Policy <b>{html.escape(outcome.policy)}</b>: at most {format_bytes(outcome.live_peak_bytes)}
live, {format_bytes(outcome.reserved_peak_bytes)} reserved, {outcome.ratio:.3f} of live.
Addresses upwards to {format_bytes(found.extent)}, requests to the right; the line is what was
reserved, {scale}.{note}</p>
<svg viewBox="0 0 {width} {height + 24}" role="img" aria-label="address over time">
{"".join(boxes)}
<polyline points="{line}" fill="none" stroke="#1c2430" stroke-width="1.5"/>
<text class="axis" x="4" y="{height + 18}">first request</text>
<text class="axis" x="{width - 4}" y="{height + 18}" text-anchor="end">record {len(trace):,}</text>
</svg></body></html>
"""
