"""A profile as one HTML page that needs nothing else: source, heat, lanes by issue, tables.

Tables and sources are there without scripts; the slider and the choice of heat need them.
All text is escaped, the script's data are numbers, and nothing is fetched, so a page of a
profile from somebody else is safe to open.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bedplate.simt.scalar import LANES

TEMPLATE = Path(__file__).with_name("page.html")
HEATS = ("issues", "idle lane slots", "sectors a request", "bank conflicts", "divergent branches")
COLUMNS = ("requests", "sectors", "wavefronts", "conflicts", "divergent")
ZERO = ' class="zero"'
STATES = (("runs", "runs"), ("off", "guard off, or branch not taken"), ("waits", "waits"))


def page(document: Mapping[str, Any]) -> str:
    """The page of a profile (simt-profile/1); KeyError, TypeError or ValueError if it is none."""
    texts = document.get("texts", [])
    heat = _heat(document, texts)
    issues = [[int(n) for n in issue] for issue in document.get("timeline", {}).get("issues", [])]
    grid, block = ("x".join(map(str, document[name])) for name in ("grid", "block"))
    parts = {
        "title": _safe(f"{document['kernel']}: profile"),
        "kernel": _safe(document["kernel"]),
        "launch": _safe(f"{document['arch']}, grid {grid}, block {block}, {document['ptx']}"),
        "tiles": _tiles(document),
        "views": _views(document, texts, heat, issues),
        "lines": _lines(document["lines"]),
        "mix": _table(("opcode", "issues"), document["mix"].items()),
        "metrics": _table(("name", "value"), document["metrics"].items()),
        "data": json.dumps(
            {"issues": issues, "heat": heat}, separators=(",", ":"), allow_nan=False
        ),
    }
    made = TEMPLATE.read_text(encoding="utf-8")
    head, *rest = made.split("{{")
    for part in rest:
        name, _, behind = part.partition("}}")
        head += parts[name] + behind
    return head


def _safe(text: Any) -> str:
    return html.escape(str(text))


def _number(value: Any) -> str:
    return f"{value:.2f}" if isinstance(value, float) else f"{int(value):,}"


def _tiles(document: Mapping[str, Any]) -> str:
    total = document["total"]
    used = total["bytes"] / total["sectors"] if total["sectors"] else 0.0
    tiles = [
        (_number(float(document["sectors_per_request"])), "sectors a request"),
        (_number(used), "bytes asked for a sector of 32"),
        (_number(float(document["wavefronts_per_request"])), "wavefronts a request"),
        (_number(total["conflicts"]), "bank conflicts"),
        (f"{100 * document['lane_efficiency']:.1f} %", "lanes active"),
        (f"{total['divergent']:,} of {document['branches']:,}", "branches divergent"),
    ]
    return "".join(f"<li><b>{_safe(value)}</b><span>{name}</span></li>" for value, name in tiles)


def _lines(lines: Sequence[Mapping[str, Any]]) -> str:
    head = ("line", "issues", "lanes active", *COLUMNS[:2], "sectors a request", *COLUMNS[2:])
    rows = []
    for line in lines:
        active = 100 * line["lanes"] / max(LANES * line["issues"], 1)
        each = line["sectors"] / line["requests"] if line["requests"] else 0.0
        rows.append(
            (
                f"{line['file']}:{line['line']}",
                line["issues"],
                f"{active:.1f} %",
                *(line[name] for name in COLUMNS[:2]),
                each,
                *(line[name] for name in COLUMNS[2:]),
            )
        )
    return _table(head, rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    names = "".join(f"<th>{_safe(name)}</th>" for name in head)
    body = "".join(
        "<tr>"
        + "".join(
            f"<td>{_safe(cell)}</td>"
            if isinstance(cell, str)
            else f"<td{'' if cell else ZERO}>{_number(cell)}</td>"
            for cell in row
        )
        + "</tr>"
        for row in rows
    )
    return f'<table class="numbers"><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>'


# Sources with heat. A pane is `p` for the PTX and `s0`, `s1`, ... for its sources.


def _panes(texts: Sequence[Mapping[str, Any]]) -> list[tuple[str, Mapping[str, Any]]]:
    return [("p" if n == 0 else f"s{n - 1}", text) for n, text in enumerate(texts)]


def _heat(
    document: Mapping[str, Any], texts: Sequence[Mapping[str, Any]]
) -> dict[str, dict[int, list[float]]]:
    """For each pane and line its value of each of `HEATS`."""
    found: dict[str, dict[int, list[float]]] = {}
    for pane, text in _panes(texts):
        rows = found[pane] = {}
        if pane == "p":
            for made in document["instructions"]:
                _add(rows, int(made["ptx_line"]), made)
        else:
            for line in document["lines"]:
                if line["file"] == text["file"]:
                    _add(rows, int(line["line"]), line)
        inside = range(text["first"], text["first"] + len(text["lines"]))
        found[pane] = {line: row[:-1] for line, row in rows.items() if line in inside}
    return found


def _add(rows: dict[int, list[float]], line: int, count: Mapping[str, Any]) -> None:
    """Add a count to a line; the last value is its requests."""
    row = rows.setdefault(line, [0] * (len(HEATS) + 1))
    sectors = row[2] * row[-1] + count["sectors"]
    row[-1] += count["requests"]
    row[0] += count["issues"]
    row[1] += LANES * count["issues"] - count["lanes"]
    row[2] = round(sectors / row[-1], 2) if row[-1] else 0
    row[3] += count["conflicts"]
    row[4] += count["divergent"]


def _views(
    document: Mapping[str, Any],
    texts: Sequence[Mapping[str, Any]],
    heat: Mapping[str, Mapping[int, Sequence[float]]],
    issues: Sequence[Sequence[int]],
) -> str:
    if not texts:
        return '<p class="note">The profile has no texts; write it again to see its lines.</p>'
    sources = {
        (text["file"], line): f"{pane}-{line}"
        for pane, text in _panes(texts)[1:]
        for line in range(text["first"], text["first"] + len(text["lines"]))
    }
    places = {
        int(made["ptx_line"]): sources.get((made["file"], made["line"]))
        for made in document["instructions"]
    }
    first = _telling(document["total"])
    panes = [_pane(pane, text, heat[pane], places, first) for pane, text in _panes(texts)]
    panes = [*panes[1:], panes[0]]  # what people wrote comes before what was made of it
    options = "".join(
        f'<option value="{n}"{" selected" if n == first else ""}>{name}</option>'
        for n, name in enumerate(HEATS)
    )
    chooser = f'<label>heat: <select id="heat">{options}</select></label>'
    if not issues:
        return (
            f'<h2>Lines</h2><div class="controls">{chooser}</div>'
            f'<div class="views still">{"".join(panes)}</div>'
        )
    cut = " The launch went on behind its end." if document["timeline"]["cut"] else ""
    warps = sorted({issue[0] for issue in issues})
    chosen = "".join(f"<option>{warp}</option>" for warp in warps)
    strip = "".join(f"<i>{lane}</i>" for lane in range(LANES))
    legend = "".join(
        f'<span><i style="background:var(--{name})"></i>{text}</span>' for name, text in STATES
    )
    return f"""<h2>Issue by issue</h2>
