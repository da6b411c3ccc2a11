"""Native libraries load, or say in one sentence what is lacking."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from cffi import FFI

from bedplate.core import library
from bedplate.core.errors import EnvironmentLacks


def test_a_library_loads_or_its_lack_is_told() -> None:
    """The runtime's, with a function of it; one that is not there, with code and remedy."""
    ffi = FFI()
    ffi.cdef("uint64_t bp_runtime_last_error(char *buffer, uint64_t capacity);")
    found = library.load(ffi, "runtime", "the runtime's library", "test.missing")
    with ThreadPoolExecutor(1) as fresh:  # errors are a thread's own; this one has had none
        assert fresh.submit(found.bp_runtime_last_error, ffi.NULL, 0).result() == 0
    with pytest.raises(
        EnvironmentLacks, match=r"the loom libbedplate_none.so does not load"
    ) as lack:
        library.load(ffi, "none", "the loom", "test.missing")
    assert lack.value.code == "test.missing"
    assert "make build" in str(lack.value.remedy)
    assert lack.value.exit_code == 3
