"""Detokenising and stop strings, token by token."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedplate.serving.text import Detokenizer, StopMatcher


@given(st.text(), st.data())
def test_any_split_of_the_bytes_gives_the_text(text: str, data: st.DataObject) -> None:
    """However tokens cut the UTF-8, the pieces join to the text and hold no U+FFFD of their own."""
    raw = text.encode()
    cuts = [0, *sorted(data.draw(st.sets(st.integers(0, len(raw))))), len(raw)]
    pieces = [raw[a:b] for a, b in itertools.pairwise(cuts)]
    detokenizer = Detokenizer(pieces)
    out = [detokenizer.push(i) for i in range(len(pieces))]
    assert "".join(out) + detokenizer.finish() == text
    assert "\ufffd" in text or not any("\ufffd" in piece for piece in out)


def test_a_character_cut_short_is_flushed_once() -> None:
    """Two of a llama's four bytes: nothing while it may go on, one U+FFFD at the end."""
    detokenizer = Detokenizer([b"\xf0\x9f", b"\xa6\x99"])
    assert detokenizer.push(0) == ""
    assert detokenizer.finish() == "\ufffd"
    whole = Detokenizer([b"\xf0\x9f", b"\xa6\x99"])
    assert [whole.push(0), whole.push(1), whole.finish()] == ["", "🦙", ""]


@pytest.mark.parametrize(
    ("pieces", "stops", "sent", "matched"),
    [
        (["the brown f", "own fox", " jumps"], ["own fox"], "the brown f", "own fox"),
        (["a\nUs", "er: hi"], ["\nUser:"], "a", "\nUser:"),
        (["a\nUs", "ual"], ["\nUser:"], "a\nUsual", None),
        (["aab"], ["ab"], "a", "ab"),
        (["x", "y", "z"], ["yz", "xyz"], "", "xyz"),
        (["stop"], ["stop", "top"], "", "stop"),
        (["end sto"], ["stop"], "end sto", None),
    ],
)
def test_nothing_of_a_stop_string_is_sent(
    pieces: list[str], stops: list[str], sent: str, matched: str | None
) -> None:
    """All text before the first stop string is sent, none of it and nothing after."""
    matcher = StopMatcher(stops)
    out = ""
    for piece in pieces:
        out += matcher.push(piece)
        if matcher.matched:
            break
    if not matcher.matched:
        out += matcher.finish()
    assert (out, matcher.matched) == (sent, matched)


@given(
    st.lists(st.text("ab", max_size=4), max_size=8),
    st.lists(st.text("ab", min_size=1, max_size=3), max_size=3),
)
def test_the_matcher_agrees_with_searching_the_whole_text(
    pieces: list[str], stops: list[str]
) -> None:
    """Against the plain definition: cut where the first stop string seen whole begins."""
    matcher, out, seen = StopMatcher(stops), "", ""
    for piece in pieces:
        out += matcher.push(piece)
        seen += piece
        if matcher.matched is not None:
            break
    places = [seen.find(s) for s in stops if s in seen]
    if matcher.matched is None:
        out += matcher.finish()
        assert not places
        assert out == seen
    else:
        assert out == seen[: min(places)]
