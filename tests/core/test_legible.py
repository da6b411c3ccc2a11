"""Text of others: what is shown as it is, and what is escaped."""

from __future__ import annotations

import pytest

from bedplate.core.legible import legible, signal_name


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("naïve ├ 漢", "naïve ├ 漢"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\udcff.json", "\\udcff.json"),
        ("\u202e", "\\u202e"),
    ],
)
def test_what_does_not_print_is_escaped(text: str, shown: str) -> None:
    """And what is shown can always be encoded."""
    assert legible(text) == shown
    legible(text).encode()


def test_signals_have_a_name_or_a_number() -> None:
    """40 is a real-time signal, which Python has no name for."""
    assert signal_name(6) == "SIGABRT"
    assert signal_name(40) == "signal 40"
