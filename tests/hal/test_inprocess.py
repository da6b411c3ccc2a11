"""Machines in Python behind the in-process shim: code, errors, and no Python in a launch."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bedplate.core.paths import native_library_dir
from bedplate.hal import doctor, inprocess
from bedplate.hal.api import (
    Batch,
    Buffer,
    DeviceError,
    HalError,
    InvalidArgument,
    NativeCode,
    NotFound,
    OutOfDeviceMemory,
    ProvidedDevice,
    Source,
    Unavailable,
    Unsupported,
    conform_backend,
    open_device,
    register_origin,
    register_provider,
    unregister_provider,
)
from bedplate.hal.example import Example
from bedplate.hal.suite.registry import Tier

ORIGIN = "bedplate.hal.example:Example"
KERNELS = """
#include "bedplate/hal_native.h"
static int32_t count(const bp_native_launch *launch, uint64_t first, uint64_t blocks) {
    uint32_t *out = *(uint32_t *const *)launch->parameters;
    for (uint64_t i = first; i < first + blocks; i++)
        out[i] = (uint32_t)i + 1;
    return BP_OK;
}
static int32_t fail(const bp_native_launch *launch, uint64_t first, uint64_t blocks) {
    (void)blocks;
    return bp_native_fail(launch->fault, BP_LAUNCH_FAULT, first, 7, "the machine stops at %d", 7);
}
static const bp_native_kernel KERNELS[] = {{{"count", 5}, count}, {{"fail", 4}, fail}};
static const bp_native_module MODULE = {.head = {1, sizeof(bp_native_module)},
    .isa = {"generic", 7}, .kernel_count = 2, .kernels = KERNELS};
BP_EXPORT int32_t bedplate_native_module_query(uint32_t wanted, const bp_native_module **out) {
    *out = &MODULE;
    return wanted == BP_ABI_MAJOR ? BP_OK : BP_VERSION;
}
"""


class Kept:
    """Something that a machine keeps beside its code."""


class Watched(Example):
    """The example machine, counting what it is asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.kept: weakref.ref[object] | None = None

    def devices(self) -> Sequence[ProvidedDevice]:
        self.asked += 1
        return super().devices()

    def load(self, index: int, source: Source) -> NativeCode:
        self.asked += 1
        code = super().load(index, source)
        kept = Kept()
        self.kept = weakref.ref(kept)
        return replace(code, keep=kept)


@pytest.fixture
def machine() -> Iterator[Watched]:
    """A machine registered under `example`."""
    made = Watched()
    register_provider("example", made, origin=ORIGIN)
    yield made
    unregister_provider("example")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Kernels as C text."""
    path = tmp_path / "kernels.c"
    path.write_text(KERNELS)
    path.chmod(0o644)
    return path


def test_a_launch_runs_no_python(machine: Watched, source: Path) -> None:
    """While this thread holds the interpreter's lock, compiled entries run and finish."""
    with open_device("example", trust_claims=True) as device, device.queue() as queue:
        kernel = device.load_native_module(source).kernel("count")
        out = device.upload(np.zeros(64, "u4"))
        view = out.view()
        batch = Batch()
        batch.launch(kernel, (64,), [out])
        queue.submit(batch)
        queue.synchronize()
        assert view.tolist() == list(range(1, 65))
        view[:] = 0
        asked = machine.asked
        queue.submit(batch)
        held = ctypes.PyDLL(None)
        for _ in range(200):
            held.usleep(10_000)  # with the lock
            if view[63] == 64:
                break
        assert view.tolist() == list(range(1, 65))
        assert machine.asked == asked
        queue.synchronize()


def test_a_failing_kernel_says_its_own_sentence(machine: Watched, source: Path) -> None:
    """As on any device."""
    with open_device("example", trust_claims=True) as device, device.queue() as queue:
        batch = Batch()
        batch.launch(device.load_native_module(source).kernel("fail"), (1,))
        queue.submit(batch)
        with pytest.raises(DeviceError, match="the machine stops at 7"):
            queue.synchronize()


def test_without_a_machine_it_is_unavailable() -> None:
    """The file is whole, and says what is missing; nothing is refused."""
    with pytest.raises(Unavailable, match="no machine is registered for example"):
        open_device("example")
    found = {finding.backend: finding.verdict for finding in doctor.examine()}
    assert found["example"] == "hidden"


def test_what_is_open_outlives_the_registration(machine: Watched, source: Path) -> None:
    """Loaded code runs on; new loads and opens are unavailable."""
    with open_device("example", trust_claims=True) as device, device.queue() as queue:
        module = device.load_native_module(source)
        unregister_provider("example")
        out = device.upload(np.zeros(4, "u4"))
        batch = Batch()
        batch.launch(module.kernel("count"), (4,), [out])
        queue.submit(batch)
        assert queue.download(out).tolist() == [1, 2, 3, 4]
        with pytest.raises(Unavailable, match="no machine"):
            device.load_native_module(source)
        with pytest.raises(Unavailable, match="no machine"):
            open_device("example", trust_claims=True)


def test_code_is_let_go_when_no_launch_can_know_it(machine: Watched, source: Path) -> None:
    """After the device that loaded it is closed, not before."""
    with open_device("example", trust_claims=True) as device:
        module = device.load_native_module(source)
        gc.collect()
        assert machine.kept is not None
        assert machine.kept() is not None
        del module
    gc.collect()
    assert machine.kept() is None


