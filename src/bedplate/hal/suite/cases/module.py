"""module_native, and what shows in a launch: dynamic_shared, clusters."""

from __future__ import annotations

import os
import tempfile
from typing import Any

from bedplate.hal import abi
from bedplate.hal.batch import F32, U32, U64, Argument, Batch
from bedplate.hal.native import ffi, new, read_text, text
from bedplate.hal.suite import structs
from bedplate.hal.suite.cases.queue import submit_command
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


def loaded(s: Subject) -> int:
    """A handle of the suite's module."""
    status, module = load(s, str(s.module_path))
    s.works(status, "module.load")
    return module


def find(s: Subject, module: int, name: str) -> tuple[int, int]:
    """Status and handle of a raw module.kernel."""
    wanted, keep = text(name)
    out = ffi.new("uint64_t *")
    status = int(s.api.module.kernel(s.handle, module, wanted, out))
    del keep
    return status, int(out[0])


@case("module_native", "positive")
def a_module_lists_its_kernels(s: Subject) -> None:
    """info names the instruction set and every kernel, and each is found by its name."""
    module = loaded(s)
    info = new("bp_module_info")
    s.works(s.api.module.info(s.handle, module, info), "module.info")
    names = [read_text(info.kernels[i]) for i in range(info.kernel_count)]
    expect(read_text(info.isa) == "generic", f"the module is built for {read_text(info.isa)!r}")
    expect({"count_blocks", "echo", "fail_at"} <= set(names), f"the module has only {names}")
    for name in names:
        status, kernel = find(s, module, name)
        s.works(status, f"module.kernel of {name}")
        told = new("bp_kernel_info")
        s.works(s.api.module.kernel_info(s.handle, kernel, told), "module.kernel_info")
        expect(read_text(told.name) == name, f"{name} says it is {read_text(told.name)}")


@case("module_native", "positive", catches=["skipped_block", "repeated_block"])
def every_block_runs_once(s: Subject) -> None:
    """Grids of one to three dimensions, from one block to many."""
    kernel = s.kernel("count_blocks")
    for grid in ((1,), (2,), (3, 5), (7, 3, 11), (1000,)):
        blocks = 1
        for size in grid:
            blocks *= size
        out = s.memory(4 * blocks)
        batch = Batch()
        for _ in range(3):
            batch.launch(kernel, grid, [out])
        s.completes(batch, "three launches")
        wrong = [i for i, n in enumerate(out.view("u4").tolist()) if n != 3]
        expect(not wrong, f"blocks {wrong[:3]} of {grid} did not run three times")


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
    told = out.view("u4").tolist()
    expect(told[:6] == [2, 3, 1, 4, 5, 1], f"a launch of (2,3) x (4,5) says {told[:6]}")
    known = abi.LAYOUT["bp_native_launch"][1]["reserved"]
    expect(told[7] >= known, f"bp_native_launch has {told[7]} bytes, at least {known} are asked")
    expect(told[11] == 1, f"bp_native_launch has the version {told[11]}")


@case("module_native", "positive")
def a_kernel_computes(s: Subject) -> None:
    """Addresses and values together give numbers, exactly."""
    x, y = s.memory(4000), s.memory(4000)
    x.view("f4")[:] = range(1000)
    batch = Batch()
    batch.launch(s.kernel("scale"), (16,), [y, x, F32(0.5), U32(1000)])
    s.completes(batch, "a launch")
    wrong = [i for i, n in enumerate(y.view("f4").tolist()) if n != 0.5 * i]
    expect(not wrong, f"elements {wrong[:3]} are wrong")


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
def grids_of_nothing_are_refused(s: Subject) -> None:
    """A zero in grid or block, and products that overflow."""
    most = (1 << 32) - 1
    for grid, block in (
        ((0, 1, 1), (1, 1, 1)),
        ((1, 1, 0), (1, 1, 1)),
        ((1, 1, 1), (1, 0, 1)),
        ((most, most, most), (1, 1, 1)),
        ((1, 1, 1), (most, most, 1)),
    ):
        batch = Batch()
        batch.launch(s.kernel("nothing"), (1,))
        batch._commands[0].grid = list(grid)
        batch._commands[0].block = list(block)
        s.refused_batch(batch, BAD, f"a launch of {grid} x {block}")


@case("module_native", "negative")
def wrong_arguments_are_refused(s: Subject) -> None:
    """Unknown kind, bytes without data, none where some are counted, too many, stale memory."""
    out = s.memory(256)
    for what, place, name, value in (
        ("an unknown kind", 0, "kind", 9),
        ("bytes without data", 1, "data", ffi.NULL),
        ("bytes of length 0", 1, "bytes", 0),
        ("a range past the end", 0, "range.offset", 257),
        ("stale memory", 0, "range.memory", 1 << 40),
        ("no array", None, "arguments", ffi.NULL),
        ("too many", None, "argument_count", 1 << 30),
    ):
        batch = Batch()
        batch.launch(s.kernel("echo"), (1,), [out, U32(1)])
        target = batch._commands[0] if place is None else batch._keep[-2][place]
        *outer, last = name.split(".")
        setattr(getattr(target, outer[0]) if outer else target, last, value)
        s.refused_batch(batch, BAD, f"a launch with {what}")


