"""Operand tuples for comparing a software GPU with a real one, the same on both sides.

Values are defined by seed: a counter goes through a mixer of 64 bits, so any host with
numpy makes the same ones. A quarter are edge values of the type, a quarter lie next to
one, a quarter are random bits, and a quarter are near each other in size, so that sums
round and cancel. The module needs numpy only, because a GPU machine may have no more.
"""

from __future__ import annotations

import zlib
from functools import cache
from typing import Any

import numpy as np

CHUNK = 4096
MOST = 1 << 20
BITS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
FRACTION = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}
NARROWER = {"f32": ((-14, 13, 16),), "f64": ((-126, 29, 128),)}
"""The exponents of the least normal number and of overflow, and how many bits are dropped."""
WORDS = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


def bits(kind: str) -> int:
    """The width of a type; a predicate travels as a word."""
    return 32 if kind == "pred" else BITS.get(kind) or int(kind[1:])


def noise(seed: int, count: int) -> np.ndarray:
    """`count` words of 64 random bits."""
    with np.errstate(over="ignore"):
        word = np.arange(count, dtype=np.uint64) + np.uint64(seed * 0x1_0000_0001 + 1)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            word = (word ^ (word >> np.uint64(shift))) * np.uint64(factor)
            word ^= word >> np.uint64(31)
    return word


def edges(kind: str) -> list[int]:
    """Values at which an operation on this type does something else."""
    width = bits(kind)
    if kind not in FRACTION:
        found = [0, 1, 2, 3, 5, 7, 20, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256]
        for end in (8, 16, 32, 64):
            found += [(1 << end) - 1, 1 << (end - 1), (1 << (end - 1)) - 1, (1 << end) - 2]
        return sorted({value & ((1 << width) - 1) for value in found})
    fraction = FRACTION[kind]
    top, one = 1 << (width - 1), ((1 << (width - fraction - 2)) - 1) << fraction
    infinity = ((1 << (width - fraction - 1)) - 1) << fraction
    unit, quiet = 1 << fraction, 1 << (fraction - 1)
    found = [0, 1, 2, unit - 1, unit, unit + 1, one, one - 1, one + 1, one + quiet, one + unit]
    found += [infinity - 1, infinity, infinity + 1, infinity + quiet, infinity + quiet + 5]
    for whole in (8, 15, 16, 31, 32, 63, 64):
        # 2^whole and its neighbours, where a conversion to an integer saturates
        if one + whole * unit < infinity:
            found += [one + whole * unit + step for step in (-1, 0, 1)]
    found += [one - unit, one - unit + 1, one + quiet + unit]
    for narrow in NARROWER.get(kind, ()):
        # the ends of a narrower type, and halves of its units there
        least, last, most = narrow
        found += [one + least * unit + step for step in (-(1 << last), -(1 << (last - 1)))]
        found += [
            one + (least - fraction + last) * unit,
            one + (least - fraction + last - 1) * unit,
        ]
        found += [one + most * unit - (1 << last), one + most * unit - (1 << (last - 1))]
    return sorted({value & (top - 1) for value in found} | {value | top for value in found})


@cache
def operand(kind: str, place: int) -> np.ndarray:
    """A million operands of a type for the place-th input, as bits."""
    width = bits(kind)
    mask = np.uint64((1 << width) - 1)
    # places differ by their seed alone; a type has the same values in every form
    seed = 1 + place + 16 * sum(map(ord, kind)) + 4096 * width
    random, choice = noise(seed, MOST), noise(seed + 2048, MOST)
    listed = np.array(edges(kind), np.uint64)
    edge = listed[(random >> np.uint64(8)) % np.uint64(len(listed))]
    near = (edge + (random >> np.uint64(50)) % np.uint64(17) - np.uint64(8)) & mask
    if kind in FRACTION:
        fraction = FRACTION[kind]
        one = ((1 << (width - fraction - 2)) - 1) << fraction
        low = np.uint64((1 << fraction) - 1)
        # sparse fractions make halfway cases
        sparse = random & (random << np.uint64(7)) & (random >> np.uint64(9)) & low
        body = np.where(choice & np.uint64(64), random & low, sparse)
        power = (choice >> np.uint64(20)) % np.uint64(9)
        middle = np.uint64(one - (4 << fraction)) + (power << np.uint64(fraction)) + body
        middle |= ((choice >> np.uint64(30)) & np.uint64(1)) << np.uint64(width - 1)
    else:
        middle = random >> (choice >> np.uint64(20)) % np.uint64(width)
    made = np.select([(choice & np.uint64(3)) == n for n in range(3)], [edge, near, middle], random)
    cut: np.ndarray = (made & mask).astype(WORDS[width])
    return cut


def inputs(form: dict[str, Any]) -> list[np.ndarray]:
    """The operands of a form of the manifest; a divisor is never zero, which has no meaning."""
    made = [operand(kind, place)[: form["count"]] for place, kind in enumerate(form["inputs"])]
    if form["divides"]:
        made[1] = np.where(made[1] == 0, made[1].dtype.type(7), made[1])
    return made


def digests(results: np.ndarray) -> list[int]:
    """One checksum for each chunk of tuples."""
    raw = np.ascontiguousarray(results)
    return [zlib.crc32(raw[at : at + CHUNK].tobytes()) for at in range(0, len(raw), CHUNK)]


def without_payloads(results: np.ndarray, kind: str) -> np.ndarray:
    """The same results with one pattern for everything that is not a number."""
    if kind not in FRACTION:
        return results
    width, fraction = bits(kind), FRACTION[kind]
    infinity = results.dtype.type(((1 << (width - fraction - 1)) - 1) << fraction)
    magnitude = results & results.dtype.type((1 << (width - 1)) - 1)
    return np.where(magnitude > infinity, results.dtype.type((1 << width) - 1), results)