<p class="note">The first block, instruction by instruction: move the slider, or click into the
picture, and see which lanes run and where.{cut}</p>
<div class="controls"><label>warp: <select id="warp">{chosen}</select></label>
<button id="back" type="button" aria-label="one issue back">◀</button>
<input id="slider" type="range" min="0" value="0" aria-label="issue">
<button id="on" type="button" aria-label="one issue on">▶</button>{chooser}</div>
<div id="told" aria-live="polite"></div>
<div class="strip" id="strip">{strip}</div>
<div class="legend">{legend}<span><i></i>ended</span></div>
<div class="views" data-panes="{len(panes)}"><figure><figcaption>lanes 0 to 31, issues
downwards</figcaption><div class="scroll lanes"><canvas id="canvas"></canvas><div id="marker"
style="position:absolute;left:0;right:0;border:2px solid var(--ink);border-radius:3px;
pointer-events:none"></div></div></figure>{"".join(panes)}</div>"""


def _telling(total: Mapping[str, Any]) -> int:
    """The heat that is shown first: what is likeliest to cost something."""
    if total["conflicts"]:
        return HEATS.index("bank conflicts")
    if total["sectors"] > 4 * total["requests"]:
        return HEATS.index("sectors a request")
    return HEATS.index("idle lane slots" if total["divergent"] else "issues")


def _pane(
    pane: str,
    text: Mapping[str, Any],
    heat: Mapping[int, Sequence[float]],
    places: Mapping[int, str | None],
    shown: int,
) -> str:
    most = max((row[shown] for row in heat.values()), default=0) or 1
    rows = []
    for number, line in enumerate(text["lines"], int(text["first"])):
        row = heat.get(number)
        value = "" if row is None or not row[shown] else _number(row[shown])
        style = "" if row is None else f' style="--h:{row[shown] / most:.3f}"'
        link = places.get(number) if pane == "p" else None
        source = f' data-source="{link}"' if link else ""
        quiet = ' class="quiet"' if pane == "p" and number not in places else ""
        rows.append(
            f'<tr id="{pane}-{number}"{quiet}{source}><td>{number}</td><td{style}>{value}</td>'
            f"<td>{_safe(line)}</td></tr>"
        )
    return (
        f"<figure><figcaption>{_safe(text['file'])}</figcaption>"
        f'<div class="scroll"><table class="code">{"".join(rows)}</table></div></figure>'
    )