@case("module_native", "negative")
def an_unknown_kernel_is_not_found(s: Subject) -> None:
    """A wrong name, an empty one, a stale handle in a launch."""
    module = loaded(s)
    for name in ("no_such_kernel", "", "ech", "echoo"):
        wanted = (abi.BP_NOT_FOUND, BAD)
        s.refuses(find(s, module, name)[0], wanted, f"module.kernel of {name!r}")
    batch = Batch()
    batch.launch(s.kernel("nothing"), (1,))
    batch._commands[0].kernel = module
    s.refused_batch(batch, BAD, "a launch of a module")


@case("module_native", "negative")
def unloading_makes_kernels_stale(s: Subject) -> None:
    """Launch, kernel_info, kernel and a second unload are refused."""
    kernel = s.kernel("nothing")
    module = kernel.module.handle
    batch = Batch()
    batch.launch(kernel, (1,))
    s.works(s.api.module.unload(s.handle, module), "module.unload")
    s.refused_batch(batch, BAD, "a launch of an unloaded kernel")
    info = new("bp_kernel_info")
    status = s.api.module.kernel_info(s.handle, kernel.handle, info)
    s.refuses(status, BAD, "kernel_info of an unloaded kernel")
    s.refuses(find(s, module, "nothing")[0], BAD, "a kernel of an unloaded module")
    s.refuses(s.api.module.unload(s.handle, module), BAD, "unloading twice")


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
    status = load(s, str(s.module_path))[0]
    s.refuses(status, abi.BP_UNSUPPORTED, "loading a native module")


@case("dynamic_shared", "positive", needs=["module_native"])
def shared_memory_is_whole(s: Subject) -> None:
    """Every block may use all of it, up to the limit, and sees only its own writes."""
    most = s.info.limits.get("dynamic_shared", 1)
    for size in (4, 100, most):
        out = s.memory(4 * 40)
        batch = Batch()
        batch.launch(s.kernel("use_shared"), (40,), [out], shared_bytes=size)
        s.completes(batch, f"a launch with {size} bytes")
        told = set(out.view("u4").tolist())
        expect(told == {size // 4}, f"with {size} bytes, blocks kept {told} words")


@case("dynamic_shared", "positive", needs=["module_native"])
def shared_memory_is_aligned(s: Subject) -> None:
    """To 64 bytes, and null when none was asked."""
    out = s.memory(48)
    for size, wanted in ((100, [100, 1, 0]), (0, [0, 0, 0])):
        batch = Batch()
        batch.launch(s.kernel("describe"), (1,), [out], shared_bytes=size)
        s.completes(batch, "a launch")
        told = out.view("u4").tolist()
        expect([told[6], told[8], told[9]] == wanted, f"{size} bytes of shared memory: {told}")


@case("dynamic_shared", "negative", needs=["module_native"])
def more_than_the_limit_is_refused(s: Subject) -> None:
    """One byte more, and the largest number."""
    for size in (s.info.limits.get("dynamic_shared", 1) + 1, (1 << 32) - 1):
        batch = Batch()
        batch.launch(s.kernel("nothing"), (1,), shared_bytes=size)
        s.refused_batch(batch, BAD, f"a launch with {size} bytes of shared memory")


@case("clusters", "positive", catches=["false_claim"], needs=["module_native"])
def a_cluster_of_two_runs(s: Subject) -> None:
    """Every block once."""
    out = s.memory(16)
    batch = Batch()
    batch.launch(s.kernel("count_blocks"), (4,), [out])
    batch._commands[0].cluster = [2, 1, 1]
    status = s.submit(s.queue(), batch)
    s.works(status, "submitting a launch in clusters of two")
    s.completes(batch, "a launch in clusters of two")


@case("clusters", "absent", needs=["module_native"])
def clusters_are_unsupported(s: Subject) -> None:
    """A launch that asks for them is refused."""
    batch = Batch()
    batch.launch(s.kernel("nothing"), (4,))
    batch._commands[0].cluster = [2, 1, 1]
    s.refused_batch(batch, abi.BP_UNSUPPORTED, "a launch in clusters")


def _source(s: Subject) -> tuple[Any, Any]:
    raw = ffi.new("char[]", os.fsencode(s.module_path))
    source = new("bp_module_source", kind=abi.BP_MODULE_NATIVE)
    source.path.data, source.path.length = raw, len(raw) - 1
    return source, raw


def _load(s: Subject, source: Any) -> int:
    return int(s.api.module.load(s.handle, source, ffi.new("uint64_t *")))


def _launch(s: Subject) -> tuple[Any, Any]:
    batch = Batch()
    batch.launch(s.kernel("nothing"), (1,))
    return batch._commands[0], batch


structs.add(structs.StructRule("module_native", "bp_module_source", _source, _load))
structs.add(structs.StructRule("module_native", "bp_launch_command", _launch, submit_command))
