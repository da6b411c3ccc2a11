"""Opening, describing and closing devices."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.hal import foreign

from bedplate.hal.api import (
    BackendMissing,
    Batch,
    Device,
    HalError,
    InvalidArgument,
    NotFound,
    OutOfDeviceMemory,
    Unavailable,
    Unsupported,
    open_device,
    parse_spec,
)
from bedplate.hal.device import read_claims, read_info
from bedplate.hal.external import import_memory
from bedplate.hal.native import ffi
from bedplate.hal.open import load


def test_info_says_what_the_device_is(device: Device) -> None:
    """Id, name, memory and the facts that others decide by are there."""
    info = device.info
    assert (device.id, info.backend, info.index) == ("cpu:0", "cpu", 0)
    assert info.memory_bytes > 1 << 28
    assert info.properties["cpu.isa"] in {"generic", "avx2", "avx512", "avx512_bf16"}
    assert int(info.properties["cpu.threads"]) >= 1
    assert {"host_visible", "module_native", "ops", "timestamp"} <= info.capabilities
    assert info.limits["dynamic_shared"] >= 1 << 16
    assert set(info.limits) == {"dynamic_shared"}  # what is there or not has no number


def test_an_upload_comes_back(device: Device) -> None:
    """Elements, shape and dtype survive the way to the device and back."""
    array = np.arange(24, dtype="i4").reshape(2, 3, 4)
    back = device.download(device.upload(array[:, ::-1]))
    assert back.dtype == array.dtype
    np.testing.assert_array_equal(back, array[:, ::-1])


def test_an_empty_array_is_fine(device: Device) -> None:
    """A tensor without elements has a shape and nothing else."""
    back = device.download(device.upload(np.empty((0, 3), "f4")))
    assert back.shape == (0, 3)


def test_every_open_is_a_device_of_its_own(device: Device) -> None:
    """Handles of one device are not known to another."""
    buffer = device.allocate(64)
    with open_device("cpu", trust_claims=True) as other, pytest.raises(InvalidArgument):
        other.release_memory(buffer.handle)


def test_close_gives_everything_back_and_twice_is_fine(device: Device) -> None:
    """After close nothing works, and nothing crashes, whatever is still held."""
    buffer, queue, timeline = device.allocate(64), device.queue(), device.timeline()
    device.close()
    device.close()
    buffer.release()
    queue.destroy()
    timeline.destroy()
    with pytest.raises(InvalidArgument, match="closed"):
        device.allocate(64)
    with pytest.raises(InvalidArgument, match="released"):
        buffer.view("u1")


def test_a_view_outlives_its_device() -> None:
    """A numpy view keeps the memory, and the native close waits for the last view."""
    with open_device("cpu", trust_claims=True) as device:
        view = device.upload(np.arange(5, dtype="i4")).view()[1:]
        handle = device.handle
    assert device.closed
    assert is_open(device, handle)
    assert view.tolist() == [1, 2, 3, 4]
    del view
    gc.collect()
    assert not is_open(device, handle)


def is_open(device: Device, handle: int) -> bool:
    """Whether the native device is there still."""
    return bool(device.api.timeline.create(handle, 0, ffi.new("uint64_t *")) == 0)


def test_memory_is_counted(device: Device) -> None:
    """More than the device has is refused in words, and the device goes on."""
    with pytest.raises(OutOfDeviceMemory, match="were asked for"):
        device.allocate(device.info.memory_bytes + 1)
    assert device.allocate(64).bytes == 64


def test_the_loaders_own_sentence_wins(device: Device) -> None:
    """A function that the backend lacks is told as that, not by what the backend said last."""
    with pytest.raises(OutOfDeviceMemory):
        device.allocate(device.info.memory_bytes + 1)
    reserve, out = device.api.mem.reserve, ffi.new("uint64_t *")
    with pytest.raises(Unsupported, match=r"mem\.reserve"):
        device.check(reserve(device.handle, 4096, 4096, out))


@pytest.mark.parametrize("bytes", [0, -1, 1 << 63])
def test_a_size_that_is_none_is_refused(device: Device, bytes: int) -> None:
    """0, negative and beyond 63 bits."""
    with pytest.raises(InvalidArgument):
        device.allocate(bytes)


@pytest.mark.parametrize("alignment", [64, 4096, 1 << 21])
def test_alignment_is_kept(device: Device, alignment: int) -> None:
    """The first byte lies where it was asked for."""
    view = device.allocate(100, alignment=alignment).view("u1")
    assert view.__array_interface__["data"][0] % alignment == 0


@pytest.mark.parametrize("alignment", [3, 1 << 22])
def test_an_alignment_that_cannot_be_is_refused(device: Device, alignment: int) -> None:
    """Not a power of two, or larger than a huge page."""
    with pytest.raises(InvalidArgument, match="alignment"):
        device.allocate(100, alignment=alignment)


def test_large_memory_is_mapped(device: Device) -> None:
    """Memory above the mapping threshold is whole and writable at both ends."""
    view = device.allocate((1 << 21) + 3).view("u1")
    view[0], view[-1] = 1, 2
    assert (view[0], view[-1]) == (1, 2)


@pytest.mark.parametrize(
    ("spec", "backend", "index"),
    [("cpu", "cpu", 0), ("cpu:3", "cpu", 3), ("/a/b.json:1", "/a/b.json", 1)],
)
def test_a_spec_names_backend_and_index(spec: str, backend: str, index: int) -> None:
    """Name or path, with an optional index."""
    parsed = parse_spec(spec)
    assert (parsed.backend, parsed.index) == (backend, index)


@pytest.mark.parametrize(
    "spec", ["", ":0", "cpu:x", "../cpu", "a b", "cpu:\u00b2", "cpu:" + "9" * 5000]
)
def test_a_spec_that_is_none_is_refused(spec: str) -> None:
    """Anything else is an error that shows the form."""
    with pytest.raises(InvalidArgument, match="is not a device"):
        parse_spec(spec)


def test_a_name_that_nobody_has_lists_the_names() -> None:
    """The remedy of a missing backend names those that are there."""
    with pytest.raises(BackendMissing) as caught:
        open_device("cpo")
    assert "cpu" in (caught.value.remedy or "")
    assert "liar" not in (caught.value.remedy or "")


def test_an_index_that_is_not_there() -> None:
    """The cpu backend has one device."""
    with pytest.raises(NotFound, match="no device 7"):
        open_device("cpu:7")


def test_isa_can_be_lowered(monkeypatch: pytest.MonkeyPatch) -> None:
    """BEDPLATE_CPU_ISA=generic is what the device then says."""
    monkeypatch.setenv("BEDPLATE_CPU_ISA", "generic")
    with open_device("cpu", trust_claims=True) as device:
        assert device.info.properties["cpu.isa"] == "generic"


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("BEDPLATE_CPU_ISA", "sse9", "is not one of"),
        ("BEDPLATE_HAL_CPU_THREADS", "0", "is not 1 to 1024"),
        ("BEDPLATE_HAL_CPU_THREADS", "two", "is not 1 to 1024"),
    ],
)
def test_a_wrong_variable_is_an_environment_error(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, words: str
) -> None:
    """The sentence names the variable and its value; the exit code is 3."""
    monkeypatch.setenv(variable, value)
    with pytest.raises(Unavailable, match=words) as caught:
        open_device("cpu")
    assert caught.value.exit_code == 3
    assert value in caught.value.message


def test_threads_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """BEDPLATE_HAL_CPU_THREADS is what the device then says and uses."""
    monkeypatch.setenv("BEDPLATE_HAL_CPU_THREADS", "3")
    with open_device("cpu", trust_claims=True) as device:
        assert device.info.properties["cpu.threads"] == "3"


def test_a_closed_device_refuses_everything_while_a_view_lives(conform_module: Path) -> None:
    """The view keeps the memory, and nothing else works."""
    device = open_device("cpu", trust_claims=True)
    queue, timeline, tensor = device.queue(), device.timeline(), device.upload(np.ones(4, "f4"))
    view = tensor.view()
    device.close()
    calls: list[Callable[[], object]] = [
        lambda: device.allocate(16),
        lambda: device.timeline(),
        lambda: device.queue(),
        lambda: device.load_native_module(conform_module),
        lambda: queue.submit(Batch()),
        lambda: queue.synchronize(1000),
        lambda: timeline.signal(1),
        lambda: device.from_dlpack(np.ones(4, "f4")),
    ]
    for call in calls:
        with pytest.raises(InvalidArgument, match="closed"):
            call()
    assert view.tolist() == [1.0] * 4


def test_claims_without_end_are_refused(tmp_path: Path) -> None:
    """A backend that never stops counting does not take our memory."""
    body = """
    static int32_t properties(uint32_t index, bp_device_properties *out) { return 0; }
    static int32_t claims(uint32_t i, bp_capability *out, uint32_t room, uint32_t *count) {
        *count = room + 1;
        return 0;
    }
    QUERY { core.properties = properties; core.capabilities = claims; *out = &api; return 0; }
    """
    backend = load(str(foreign.register(foreign.build(tmp_path, "endless", body), "endless")))
    with pytest.raises(HalError, match="4097 capabilities"):
        read_info(backend, 0)


def test_as_many_claims_as_there_is_room_for_are_read(tmp_path: Path) -> None:
    """4,096 are not too many; numbers without a name keep their number."""
    body = """
    static int32_t properties(uint32_t index, bp_device_properties *out) { return 0; }
    static int32_t claims(uint32_t i, bp_capability *out, uint32_t room, uint32_t *count) {
        for (uint32_t k = 0; k < room; k++)
            out[k] = (bp_capability){.id = 100000 + k, .value = k};
        *count = room;
        return 0;
    }
    QUERY { core.properties = properties; core.capabilities = claims; *out = &api; return 0; }
    """
    backend = load(str(foreign.register(foreign.build(tmp_path, "full", body), "full")))
    claims = read_claims(backend, 0)
    assert len(claims) == 4096
    assert claims["cap_104095"] == 4095


def test_dimensions_of_one_are_written_and_read(device: Device) -> None:
    """Only a dimension of none has nothing to copy, the first way and by bytes."""
    for shape in ((1, 3), (3, 1), (1,)):
        array = np.arange(np.prod(shape), dtype="f4").reshape(shape) + 1
        tensor = device.upload(array)
        np.testing.assert_array_equal(device.download(tensor), array)
        np.testing.assert_array_equal(device.read_bytes(tensor.range), array.view("u1").ravel())


def test_bytes_read_are_a_copy(device: Device) -> None:
    """What is written later does not change them."""
    tensor = device.upload(np.ones(4, "u1"))
    before = device.read_bytes(tensor.range)
    device.write(tensor, np.zeros(4, "u1"))
    assert before.tolist() == [1, 1, 1, 1]


def test_borrowed_memory_stays_its_owners(device: Device) -> None:
    """A buffer over a handle has its bytes, and giving the buffer back gives nothing back."""
    owner = device.allocate(256)
    lent = device.borrow(owner.handle)
    assert (lent.handle, lent.bytes, lent.borrowed) == (owner.handle, 256, True)
    lent.view("u1")[:] = 7
    lent.release()
    assert owner.view("u1").tolist() == [7] * 256
    with pytest.raises(InvalidArgument):
        device.borrow(owner.handle + 1)


def test_the_native_table_is_the_backends(device: Device) -> None:
    """Native code above the HAL finds the size of the table where the ABI has it."""
    api = ffi.cast("bp_api *", device.native_api)
    assert api == device.api
    assert api.head.struct_size == device.api.head.struct_size > 0


def test_a_closed_device_has_no_handle_and_ends_once(device: Device) -> None:
    """Its handle is 0, which no table takes."""
    device.close()
    assert (device.handle, device.closed) == (0, True)
    device.close()


def test_a_module_of_an_image_is_a_module() -> None:
    """`load_module` gives what it loaded."""
    with open_device("opencl", trust_claims=True) as device:
        source = b"kernel void nothing(global float *x) { x[0] = 1; }"
        module = device.load_module("opencl_c", source, "one")
        assert module.kernel("nothing").name == "nothing"


@pytest.mark.parametrize("descriptor", [-1, -7])
def test_a_descriptor_that_is_none_is_refused_here(device: Device, descriptor: int) -> None:
    """And 0 is one: the device is asked, which says what it cannot do."""
    with pytest.raises(InvalidArgument, match=f"descriptor {descriptor}"):
        import_memory(device, descriptor, 16)
    with pytest.raises(Unsupported):
        import_memory(device, 0, 16)
    with pytest.raises(InvalidArgument, match="0 bytes"):
        import_memory(device, 0, 0)
