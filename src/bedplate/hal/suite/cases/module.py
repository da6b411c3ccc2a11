"""module_native: what only native code shows, as packed arguments and faults; see launch.py."""

from __future__ import annotations

import tempfile

from bedplate.hal import abi
from bedplate.hal.batch import F32, U32, U64, Argument, Batch
from bedplate.hal.native import ffi, new
from bedplate.hal.suite.registry import case
from bedplate.hal.suite.subject import Subject, expect

BAD = abi.BP_INVALID_ARGUMENT
FAULT = abi.BP_LAUNCH_FAULT


def load(s: Subject, path: str, kind: int = abi.BP_MODULE_NATIVE) -> tuple[int, int]:
    """Status and handle of a raw module.load."""
    raw, out = ffi.new("char[]", path.encode()), ffi.new("uint64_t *")
    source = new("bp_module_source", kind=kind)
    source.path.data, source.path.length = raw, len(raw) - 1
    return int(s.api.module.load(s.handle, source, out)), int(out[0])


@case("module_native", "positive")
def arguments_are_packed_in_order(s: Subject) -> None:
    """Addresses take 8 bytes, values their own alignment, memory 0 a null address."""
    out = s.memory(256)
    batch = Batch()
    values: list[Argument] = [
        out,
        U32(0x04030201),
        U64(0x1122334455667788),
        b"\x09",
        None,
        b"abc",
        F32(1.0),
    ]
    batch.launch(s.kernel("echo"), (1,), values)
    s.completes(batch, "a launch")
    raw = s.content(out)
    packed = raw[8 : 8 + int.from_bytes(raw[:8], "little")]
    wanted = b"\x01\x02\x03\x04" + bytes(4) + bytes.fromhex("8877665544332211") + b"\x09"
    wanted += bytes(7) + bytes(8) + b"abc" + bytes(1) + bytes.fromhex("0000803f")
    expect(packed[8:] == wanted, f"arguments are packed as {packed[8:].hex()}")


@case("module_native", "positive")
def a_kernel_is_told_its_launch(s: Subject) -> None:
    """Grid, block and the size of the struct."""
    out = s.memory(48)
    batch = Batch()
    batch.launch(s.kernel("describe"), (2, 3), [out], block=(4, 5))
    s.completes(batch, "a launch")
    told = s.words(out, "u4")
    expect(told[:6] == [2, 3, 1, 4, 5, 1], f"a launch of (2,3) x (4,5) says {told[:6]}")
    known = abi.LAYOUT["bp_native_launch"][1]["reserved"]
    expect(told[7] >= known, f"bp_native_launch has {told[7]} bytes, at least {known} are asked")
    expect(told[11] == 1, f"bp_native_launch has the version {told[11]}")


@case("module_native", "positive", catches=["silent_fault"])
def a_fault_is_reported(s: Subject) -> None:
    """In the first, a middle and the last block."""
    for block in (0, 31, 99):
        batch = Batch()
        batch.launch(s.kernel("fail_at"), (100,), [U64(block)])
        status, text = s.run(batch)
        expect(status == FAULT, f"a kernel that failed in block {block} gave status {status}")
        expect(f"block {block} was told to fail" in text, f"the kernel's words are lost: {text}")


@case("module_native", "positive", catches=["lost_tag"])
def a_fault_names_its_batch(s: Subject) -> None:
    """The caller's tag is in the text."""
    batch = Batch()
    batch.launch(s.kernel("fail_at"), (1,), [U64(0)])
    _, text = s.run(batch, tag=918273645)
    expect("918273645" in text, f"the tag is not in the text: {text}")


@case("module_native", "positive")
def commands_behind_a_fault_do_not_run(s: Subject) -> None:
    """The batch ends where it failed."""
    buffer = s.memory(64)
    batch = Batch()
    batch.launch(s.kernel("fail_at"), (1,), [U64(0)])
    batch.fill(buffer, 0x01010101)
    status, _ = s.run(batch)
    expect(status == FAULT, f"a failed batch gave status {status}")
    expect(s.content(buffer) == bytes(64), "a command behind a fault ran")


@case("module_native", "positive", tier="full")
def positive_numbers_are_faults_too(s: Subject) -> None:
    """A kernel that returns 7 has failed."""
    batch = Batch()
    batch.launch(s.kernel("give_status"), (1,), [U32(7)])
    status, _ = s.run(batch)
    expect(status < 0, f"a kernel that returned 7 gave status {status}")


@case("module_native", "positive", catches=["lost_device"])
def a_lost_device_says_so_everywhere(s: Subject) -> None:
    """Its timelines are poisoned, new work is refused, another open works."""
    bystander = s.timeline()
    batch = Batch()
    batch.launch(s.kernel("give_status"), (1,), [U32((1 << 32) - 8)])
    status, _ = s.run(batch)
    lost = abi.BP_DEVICE_LOST
    expect(status == lost, f"a kernel that lost the device gave status {status}")
    s.refuses(s.value(bystander)[0], lost, "query of a timeline of a lost device")
    out = ffi.new("uint64_t *")
    s.refuses(s.api.timeline.create(s.handle, 0, out), lost, "timeline.create when lost")
    info = new("bp_memory_info", bytes=64)
    s.refuses(s.api.mem.create(s.handle, info, out), lost, "mem.create when lost")
    other = Subject(s.backend, s.index)
    try:
        other.completes(Batch(), "an empty batch on another open")
    finally:
        other.close()


@case("module_native", "negative")
def files_that_are_no_modules_are_refused(s: Subject) -> None:
    """Missing, not a library, a library without the symbol, a bare name."""
    wanted = (abi.BP_NOT_FOUND, BAD, abi.BP_UNAVAILABLE)
    with tempfile.NamedTemporaryFile(suffix=".so") as file:
        file.write(b"no library")
        file.flush()
        s.refuses(load(s, file.name)[0], wanted, "loading a text file")
    s.refuses(load(s, file.name)[0], wanted, "loading a file that is gone")
    s.refuses(load(s, str(s.backend.path))[0], wanted, "loading a backend as a module")
    for name in ("bedplate_hal_conform.so", "./x.so", ""):
        s.refuses(load(s, name)[0], BAD, f"loading the bare name {name!r}")


@case("module_native", "absent")
def native_modules_are_unsupported(s: Subject) -> None:
    """load says so."""
    status = load(s, str(s.code_path("native")))[0]
    s.refuses(status, abi.BP_UNSUPPORTED, "loading a native module")


@case("dynamic_shared", "positive", needs=["module_native"])
def shared_memory_is_aligned(s: Subject) -> None:
    """To 64 bytes, and null when none was asked."""
    out = s.memory(48)
    for size, wanted in ((100, [100, 1, 0]), (0, [0, 0, 0])):
        batch = Batch()
        batch.launch(s.kernel("describe"), (1,), [out], shared_bytes=size)
        s.completes(batch, "a launch")
        told = s.words(out, "u4")
        expect([told[6], told[8], told[9]] == wanted, f"{size} bytes of shared memory: {told}")
