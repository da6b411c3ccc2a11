import pytest

from bedplate.core import seeds
from bedplate.core.errors import UsageError


def test_the_same_seed_gives_the_same_streams() -> None:
    """A run can be repeated from the seed that it printed."""
    first = [stream.integers(1 << 62) for stream in seeds.streams(7, 3)]
    assert first == [stream.integers(1 << 62) for stream in seeds.streams(7, 3)]
    assert len(set(first)) == 3


def test_another_consumer_moves_no_stream() -> None:
    """Adding a fourth stream leaves the first three as they were."""
    three = [stream.integers(1 << 62) for stream in seeds.streams(7, 3)]
    assert [stream.integers(1 << 62) for stream in seeds.streams(7, 4)][:3] == three


def test_a_flag_is_taken_as_it_is() -> None:
    """Decimal and hexadecimal text both work; none given draws a u64."""
    assert seeds.choose("0x10") == 16
    assert 0 <= seeds.choose(None) < seeds.SEED_LIMIT


@pytest.mark.parametrize("flag", ["-1", "x", str(1 << 64), "1.5"])
def test_what_is_not_a_u64_is_refused(flag: str) -> None:
    """The error says which range a seed has."""
    with pytest.raises(UsageError, match="is not a seed"):
        seeds.choose(flag)
