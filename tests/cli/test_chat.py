"""`bedplate chat`: what no request can carry is refused before one is made."""

from __future__ import annotations

import pytest

from bedplate.cli.chat import check
from bedplate.core.errors import UsageError

BYTES = b"caf\xe9".decode("utf-8", "surrogateescape")


@pytest.mark.parametrize(
    ("words", "system", "temperature", "most", "match"),
    [
        (["hi"], None, float("nan"), None, "nan is not a temperature"),
        (["hi"], None, float("inf"), None, "inf is not a temperature"),
        (["hi"], None, -0.5, None, "-0.5 is not a temperature"),
        (["hi"], None, 0.0, 0, "--max-tokens 0 is no answer; give 1 or more"),
        (["hi"], None, 0.0, -3, "--max-tokens -3"),
        (["hi", BYTES], None, 0.0, None, "is not UTF-8 text"),
        (["hi"], BYTES, 0.0, None, "is not UTF-8 text"),
    ],
)
def test_what_no_request_can_carry_is_refused(
    words: list[str], system: str | None, temperature: float, most: int | None, match: str
) -> None:
    """One sentence that holds the value."""
    with pytest.raises(UsageError, match=match):
        check(words, system, temperature, most)


def test_everything_else_passes() -> None:
    """Any text, greedy or not."""
    check(["grüß", "😀"], "Sei höflich.", 0.0, 1)
    check([], None, 1.5, None)
