"""How many rows an op works on: the `count` tensor, or all of them."""

from __future__ import annotations

from bedplate.kernels.errors import ShapeError
from bedplate.kernels.formats import Array


def rows_in_use(op: str, count: Array | None, rows: int) -> int:
    """The value of `count`, or `rows` when it is absent; raises `ShapeError` past `rows`."""
    if count is None:
        return rows
    used = int(count[0])
    if used > rows:
        raise ShapeError(f"{op}: count is {used}, the tensors hold {rows} rows")
    return used
