"""Launches, once for each kind of code: module_native, module_opencl_c, module_ptx.

A body takes its kernels from the kind that it is registered for. The kernels
are the same in every kind, see native/hal/conform.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bedplate.hal import abi
from bedplate.hal.batch import F32, U32, U64, Argument, Batch
from bedplate.hal.buffer import Range
from bedplate.hal.native import ffi, new, read_text, text
from bedplate.hal.suite import structs
from bedplate.hal.suite.cases.queue import submit_command
from bedplate.hal.suite.registry import Body, Case, Polarity, Tier, register
from bedplate.hal.suite.subject import CODE, Subject, abi_kind, expect

BAD = abi.BP_INVALID_ARGUMENT
THREADS = 64
"""Threads of a block where each takes one element, in every kind of code."""


def code_case(
    polarity: Polarity,
    *,
    tier: Tier = "quick",
    catches: Sequence[str] = (),
    kinds: Sequence[str] = tuple(CODE),
) -> Callable[[Body], Body]:
    """Register a function as the case `module_<kind>.<its name>` of every kind of code."""

    def decorate(body: Body) -> Body:
        for kind in kinds:
            register(
                Case(
                    name=f"module_{kind}.{body.__name__}",
                    capability=f"module_{kind}",
                    polarity=polarity,
                    tier=tier,
                    body=_with_code(body, kind),
                    doc=(body.__doc__ or "").strip(),
                    catches=tuple(catches) if kind == "native" else (),
                )
            )
        return body

    return decorate


def _with_code(body: Body, kind: str) -> Body:
    def run(s: Subject) -> None:
        s.use_code(kind)
        body(s)

    return run


def loaded(s: Subject) -> int:
    """A handle of the suite's module."""
    source, keep = s.code_source()
    out = ffi.new("uint64_t *")
    s.works(s.api.module.load(s.handle, source, out), "module.load")
    del keep
    return int(out[0])


def find(s: Subject, module: int, name: str) -> tuple[int, int]:
    """Status and handle of a raw module.kernel."""
    wanted, keep = text(name)
    out = ffi.new("uint64_t *")
    status = int(s.api.module.kernel(s.handle, module, wanted, out))
    del keep
    return status, int(out[0])


@code_case("positive")
def a_module_lists_its_kernels(s: Subject) -> None:
    """info names what it was built for and every kernel, and each is found by its name."""
    module = loaded(s)
    info = new("bp_module_info")
    s.works(s.api.module.info(s.handle, module, info), "module.info")
    names = [read_text(info.kernels[i]) for i in range(info.kernel_count)]
    expect(read_text(info.isa), "the module does not say what it was built for")
    expect({"count_blocks", "scale", "store"} <= set(names), f"the module has only {names}")
    for name in names:
        status, kernel = find(s, module, name)
        s.works(status, f"module.kernel of {name}")
        told = new("bp_kernel_info")
        s.works(s.api.module.kernel_info(s.handle, kernel, told), "module.kernel_info")
        expect(read_text(told.name) == name, f"{name} says it is {read_text(told.name)}")
        expect(told.max_threads_per_block > 0, f"{name} says it takes no threads")


@code_case("positive", catches=["skipped_block", "repeated_block"])
def every_block_runs_once(s: Subject) -> None:
    """Grids of one to three dimensions, from one block to many; one launch a batch to five."""
    kernel = s.kernel("count_blocks")
    for times, grid in enumerate(((1,), (2,), (3, 5), (7, 3, 11), (1000,)), 1):
        blocks = 1
        for size in grid:
            blocks *= size
        out = s.memory(4 * blocks)
        batch = Batch()
        for _ in range(times):
            batch.launch(kernel, grid, [out])
        s.completes(batch, f"{times} launches")
        wrong = [i for i, n in enumerate(s.words(out, "u4")) if n != times]
        expect(not wrong, f"blocks {wrong[:3]} of {grid} did not run {times} times")


