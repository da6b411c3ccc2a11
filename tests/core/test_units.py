import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedplate.core import units
from bedplate.core.errors import UsageError


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [("4096", 4096), ("4 KiB", 4096), ("4kB", 4000), ("1.5GB", 1_500_000_000), ("2TiB", 2 << 40)],
)
def test_sizes_keep_decimal_and_binary_apart(text: str, size_bytes: int) -> None:
    """kB is 1000 and KiB 1024, with or without a space."""
    assert units.parse_bytes(text) == size_bytes


@pytest.mark.parametrize(
    ("text", "duration_ns"),
    [("250ms", 250_000_000), ("1.5 s", 1_500_000_000), ("30d", 2592000 * 10**9)],
)
def test_durations_are_exact_integers(text: str, duration_ns: int) -> None:
    """Fractions are read exactly, never through floating point."""
    assert units.parse_duration_ns(text) == duration_ns


@pytest.mark.parametrize("text", ["", "GiB", "-1", "1 XB", "0.3 B", "1e3", "1 2", "nan"])
def test_nonsense_sizes_are_refused(text: str) -> None:
    """The error quotes the text, so the user sees which value was wrong."""
    with pytest.raises(UsageError, match="is not a size") as caught:
        units.parse_bytes(text)
    assert repr(text) in caught.value.message


def test_a_duration_needs_a_unit() -> None:
    """A bare number would be seconds to one reader and milliseconds to another."""
    with pytest.raises(UsageError, match="is not a duration"):
        units.parse_duration_ns("5")


@given(st.integers(0, 10**9), st.sampled_from(["B", "kB", "MiB", "TB"]))
def test_whole_sizes_survive_a_round_trip(count: int, unit: str) -> None:
    """Parsing is linear in the count for every unit."""
    assert units.parse_bytes(f"{count}{unit}") == count * units.parse_bytes(f"1{unit}")


@pytest.mark.parametrize(
    ("duration_ns", "text"),
    [
        (0, "0 ns"),
        (1500, "1.5 us"),
        (2_340_000, "2.34 ms"),
        (61 * 10**9, "1 min 01 s"),
        (7260 * 10**9, "2 h 01 min"),
    ],
)
def test_durations_for_people(duration_ns: int, text: str) -> None:
    """Three digits below a minute, minutes and hours above."""
    assert units.format_duration_ns(duration_ns) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (66.14, "ns", "66.14 ns"),
        (21670.0, "ns", "21.67 us"),
        (999.96, "ns", "1 us"),
        (7e10, "ns", "70 s"),
        (1.035e7, "1/s", "10.35 M/s"),
        (0.5, "1/s", "0.5 1/s"),
        (6.369e9, "bytes/s", "6.369 GB/s"),
        (12.0, "tokens", "12 tokens"),
    ],
)
def test_quantities_for_people(value: float, unit: str, text: str) -> None:
    """A decimal prefix where the unit takes one."""
    assert units.format_quantity(value, unit) == text


def test_sizes_for_people() -> None:
    """Bytes stay whole below 1 KiB."""
    assert [units.format_bytes(n) for n in (0, 1023, 1024, 5 << 30)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "5.0 GiB",
    ]
