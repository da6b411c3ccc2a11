"""A profile as a page and as a picture for a terminal."""

from __future__ import annotations

import copy
import json
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from tests.simt.test_trace import SPLIT

from bedplate.simt.api import (
    Machine,
    profile_page,
    profile_picture,
    sources_beside,
    timeline,
)

HOSTILE = "</script><script>alert(1)</script>"


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The profile of a launch of two warps, the first of which parts."""
    path = tmp_path_factory.mktemp("page") / "split.ptx"
    (path.parent / "split.cu").write_text("__global__\n if (a < b & c)\n  x();\n")
    with Machine(threads=1, memory=1 << 20) as machine:
        kernel = machine.load(SPLIT, str(path))["split"]
        cells = machine.array(np.zeros(64, np.uint32))
        told = timeline(kernel, 2, 40, (cells,))
        report = kernel.launch(2, 40, (cells,), profile=True).report
        assert report is not None
        texts = sources_beside(path, SPLIT, kernel.function).excerpts(kernel.function)
        # As it comes back from a file.
        return json.loads(
            json.dumps({**report.document(), "timeline": told.document(), "texts": texts})
        )


class Page(HTMLParser):
    """What a browser would make of a page: rows by id, scripts, and every attribute."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: dict[str, list[str]] = {}
        self.styles: dict[str, str] = {}
        self.scripts: list[str] = []
        self.sources: dict[str, str | None] = {}
        self.attributes: list[tuple[str, str | None]] = []
        self.options: list[str] = []
        self._row = self._tag = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.attributes += attrs
        self._tag = tag
        if tag == "tr":
            self._row = named.get("id") or ""
            self.rows[self._row] = []
            self.sources[self._row] = named.get("data-source")
        elif tag == "td" and self._row and named.get("style"):
            self.styles[self._row] = str(named["style"])
        elif tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._tag = ""

    def handle_data(self, data: str) -> None:
        if self._tag == "script":
            self.scripts[-1] += data
        elif self._tag == "td":
            self.rows[self._row].append(data)


def test_lines_with_their_heat(document: Any) -> None:
    """Both texts, as they are; idle lanes are shown first when lanes parted."""
    page = Page(profile_page(document))
    assert page.rows["s0-2"] == ["2", "144", " if (a < b & c)"]
    assert page.rows["s0-1"] == ["1", "__global__"]
    assert page.rows["p-15"][2] == "mov.u32 %r2, 3; // not lane 0 to 7"
    # Lines 15, 16 (24 lanes of 32, and 8 of 32 in the second warp), then 18, 19 by two blocks.
    assert [page.rows[f"p-{line}"][1] for line in (15, 16, 18, 19)] == ["64", "64", "48", "48"]
    assert page.styles["p-15"] == "--h:1.000"
    assert page.styles["p-18"] == "--h:0.750"
    assert page.sources["p-11"] == "s0-2"
    assert page.sources["p-18"] == "s0-3"


def test_what_the_script_is_given(document: Any) -> None:
    """Numbers only: the issues, and for each pane the heat of its lines."""
    page = Page(profile_page(document))
    data = json.loads(page.scripts[0])
    assert data["issues"] == document["timeline"]["issues"]
    assert data["issues"][3] == [0, 15, 0xFFFFFF00, 0xFFFFFF00, 0xFFFFFFFF]
    assert data["heat"]["p"]["13"] == [4, 48, 0, 0, 2]
    store = data["heat"]["p"]["24"]
    assert store[2] == 2.5  # four sectors and one, in two requests
    assert set(data["heat"]) == {"p", "s0"}
    # Every id that the script asks for is there.
    text = profile_page(document)
    asked = re.findall(r'(?:at|getElementById)\("(\w+)"\)', page.scripts[1])
    assert len(asked) > 10
    for name in asked:
        assert f'id="{name}"' in text


def test_nothing_comes_from_outside(document: Any) -> None:
    """No address, no file, no policy that would matter: it opens from file://."""
    text = profile_page(document)
    assert not re.search(r"https?:|//[a-z]+\.|@import|url\(", text)
    names = {name for name, _ in Page(text).attributes}
    assert not names & {"src", "href", "srcset", "data"}


