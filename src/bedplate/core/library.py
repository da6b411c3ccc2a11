"""The native libraries of the package, loaded by cffi in ABI mode.

A system declares its functions and asks once; what does not load is an
environment that lacks something, with one sentence and its remedy.
"""

from __future__ import annotations

from typing import Any

from bedplate.core.errors import EnvironmentLacks
from bedplate.core.paths import native_library_dir


def load(ffi: Any, name: str, what: str, code: str) -> Any:
    """`libbedplate_<name>.so` under the declarations of an `FFI`.

    Raises EnvironmentLacks, with `code`, saying that `what` does not load.
    """
    path = native_library_dir() / f"libbedplate_{name}.so"
    try:
        return ffi.dlopen(str(path))
    except OSError as cause:
        raise EnvironmentLacks(
            f"{what} {path.name} does not load",
            code=code,
            remedy="run `make build`, or `pip install .`",
            detail=str(cause),
        ) from cause
