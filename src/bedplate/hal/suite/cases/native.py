"""module_native: names, limits of a launch, and what a kernel's status becomes."""

from __future__ import annotations

import numpy as np

from bedplate.hal import abi
from bedplate.hal.batch import U32, U64, Argument, Batch
from bedplate.hal.native import ffi, new
from bedplate.hal.suite.cases.launch import find, loaded
from bedplate.hal.suite.registry import case
from bedplate.hal.suite.subject import Subject, expect

BAD = abi.BP_INVALID_ARGUMENT


@case("module_native", "positive")
def a_kernels_name_has_a_length(s: Subject) -> None:
    """Text has no terminator: what lies behind is not part of the name."""
    module, out = loaded(s), ffi.new("uint64_t *")
    data = ffi.new("char[]", b"echoXYZ")
    name = ffi.new("bp_text *", {"data": data, "length": 4})
    s.works(s.api.module.kernel(s.handle, module, name, out), "module.kernel of 'echo'")
    name.length = 5
    wanted = (abi.BP_NOT_FOUND, BAD)
    s.refuses(s.api.module.kernel(s.handle, module, name, out), wanted, "a kernel of 'echoX'")


@case("module_native", "positive")
def a_kernel_asked_for_twice_is_usable_twice(s: Subject) -> None:
    """Both handles launch it."""
    module, out = loaded(s), s.memory(4)
    handles = [find(s, module, "count_blocks")[1] for _ in range(2)]
    batch = Batch()
    for handle in handles:
        batch.launch(s.kernel("count_blocks"), (1,), [out])
        batch._commands[-1].kernel = handle
    s.completes(batch, "launches by two handles")
    expect(int.from_bytes(s.content(out), "little") == 2, "one of two handles did not launch")


@case("module_native", "positive")
def two_loads_are_two_modules(s: Subject) -> None:
    """Unloading one leaves the other's kernels alone."""
    first, second = loaded(s), loaded(s)
    expect(first != second, "two loads of one file have one handle")
    kernel, out = find(s, second, "count_blocks")[1], s.memory(4)
    s.works(s.api.module.unload(s.handle, first), "module.unload")
    batch = Batch()
    batch.launch(s.kernel("count_blocks"), (1,), [out])
    batch._commands[-1].kernel = kernel
    s.completes(batch, "a launch of the module that is left")


@case("module_native", "negative")
def a_module_belongs_to_a_device(s: Subject) -> None:
    """Another one knows neither it nor its kernels."""
    other = Subject(s.backend, s.index)
    try:
        module = loaded(other)
        kernel = find(other, module, "nothing")[1]
        s.refuses(find(s, module, "nothing")[0], BAD, "a kernel of a foreign module")
        s.refuses(s.api.module.unload(s.handle, module), BAD, "unloading a foreign module")
        batch = Batch()
        batch.launch(s.kernel("nothing"), (1,))
        batch._commands[-1].kernel = kernel
        s.refused_batch(batch, BAD, "a launch of a foreign kernel")
    finally:
        other.close()


@case("module_native", "positive")
def blocks_may_be_as_large_as_told(s: Subject) -> None:
    """kernel_info's limit runs, one thread more is refused."""
    told, kernel = new("bp_kernel_info"), s.kernel("nothing")
    s.works(s.api.module.kernel_info(s.handle, kernel.handle, told), "module.kernel_info")
    most = int(told.max_threads_per_block)
    expect(most >= 1, f"a kernel takes {most} threads")
    batch = Batch()
    batch.launch(kernel, (1,), block=(most,))
    s.completes(batch, f"a block of {most} threads")
    if most < (1 << 32) - 1:
        batch = Batch()
        batch.launch(kernel, (1,), block=(most + 1,))
        s.refused_batch(batch, BAD, f"a block of {most + 1} threads")


