import pytest

from bedplate.core.nearest import hint

VERBS = ["status", "up", "down"]


@pytest.mark.parametrize(
    ("word", "choices", "told"),
    [
        ("statsu", VERBS, "the nearest is 'status'"),
        ("prot", ["host", "port"], "the nearest is 'port'"),
        ("nothing", VERBS, "known are down, status, up"),
        ("", VERBS, "known are down, status, up"),
        ("x", [], "none is known"),
    ],
)
def test_only_what_is_near_is_suggested(word: str, choices: list[str], told: str) -> None:
    """A transposed letter is near; another word is not, and gets the choices."""
    assert hint(word, choices) == told
