"""Arguments of a launch: what a caller gives, packed as the kernel declares it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bedplate.simt.errors import LaunchInvalid
from bedplate.simt.module import Function, Variable


class DeviceArray:
    """An array in a machine's memory; `numpy()` gives a copy, `view()` the bytes themselves."""

    def __init__(self, machine: Any, shape: tuple[int, ...], dtype: Any, address: int) -> None:
        self.machine = machine
        self.shape = shape
        self.dtype = np.dtype(dtype)
        self.address = address
        self.size = int(np.prod(shape, dtype=np.int64))
        self.nbytes = self.size * self.dtype.itemsize

    def view(self) -> np.ndarray[Any, Any]:
        """The device's bytes as an array of the host; writes are seen by kernels."""
        # Who holds a view may write, so that these bytes count as written.
        self.machine.memory.written.pop(self.address, None)
        return self._view()

    def _view(self) -> np.ndarray[Any, Any]:
        data = self.machine.memory.view(self.address, self.nbytes)
        if data is None:
            raise LaunchInvalid("the array's machine is closed")
        viewed: np.ndarray[Any, Any] = data.view(self.dtype).reshape(self.shape)
        return viewed

    def numpy(self) -> np.ndarray[Any, Any]:
        """A copy of what is there now."""
        return self._view().copy()

    def free(self) -> None:
        """Give the memory back."""
        self.machine.memory.free(self.address)


def pack(function: Function, offsets: Mapping[str, int], size: int, values: Sequence[Any]) -> bytes:
    """The parameter block of a launch; raises `LaunchInvalid` naming the argument."""
    parameters = function.parameters
    if len(values) != len(parameters):
        raise LaunchInvalid(
            f"{function.name} takes {len(parameters)} arguments, not {len(values)}",
            remedy=f"they are {_listed(parameters)}" if parameters else None,
        )
    block = bytearray(max(size, 1))
    for number, (parameter, value) in enumerate(zip(parameters, values, strict=True)):
        data = _bytes(function, number, parameter, value)
        block[offsets[parameter.name] : offsets[parameter.name] + len(data)] = data
    return bytes(block)


def _listed(parameters: Sequence[Variable]) -> str:
    return ", ".join(f".{p.type.name}" for p in parameters)


def _bytes(function: Function, number: int, parameter: Variable, value: Any) -> bytes:
    """One argument as its parameter's bytes."""
    where = f"argument {number} of {function.name}"
    if isinstance(value, DeviceArray):
        if parameter.size != 8:
            raise LaunchInvalid(f"{where} is .{parameter.type.name}, not an array")
        return value.address.to_bytes(8, "little")
    if isinstance(value, bytes | bytearray):
        if len(value) != parameter.size:
            raise LaunchInvalid(f"{where} has {parameter.size} bytes, not {len(value)}")
        return bytes(value)
    if isinstance(value, np.ndarray):
        raise LaunchInvalid(
            f"{where} is an array of the host", remedy="copy it with machine.array(...)"
        )
    if isinstance(value, np.generic):
        return _scalar(where, parameter, value)
    if isinstance(value, bool | int):
        bits = 8 * parameter.size
        if parameter.type.kind != "float":
            if not -(1 << (bits - 1)) <= value < 1 << bits:
                raise LaunchInvalid(f"{where} is .{parameter.type.name}: {value} does not fit")
            return (value % (1 << bits)).to_bytes(parameter.size, "little")
        value = float(value)
    if isinstance(value, float):
        if parameter.type.kind == "float" or parameter.type.kind == "bits":
            kind = {2: np.float16, 4: np.float32, 8: np.float64}[parameter.size]
            return bytes(np.array(value, kind).tobytes())
        raise LaunchInvalid(f"{where} is .{parameter.type.name}, not the float {value}")
    raise LaunchInvalid(
        f"{where} is a {type(value).__name__}",
        remedy="give a number, a numpy scalar, bytes or an array of the machine",
    )


def _scalar(where: str, parameter: Variable, value: Any) -> bytes:
    """A numpy scalar, whose type must be the parameter's."""
    kind = {"f": "float", "i": "signed", "u": "unsigned", "b": "unsigned"}.get(value.dtype.kind)
    wanted = parameter.type.kind
    either = {"signed", "unsigned"}
    same = wanted == "bits" or kind == wanted or {kind, wanted} == either
    if value.dtype.itemsize != parameter.size or not same:
        raise LaunchInvalid(
            f"{where} is .{parameter.type.name}, not {value.dtype.name}",
            remedy="convert it first",
        )
    return bytes(value.tobytes())