@case("module_native", "positive")
def parameters_may_fill_their_room(s: Subject) -> None:
    """The most packed bytes that the ABI names arrive; 8 more are refused."""
    out, room = s.memory(256), abi.BP_MAX_LAUNCH_PARAMETER_BYTES
    batch = Batch()
    values: list[Argument] = [out, *[U64(i) for i in range(room // 8 - 1)]]
    batch.launch(s.kernel("echo"), (1,), values)
    s.completes(batch, f"a launch with {room} bytes of parameters")
    told = int.from_bytes(s.content(out)[:8], "little")
    expect(told == room, f"{room} bytes of parameters arrived as {told}")
    batch = Batch()
    batch.launch(s.kernel("echo"), (1,), [*values, U64(0)])
    s.refused_batch(batch, BAD, f"a launch with {room + 8} bytes of parameters")


@case("module_native", "positive")
def a_launch_needs_no_arguments(s: Subject) -> None:
    """None at all, with and without an array."""
    batch = Batch()
    batch.launch(s.kernel("nothing"), (3,))
    batch.launch(s.kernel("nothing"), (3,))
    batch._commands[-1].arguments = ffi.NULL
    s.completes(batch, "launches without arguments")


@case("module_native", "positive")
def small_arguments_are_aligned_by_size(s: Subject) -> None:
    """1, 2, 3 and 4 bytes one after the other, each at a multiple of its power of two."""
    out = s.memory(256)
    batch = Batch()
    values: list[Argument] = [out, b"\x01", b"\x02\x02", b"\x03", b"\x04" * 4, b"\x05", b"\x06" * 6]
    batch.launch(s.kernel("echo"), (1,), values)
    s.completes(batch, "a launch")
    packed = s.content(out)[16 : 8 + int.from_bytes(s.content(out)[:8], "little")]
    wanted = b"\x01\0\x02\x02\x03\0\0\0" + b"\x04" * 4 + b"\x05\0\0\0" + b"\x06" * 6
    expect(packed == wanted, f"small arguments are packed as {packed.hex(' ')}")


@case("module_native", "positive", tier="full")
def a_million_blocks_run_once(s: Subject) -> None:
    """In one launch."""
    count = 1 << 20
    out = s.memory(4 * count)
    batch = Batch()
    batch.launch(s.kernel("count_blocks"), (1024, 32, 32), [out])
    s.completes(batch, "a launch of a million blocks")
    words = np.frombuffer(s.content(out), "u4")
    expect((words == 1).all(), f"{int((words != 1).sum())} of a million blocks did not run once")


@case("module_native", "positive", tier="full")
def launches_on_two_queues_are_whole(s: Subject) -> None:
    """Both run every block once, whatever they share."""
    outs, lines = [s.memory(4 * 5000) for _ in range(2)], [s.timeline() for _ in range(2)]
    for out, line in zip(outs, lines, strict=True):
        batch = Batch()
        for _ in range(10):
            batch.launch(s.kernel("count_blocks"), (5000,), [out])
        s.works(s.submit(s.queue(), batch, signal=[(line, 1)]), "queue.submit")
    for out, line in zip(outs, lines, strict=True):
        s.works(s.wait(line, 1), "waiting for a queue of launches")
        expect((np.frombuffer(s.content(out), "u4") == 10).all(), "blocks ran another number")


@case("module_native", "positive")
def a_kernels_status_is_passed_on(s: Subject) -> None:
    """Its own negative code, not a general one."""
    for status in (abi.BP_OUT_OF_MEMORY, abi.BP_INVALID_ARGUMENT, abi.BP_UNSUPPORTED):
        batch = Batch()
        batch.launch(s.kernel("give_status"), (1,), [U32(status & 0xFFFFFFFF)])
        got, text = s.run(batch)
        expect(got == status, f"a kernel that gave {status} ended as {got}")
        expect("give_status" in text, f"the sentence does not name the kernel: {text}")


@case("module_native", "positive")
def a_fault_names_its_command(s: Subject) -> None:
    """The place in the batch and the kernel."""
    batch = Batch()
    for _ in range(6):
        batch.launch(s.kernel("nothing"), (1,))
    batch.launch(s.kernel("fail_at"), (1,), [U64(0)])
    _, text = s.run(batch, tag=55)
    expect("6" in text and "fail_at" in text, f"command 6, fail_at, is not named: {text}")


@case("module_native", "positive")
def the_first_failure_counts(s: Subject) -> None:
    """Of two timelines of one batch both have the same words, and a later failure changes none."""
    queue, first, second = s.queue(), s.timeline(), s.timeline()
    for tag, block in ((8801, 0), (8802, 0)):
        batch = Batch()
        batch.launch(s.kernel("fail_at"), (1,), [U64(block)])
        signals = [(first, tag), (second, tag)]
        s.works(s.submit(queue, batch, tag=tag, signal=signals), "queue.submit")
    for line in (first, second, first):
        s.refuses(s.wait(line, 8802), abi.BP_LAUNCH_FAULT, "waiting for failed work")
        expect("8801" in s.said(), f"the first failure's words are gone: {s.said()}")


@case("module_native", "negative")
def no_place_for_a_module(s: Subject) -> None:
    """Null results and null structs are refused."""
    module, api = loaded(s), s.api.module
    out, name = ffi.new("uint64_t *"), ffi.new("bp_text *")
    s.refuses(api.load(s.handle, ffi.NULL, out), BAD, "module.load of null")
    source, keep = s.code_source()
    s.refuses(api.load(s.handle, source, ffi.NULL), BAD, "module.load without a result")
    del keep
    s.refuses(api.info(s.handle, module, ffi.NULL), BAD, "module.info without a result")
    s.refuses(api.kernel(s.handle, module, ffi.NULL, out), BAD, "module.kernel without a name")
    wanted = (BAD, abi.BP_NOT_FOUND)
    s.refuses(api.kernel(s.handle, module, name, out), wanted, "module.kernel of an empty text")
    kernel = find(s, module, "nothing")[1]
    s.refuses(api.kernel_info(s.handle, kernel, ffi.NULL), BAD, "kernel_info without a result")


@case("module_native", "negative")
def unknown_module_kinds_are_refused(s: Subject) -> None:
    """0 and numbers from the future."""
    out = ffi.new("uint64_t *")
    for kind in (0, 99, (1 << 32) - 1):
        source = new("bp_module_source", kind=kind)
        wanted = (abi.BP_UNSUPPORTED, BAD)
        s.refuses(s.api.module.load(s.handle, source, out), wanted, f"a module of kind {kind}")


@case("dynamic_shared", "positive", needs=["module_native"])
def shared_memory_grows_and_shrinks(s: Subject) -> None:
    """From launch to launch of one batch; each sees its own size."""
    sizes = (4096, 4, 8192, 64, 16384, 12)
    outs = [s.memory(4 * 16) for _ in sizes]
    batch = Batch()
    for size, out in zip(sizes, outs, strict=True):
        batch.launch(s.kernel("use_shared"), (16,), [out], shared_bytes=size)
    s.completes(batch, "launches with several sizes")
    for size, out in zip(sizes, outs, strict=True):
        told = set(np.frombuffer(s.content(out), "u4").tolist())
        expect(told == {size // 4}, f"with {size} bytes, blocks kept {told} words")


@case("dynamic_shared", "positive", needs=["module_native"])
def shared_memory_is_each_queues_own(s: Subject) -> None:
    """Two queues fill theirs at once; no block reads another's numbers."""
    outs, lines = [s.memory(4 * 200) for _ in range(2)], [s.timeline() for _ in range(2)]
    for out, line in zip(outs, lines, strict=True):
        batch = Batch()
        for _ in range(5):
            batch.launch(s.kernel("use_shared"), (200,), [out], shared_bytes=4096)
        s.works(s.submit(s.queue(), batch, signal=[(line, 1)]), "queue.submit")
    for out, line in zip(outs, lines, strict=True):
        s.works(s.wait(line, 1), "waiting for launches with shared memory")
        expect((np.frombuffer(s.content(out), "u4") == 1024).all(), "shared memory was shared")