@code_case("positive")
def every_thread_runs_once(s: Subject) -> None:
    """Blocks of several sizes, up to the most that the kernel says it takes."""
    kernel, most = s.kernel("count_threads"), new("bp_kernel_info")
    s.works(s.api.module.kernel_info(s.handle, kernel.handle, most), "module.kernel_info")
    for block, grid in ((1, 5), (3, 7), (64, 3), (int(most.max_threads_per_block), 2)):
        out = s.memory(4 * block * grid)
        batch = Batch()
        batch.launch(kernel, (grid,), [out], block=(block,))
        s.completes(batch, f"a launch of {grid} x {block}")
        wrong = [i for i, n in enumerate(s.words(out, "u4")) if n != 1]
        expect(not wrong, f"threads {wrong[:3]} of {grid} x {block} did not run once")


@code_case("positive")
def a_kernel_knows_its_shape(s: Subject) -> None:
    """Grid and block, in all three dimensions."""
    out = s.memory(24)
    batch = Batch()
    batch.launch(s.kernel("shape"), (2, 3, 4), [out], block=(4, 2, 3))
    s.completes(batch, "a launch")
    told = s.words(out, "u4")
    expect(told == [2, 3, 4, 4, 2, 3], f"a launch of (2,3,4) x (4,2,3) says {told}")


@code_case("positive")
def a_kernel_computes(s: Subject) -> None:
    """Addresses and values together give numbers, exactly."""
    x, y = s.memory(4000), s.memory(4000)
    s.put(x, np.arange(1000, dtype="f4"))
    batch = Batch()
    batch.launch(s.kernel("scale"), (16,), [y, x, F32(0.5), U32(1000)], block=(THREADS,))
    s.completes(batch, "a launch")
    wrong = [i for i, n in enumerate(s.words(y, "f4")) if n != 0.5 * i]
    expect(not wrong, f"elements {wrong[:3]} are wrong")


