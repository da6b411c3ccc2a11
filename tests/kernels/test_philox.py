import pytest

from bedplate.kernels.philox import philox4x32, uniform

ONES = 0xFFFFFFFF
PUBLISHED = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((ONES,) * 4, (ONES,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("counter", "key", "expected"), PUBLISHED)
def test_published_vectors(
    counter: tuple[int, int, int, int], key: tuple[int, int], expected: tuple[int, ...]
) -> None:
    """Ten rounds give the known-answer vectors that the Random123 distribution publishes."""
    assert philox4x32(counter, key) == expected


def test_uniform_uses_the_first_two_words() -> None:
    """The draw is the first 26 bits of word 0, then the first 27 bits of word 1."""
    assert uniform(0, 0) == ((0x6627E8D5 >> 6) * 2**27 + (0xE169C58D >> 5)) / 2**53


def test_uniform_sees_all_64_bits_of_seed_and_index() -> None:
    """High words of the seed and of the index change the draw; it stays in [0, 1)."""
    draws = {uniform(s, i) for s in (1, 1 + 2**32, 2**63) for i in (0, 2**32, 2**64 - 1)}
    assert len(draws) == 9
    assert all(0 <= d < 1 for d in draws)


def test_uniform_is_uniform() -> None:
    """10,000 draws of one seed fill ten bins evenly: chi-square below 27.9 (p = 0.001)."""
    bins = [0] * 10
    for index in range(10_000):
        bins[int(uniform(7, index) * 10)] += 1
    assert sum((b - 1000) ** 2 / 1000 for b in bins) < 27.9