def test_a_machines_errors_keep_their_kind(machine: Watched, source: Path, tmp_path: Path) -> None:
    """Its typed errors come through with their sentence, a bug of its own as internal."""
    with open_device("example", trust_claims=True) as device:
        text = tmp_path / "text.so"
        text.write_text("no library")
        text.chmod(0o644)
        with pytest.raises(NotFound, match="cannot open the module"):
            device.load_native_module(text)
        source.write_text("not C")
        with pytest.raises(InvalidArgument, match="does not compile"):
            device.load_native_module(source)
        machine.load = lambda index, given: 1 // 0  # type: ignore[method-assign,assignment]
        with pytest.raises(HalError, match="ZeroDivisionError"):
            device.load_native_module(source)


@pytest.mark.parametrize("kernels", [{"": 4096}, {"zero": 0}])
def test_code_without_a_name_or_entry_is_refused(
    machine: Watched, source: Path, kernels: dict[str, int]
) -> None:
    """A null entry would be called by a thread that cannot say where it came from."""
    machine.load = lambda index, given: NativeCode(kernels)  # type: ignore[method-assign]
    with (
        open_device("example", trust_claims=True) as device,
        pytest.raises(HalError, match="no name or no entry"),
    ):
        device.load_native_module(source)


def test_a_name_is_registered_once(machine: Watched) -> None:
    """And a service of another name is none."""
    with pytest.raises(InvalidArgument, match="registered for example already"):
        register_provider("example", Example())
    assert inprocess.registered("example")
    for name in (b"bp.provider.1:other", b"bp.provider.2:example", b"example", b""):
        data = inprocess.ffi.new("char[]", name)
        text = inprocess.ffi.new("bp_text *", {"data": data, "length": len(name)})
        assert inprocess.HOST.service(inprocess.ffi.NULL, text) == inprocess.ffi.NULL


@pytest.mark.parametrize("text", ["", "x", "x=", "x=no.such:thing", "x=bedplate.hal.example:None_"])
def test_an_origin_that_makes_nothing_is_refused(text: str) -> None:
    """With its own text."""
    with pytest.raises(InvalidArgument, match="no machine at"):
        register_origin(text)


@pytest.mark.timeout(180)
@pytest.mark.parametrize("tier", ["quick", pytest.param("full", marks=pytest.mark.soak)])
def test_it_conforms(
    machine: Watched, tier: Tier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The suite, in workers that make the machine by its origin; its queues are the cpu's."""
    monkeypatch.setenv("BEDPLATE_DATA_DIR", str(tmp_path))
    (report,) = conform_backend("example", tier=tier)
    assert report.problems == []
    assert report.exit_code == 0
    wanted = {"module_native", "host_visible", "device_address", "timestamp", "dynamic_shared"}
    assert wanted | {"pin_host", "timeline_wait_host"} <= set(report.capabilities("certified"))


def test_the_command_line_registers_a_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--provider`, for people; without it exit 3."""
    monkeypatch.setenv("BEDPLATE_DATA_DIR", str(tmp_path))
    command = [sys.executable, "-m", "bedplate.cli", "hal", "conform", "example"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "no machine is registered" in done.stderr


def test_a_c_host_without_python_gets_a_reason() -> None:
    """The probe is one: the file answers, and has no devices."""
    folder = native_library_dir()
    program = [folder / "bedplate_hal_probe", folder / "hal.d" / "bedplate_hal_example.so"]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert "status=-4" in done.stdout
    assert "no machine is registered for example in this process" in done.stdout


def test_unknown_kinds_are_unsupported(machine: Watched) -> None:
    """A kind that the machine does not take."""
    with pytest.raises(Unsupported, match="not ptx"):
        machine.load(0, Source("ptx", None, b""))


@pytest.mark.parametrize("function", ["len", "object"])
def test_an_origin_that_makes_no_machine_is_refused(function: str) -> None:
    """It raises, or what it gives is something else."""
    with pytest.raises(InvalidArgument, match="machine"):
        register_origin(f"example=builtins:{function}")
    assert not inprocess.registered("example")


class Small(Example):
    """A machine with a mebibyte of memory."""

    def devices(self) -> Sequence[ProvidedDevice]:
        return [replace(one, memory_bytes=1 << 20) for one in super().devices()]


def test_callers_at_once_share_the_memory_there_is() -> None:
    """Two that each fit alone do not both get theirs, and the account holds afterwards."""
    register_provider("example", Small())
    try:
        with open_device("example", trust_claims=True) as device:
            for _ in range(200):
                got = together(lambda: device.allocate(600 << 10), 4)
                assert len(got) == 1
                got[0].release()
            whole = device.allocate(1 << 20)
            with pytest.raises(OutOfDeviceMemory):
                device.allocate(1)
            assert whole.bytes == 1 << 20
    finally:
        unregister_provider("example")


def together(ask: Callable[[], Buffer], count: int) -> list[Buffer]:
    """What threads that ask at the same time are given."""
    got: list[Buffer] = []
    ready = threading.Barrier(count)

    def one() -> None:
        ready.wait()
        with contextlib.suppress(OutOfDeviceMemory):
            got.append(ask())

    threads = [threading.Thread(target=one) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return got
