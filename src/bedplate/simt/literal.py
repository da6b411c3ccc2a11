"""Numbers as PTX writes them, into the bits of a type."""

from __future__ import annotations

import struct

from bedplate.simt.scalar import Scalar

_PACKED = {16: "<e", 32: "<f", 64: "<d"}


def integer(text: str) -> int:
    """An integer literal; a leading 0 means octal. Raises `ValueError`."""
    digits = text.rstrip("U")
    if digits[:2].lower() in ("0x", "0b"):
        return int(digits, 0)
    return int(digits, 8) if len(digits) > 1 and digits[0] == "0" else int(digits)


def integer_bits(value: int, scalar: Scalar) -> int:
    """An integer as the bits of `scalar`; raises `ValueError` when they are too few."""
    if not -(1 << (scalar.bits - 1)) <= value <= scalar.mask:
        raise ValueError(f"{value} does not fit .{scalar.name}")
    return value & scalar.mask


def float_bits(text: str, scalar: Scalar) -> int:
    """A floating literal as the bits of `scalar`; raises `ValueError`.

    The hexadecimal forms are bits already: a payload of a NaN in them is kept.
    """
    width = {"0f": 32, "0d": 64}.get(text[:2].lower())
    if width == scalar.bits:
        return int(text[2:], 16)
    if scalar.kind != "float" or scalar.bits not in _PACKED:
        raise ValueError(f"{text} is not a constant of type .{scalar.name}")
    if width is None:
        value = float(text)
    else:
        value = struct.unpack(">f" if width == 32 else ">d", bytes.fromhex(text[2:]))[0]
    try:
        packed = struct.pack(_PACKED[scalar.bits], value)
    except OverflowError:
        raise ValueError(f"{text} does not fit .{scalar.name}") from None
    return int.from_bytes(packed, "little")