def test_texts_are_escaped(document: Any) -> None:
    """A profile of somebody else is a text, wherever it says something."""
    hostile = copy.deepcopy(document)
    hostile["kernel"] = hostile["arch"] = hostile["ptx"] = HOSTILE
    hostile["mix"] = {HOSTILE: 1}
    hostile["metrics"] = {HOSTILE: HOSTILE}
    for text in hostile["texts"]:
        text["file"] = HOSTILE
        text["lines"] = [HOSTILE] * len(text["lines"])
    for line in hostile["lines"]:
        line["file"] = HOSTILE
    for made in hostile["instructions"]:
        made["text"] = HOSTILE
    text = profile_page(hostile)
    page = Page(text)
    assert len(page.scripts) == 2
    assert "<script>alert" not in text
    assert page.rows["p-15"][2] == HOSTILE


@pytest.mark.parametrize("where", ["issues", "first", "counts", "total", "branches"])
def test_numbers_must_be_numbers(document: Any, where: str) -> None:
    """Words in place of numbers are refused, since the script would run with them."""
    odd = copy.deepcopy(document)
    if where == "issues":
        odd["timeline"]["issues"][0][1] = HOSTILE
    elif where == "first":
        odd["texts"][0]["first"] = HOSTILE
    elif where == "counts":
        odd["instructions"][0]["issues"] = HOSTILE
    elif where == "total":
        odd["total"]["conflicts"] = HOSTILE
    else:
        odd["branches"] = HOSTILE
    with pytest.raises((ValueError, TypeError)):
        profile_page(odd)


def test_the_heat_that_is_shown_first(document: Any) -> None:
    """What is likeliest to cost something."""
    seen = {}
    for name, changes in {
        "bank conflicts": {"conflicts": 3},
        "sectors a request": {"sectors": 999},
        "idle lane slots": {},
        "issues": {"divergent": 0},
    }.items():
        made = {**document, "total": {**document["total"], **changes}}
        seen[name] = re.findall(r"selected>([a-z ]+)<", profile_page(made))
    assert seen == {name: [name] for name in seen}


def test_profiles_without_texts_or_timeline(document: Any) -> None:
    """Older ones: the tables are there, and the page says what to do."""
    old = {name: document[name] for name in document if name not in ("texts", "timeline")}
    assert "write it again" in profile_page(old)
    page = profile_page({**document, "timeline": {"cut": False, "issues": []}})
    assert 'id="heat"' in page
    assert 'id="slider"' not in page


def test_a_picture(document: Any) -> None:
    """32 lanes in 80 columns: run, stay, wait."""
    shown = list(profile_picture(document, 0, 64, plain=False, colour=False))
    assert shown[0] == "split, block 0, warp 0: 12 issues"
    assert shown[4:8] == [
        "   13  " + "█" * 8 + "▒" * 24 + "  @%p1 bra LOW;",
        "   15  " + "·" * 8 + "█" * 24 + "  mov.u32 %r2, 3; // not lane 0 to 7",
        "   16  " + "·" * 8 + "█" * 24 + "  bra BOTH;",
        "   18  " + "█" * 8 + "·" * 24 + "  mov.u32 %r2, 4;",
    ]
    assert max(map(len, shown)) <= 80
    second = list(profile_picture(document, 1, 64, plain=True, colour=False))
    assert second[2] == "   11  " + "#" * 8 + " " * 26 + "mov.u32 %r1, %tid.x;"
    assert "".join(second).isascii()


def test_a_picture_that_is_cut(document: Any) -> None:
    """By the reader or by the profile, which is said; long statements end in dots."""
    made = copy.deepcopy(document)
    made["timeline"]["cut"] = True
    assert "launch went on" in list(profile_picture(made, 0, 64, plain=True, colour=False))[-1]
    assert "9 more" in list(profile_picture(made, 0, 3, plain=True, colour=False))[-1]
    text = made["texts"][0]
    text["lines"][11 - text["first"]] = "x" * 99
    shown = list(profile_picture(made, 0, 3, plain=True, colour=False))
    assert shown[2].endswith("xxx...")
    assert len(shown[2]) == 80
    text["lines"][11 - text["first"]] = made["kernel"] = "\x1b[2J"
    assert not any("\x1b" in line for line in profile_picture(made, 0, 3, plain=True, colour=False))


def test_colours_are_only_added(document: Any) -> None:
    """Without them the same signs are there."""
    colour = list(profile_picture(document, 0, 64, plain=False, colour=True))
    without = list(profile_picture(document, 0, 64, plain=False, colour=False))
    assert colour != without
    assert [re.sub(r"\x1b\[[\d;]*m", "", line) for line in colour] == without