@code_case("positive")
def an_argument_may_start_inside(s: Subject) -> None:
    """At any multiple of 1024 bytes, where the smallest devices are aligned; others see nothing."""
    out = s.memory(8192, 0xEE)
    batch = Batch()
    for at in (1024, 4096, 7168):
        batch.launch(s.kernel("store"), (1,), [Range(out, at, 4), U32(at)])
    s.completes(batch, "launches with offsets")
    wanted = [0xEEEEEEEE] * 2048
    for at in (1024, 4096, 7168):
        wanted[at // 4] = at
    wrong = [4 * i for i, n in enumerate(s.words(out, "u4")) if n != wanted[i]]
    expect(not wrong, f"the words at {wrong[:3]} are wrong")


@code_case("positive")
def an_odd_start_works_or_is_refused(s: Subject) -> None:
    """4 bytes in: the word there is written, or the launch is refused with the alignment."""
    out = s.memory(64, 0xEE)
    batch = Batch()
    batch.launch(s.kernel("store"), (1,), [Range(out, 4, 4), U32(7)])
    queue, done = s.queue(), s.timeline()
    status = s.submit(queue, batch, signal=[(done, 1)])
    if status == abi.BP_OK:
        s.works(s.wait(done, 1), "waiting for a launch")
        expect(s.words(out, "u4") == [0xEEEEEEEE, 7, *[0xEEEEEEEE] * 14], "it wrote elsewhere")
    else:
        said = s.refuses(status, (abi.BP_UNSUPPORTED, BAD), "a launch with an offset of 4 bytes")
        expect("4" in said, f"the refusal does not name the offset: {said}")
        expect(s.content(out) == b"\xee" * 64, "a refused launch wrote something")


@code_case("positive")
def nothing_is_a_null_address(s: Subject) -> None:
    """Memory 0 reaches the kernel as a null pointer."""
    batch = Batch()
    batch.launch(s.kernel("store"), (1,), [None, U32(7)])
    s.completes(batch, "a launch with a null address")


@code_case("positive")
def launches_see_what_came_before(s: Subject) -> None:
    """Fill, launch, copy and launch of one batch, in that order."""
    a, b = s.memory(256), s.memory(256)
    batch = Batch()
    batch.fill(a, 0x40000000)
    batch.launch(s.kernel("scale"), (1,), [b, a, F32(0.5), U32(64)], block=(THREADS,))
    batch.copy(a, b)
    batch.launch(s.kernel("scale"), (1,), [b, a, F32(4.0), U32(64)], block=(THREADS,))
    s.completes(batch, "a batch of four")
    expect(s.words(b, "f4") == [4.0] * 64, "commands of a batch did not run in order")


@code_case("negative")
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


@code_case("negative")
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
        batch.launch(s.kernel("store"), (1,), [out, U32(1)])
        target = batch._commands[0] if place is None else batch._keep[-2][place]
        *outer, last = name.split(".")
        setattr(getattr(target, outer[0]) if outer else target, last, value)
        s.refused_batch(batch, BAD, f"a launch with {what}")


@code_case("negative", kinds=["opencl_c"])
def values_of_another_size_are_refused(s: Subject) -> None:
    """8 bytes for a u32, value and buffer exchanged, one argument less, one more."""
    out = s.memory(64)
    wrong: list[list[Argument]] = [
        [out, U64(1)],
        [U64(1), U32(1)],
        [out, out],
        [out],
        [out, U32(1), U32(1)],
    ]
    for arguments in wrong:
        batch = Batch()
        batch.launch(s.kernel("store"), (1,), arguments)
        s.refused_batch(batch, BAD, f"a launch with {len(arguments)} arguments of another kind")


@code_case("negative", kinds=["opencl_c", "ptx"])
def code_that_is_wrong_is_refused(s: Subject) -> None:
    """Nonsense and nothing; the compiler's words are in the sentence."""
    for image in (b"this is no code", b""):
        raw, out = ffi.new("char[]", image), ffi.new("uint64_t *")
        source = new("bp_module_source", kind=abi_kind(s.code), data=raw, bytes=len(image))
        said = s.refuses(s.api.module.load(s.handle, source, out), BAD, f"loading {image!r}")
        expect(not image or len(said) > 40, f"the compiler's words are lost: {said}")


@code_case("positive", kinds=["ptx"])
def a_bad_address_is_reported(s: Subject) -> None:
    """A store where nothing is: the signal is poisoned, with the batch in the text.

    Where that loses the device, everything on it says so; nothing that waits hangs.
    """
    queue, done, bystander, batch = s.queue(), s.timeline(), s.timeline(), Batch()
    batch.launch(s.kernel("store"), (1,), [U64(16), U32(1)])
    s.works(s.submit(queue, batch, tag=918273645, signal=[(done, 1)]), "queue.submit")
    status, lost = s.wait(done, 1), abi.BP_DEVICE_LOST
    said = s.refuses(status, (abi.BP_LAUNCH_FAULT, lost), "waiting for a bad store")
    expect("918273645" in said, f"the tag is not in the text: {said}")
    if status == lost:
        s.refuses(s.value(bystander)[0], lost, "query of a timeline of a lost device")
        s.refuses(s.wait(bystander, 1), lost, "waiting on a lost device")
        s.refuses(s.submit(queue, Batch()), lost, "queue.submit when lost")
        out = ffi.new("uint64_t *")
        s.refuses(s.api.timeline.create(s.handle, 0, out), lost, "timeline.create when lost")
        info = new("bp_memory_info", bytes=64)
        s.refuses(s.api.mem.create(s.handle, info, out), lost, "mem.create when lost")


@code_case("negative", kinds=["ptx"])
def arguments_of_another_size_are_refused(s: Subject) -> None:
    """One less, one more, and 8 bytes for the 4 of the last."""
    out = s.memory(64)
    wrong: list[list[Argument]] = [[out], [out, U32(1), U32(1)], [out, U64(1)]]
    for arguments in wrong:
        batch = Batch()
        batch.launch(s.kernel("store"), (1,), arguments)
        s.refused_batch(batch, BAD, f"a launch with {len(arguments)} arguments")


@code_case("negative")
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


@code_case("negative")
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


def _source(s: Subject) -> tuple[Any, Any]:
    return s.code_source()


def _load(s: Subject, source: Any) -> int:
    return int(s.api.module.load(s.handle, source, ffi.new("uint64_t *")))


def _launch(s: Subject) -> tuple[Any, Any]:
    batch = Batch()
    batch.launch(s.kernel("nothing"), (1,))
    return batch._commands[0], batch


for _kind in CODE:
    for _struct, _make, _use in (
        ("bp_module_source", _source, _load),
        ("bp_launch_command", _launch, submit_command),
    ):
        structs.add(structs.StructRule(f"module_{_kind}", _struct, _make, _use, prepare=_kind))
