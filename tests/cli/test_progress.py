from __future__ import annotations

import io

from bedplate.cli.progress import waiting


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_without_a_terminal_each_text_is_one_line() -> None:
    """Nothing before the first text; the same again is not repeated."""
    out = io.StringIO()
    with waiting(out) as note:
        assert out.getvalue() == ""
        note("starting m")
        note("starting m")
        note("starting m; the engine is started again")
    assert out.getvalue() == "starting m\nstarting m; the engine is started again\n"


def test_on_a_terminal_it_is_one_line_that_goes_away() -> None:
    """Markup in a text is text; nothing of it stays at the end."""
    out = Screen()
    with waiting(out) as note:
        note("starting [m]")
        note("starting [n]")
    assert "starting [n]" in out.getvalue()
    assert out.getvalue().endswith("\x1b[2K")
