"""The cuda backend: on a stand-in for the driver everywhere, on the real one by `make device`.

The stand-in and what it is true to are in native/cuda/fake.h; native/cuda/contract.h is the list
that both are held to.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.hal.forks import Forks, library_path

from bedplate.hal.api import Batch, Device, DType, HalError, OpPlan, open_device

ROOT = Path(__file__).resolve().parents[2]
NATIVE = Path(__file__).parent / "native" / "cuda"
ENTRY = "from bedplate.cli.main import entry; entry()"
REAL = Path("/dev/nvidiactl").exists()
HEAD = """
import numpy as np
from bedplate.hal.api import *
from bedplate.hal.batch import *
d = open_device('cuda', trust_claims=True)
"""


@pytest.fixture(scope="session")
def fake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the stand-in as libcuda.so.1, and the contract's program."""
    folder = tmp_path_factory.mktemp("cuda")
    subprocess.run([NATIVE / "build.sh", folder], check=True)
    return folder


@pytest.fixture(scope="session")
def programs(fake: Path) -> Iterator[Forks]:
    """Runs Python programs with the stand-in as their driver."""
    with contextlib.closing(Forks(library_path(fake))) as made:
        yield made


def run(command: list[Any], libraries: Path | None = None, **environment: str) -> Any:
    """A finished process, with the folder of a driver and its `blas` as the library path."""
    changed = os.environ | environment
    if libraries is not None:
        changed["LD_LIBRARY_PATH"] = library_path(libraries)
    return subprocess.run(
        [str(word) for word in command], env=changed, capture_output=True, text=True, check=False
    )


def bedplate(*words: str, libraries: Path | None = None, **environment: str) -> Any:
    """The command line in a process of its own."""
    return run([sys.executable, "-c", ENTRY, *words], libraries, **environment)


def script(text: str, programs: Forks, **environment: str) -> str:
    """What a Python program with an open cuda device as `d` prints."""
    status, said, error = programs.run(HEAD + text, **environment)
    assert status == 0, error
    return said


def check_contract(done: Any) -> None:
    """Every case of the contract passed, and there were many."""
    lines = done.stdout.splitlines()
    assert [line for line in lines if not line.startswith("pass ")] == []
    assert done.returncode == 0
    assert len(lines) > 30


def check_conform(done: Any) -> dict[str, Any]:
    """The certificate: nothing failed, and every claim is certified.

    A cubin is made by ptxas, so without it that claim is NOT RUN.
    """
    found: dict[str, Any] = json.loads(done.stdout)
    failed = [(c["name"], c["reason"]) for c in found["cases"] if c["verdict"] == "fail"]
    assert failed == []
    claims = {name: entry for name, entry in found["capabilities"].items() if entry["claimed"]}
    poor = {name for name, entry in claims.items() if entry["verdict"] != "certified"}
    assert poor <= {"module_cubin"}
    wanted = {"capture", "module_ptx", "pin_host", "address_reserve", "clusters", "device_address"}
    assert wanted <= set(claims)
    return found


def check_matmul(
    d: Device, dtype: DType, shape: tuple[int, int, int], exact: Callable[[Any], Any]
) -> OpPlan:
    """A product of random numbers of one dtype into f32, against double precision.

    The bound is that of recursive summation in f32, gamma(K + 2) times the
    sum of magnitudes (Higham, Accuracy and Stability, 3.5): products of two
    f32 round once more, those of bf16 and f16 are exact.
    """
    rows, inner, columns = shape
    random = np.random.default_rng(sum(shape))
    numbers = [random.standard_normal(s).astype("f4") for s in ((rows, inner), (inner, columns))]
    raw = [narrowed(array, dtype) for array in numbers]
    given = [d.empty(array.shape, dtype) for array in raw]
    for tensor, array in zip(given, raw, strict=True):
        d.write(tensor, array)
    out = d.empty((rows, columns), DType.F32)
    tensors = [*given, None, None, None, out]
    plan = d.plan_op("matmul", tensors)
    workspace = d.allocate(plan.workspace_bytes) if plan.workspace_bytes else None
    batch = Batch()
    batch.op(plan, tensors, workspace)
    with d.queue() as queue:
        queue.submit(batch)
        got = queue.download(out)
    a, b = (exact(array).astype("f8") for array in raw)
    unit = 2.0**-24
    bound = (inner + 2) * unit / (1 - (inner + 2) * unit)
    assert (abs(got - a @ b) <= bound * (abs(a) @ abs(b))).all()
    return plan


def narrowed(array: Any, dtype: DType) -> Any:
    """An f32 array in the numpy type that carries a dtype."""
    if dtype == DType.F16:
        return array.astype("f2")
    return array if dtype == DType.F32 else (array.view("u4") >> 16).astype("u2")


def widened(array: Any) -> Any:
    """The numbers of an array, of which uint16 holds bf16."""
    return (array.astype("u4") << 16).view("f4") if array.dtype == np.uint16 else array


def test_the_stand_in_keeps_the_contract(fake: Path) -> None:
    """Order, words, events, capture, sticky errors and codes are those of the real driver."""
    check_contract(run([fake / "contract", NATIVE / "contract.ptx"], fake))


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("timelines", "tier", "check"),
    [
        ("words", "full", "0"),
        ("events", "quick", "1"),
        pytest.param("words", "full", "1", marks=pytest.mark.soak),
        pytest.param("events", "full", "1", marks=pytest.mark.soak),
    ],
)
def test_the_suite_passes_on_the_stand_in(
    fake: Path, timelines: str, tier: str, check: str, tmp_path: Path
) -> None:
    """With timelines of either kind and with poison; what neither changes is tried in full with
    one, since each of thousands of small memories waits for its poison."""
    done = bedplate(
        "hal",
        "conform",
        "cuda",
        "--json",
        "--tier",
        tier,
        "--data-dir",
        str(tmp_path),
        libraries=fake,
        BEDPLATE_HAL_CUDA_TIMELINES=timelines,
        BEDPLATE_CHECK=check,
    )
    check_conform(done)


def test_without_cublas_there_are_no_ops(fake: Path, tmp_path: Path) -> None:
    """Doctor says why; everything else is certified."""
    (alone := tmp_path / "alone").mkdir()
    (alone / "libcuda.so.1").symlink_to(fake / "libcuda.so.1")
    told = bedplate("hal", "doctor", "--json", libraries=alone)
    findings = json.loads(told.stdout)["candidates"]
    reason = next(f["reason"] for f in findings if f["backend"] == "cuda")
    assert reason.startswith("ops is absent: cuBLASLt cannot be opened: libcublasLt.so.13")
    text = "print('ops' in d.info.claims, d.info.properties['absent.ops'][:8])"
    with contextlib.closing(Forks(library_path(alone))) as programs:
        assert script(text, programs).split() == ["False", "cuBLASLt"]


def test_a_matmul_is_held_to_its_addresses(programs: Forks) -> None:
    """Bindings at multiples of 16; a fence that waits holds what its operands were."""
    text = """
x, w = d.upload(np.ones((4, 64), 'f4')), d.upload(np.ones((64, 8), 'f4'))
out = d.empty((5, 8), 'f4')
t = [x, w, None, None, None, Tensor(out.buffer, 0, (4, 8), DType.F32)]
p = d.plan_op('matmul', t)
work = d.allocate(p.workspace_bytes)
print(p.library, p.workspace_bytes, p.deterministic, p.capturable)
b = Batch()
b.op(p, [*t[:5], Tensor(out.buffer, 4, (4, 8), DType.F32)], work)
q, gate = d.queue(), d.timeline()
try:
    q.submit(b)
except InvalidArgument as error:
    print(error.message)
b = Batch()
b.op(p, t, work)
q.submit(b, wait=[(gate, 1)])
for tensor in (x, w):
    tensor.buffer.release()
gate.signal(1)
print(q.download(t[5]).sum())
"""
    head = "from bedplate.hal.errors import InvalidArgument\n"
    first, second, third = script(head + text, programs).splitlines()
    assert first == "cuBLASLt 13.1.0 4096 True True"
    assert "at offset 4 is not aligned to 16 bytes" in second
    assert third == "2048.0"


PEERS = """
import os
from bedplate.hal.errors import HalError
first, second = d, open_device('cuda:1', trust_claims=True)
kept = first.allocate(4096, exportable=True)
with first.queue() as queue:
    batch = Batch()
    batch.fill(kept, 7)
    queue.submit(batch)
    queue.synchronize()
descriptor = export_memory(kept)
try:
    there = import_memory(second, descriptor, 4096)
except HalError as error:
    print(error.message)
else:
    copy, batch = second.allocate(4096), Batch()
    batch.copy(copy, there)
    with second.queue() as queue:
        queue.submit(batch)
        queue.synchronize()
    print(second.read_bytes(Range(copy, 0, 4096)).view('u4').sum())
os.close(descriptor)
"""


def test_memory_is_copied_between_two_devices(programs: Forks) -> None:
    """Exported by one and imported by the other, where one reaches the other."""
    assert script(PEERS, programs, BEDPLATE_FAKE_CUDA="devices=2").strip() == "7168"


def test_devices_that_do_not_reach_each_other_refuse(programs: Forks) -> None:
    """When memory is imported, with both numbers."""
    told = script(PEERS, programs, BEDPLATE_FAKE_CUDA="devices=2,peers=0")
    assert told.strip() == "device 1 cannot reach the memory of device 0"


def test_an_export_that_cannot_answer_keeps_no_descriptor(programs: Forks) -> None:
    """A struct too short for its own head is refused, and what the driver made is closed."""
    text = """
import os
from bedplate.hal.native import ffi, new
kept = d.allocate(4096, exportable=True)
out = new('bp_external')
out.head.struct_size = 4
before = len(os.listdir('/proc/self/fd'))
status = d.api.mem.export_memory(d.handle, kept.handle, out)
print(status < 0, len(os.listdir('/proc/self/fd')) - before)
"""
    assert script(text, programs).split() == ["True", "0"]


def test_a_device_may_have_no_tensor_maps_and_export_nothing(programs: Forks) -> None:
    """Then neither is claimed, and the suite sees that both are refused."""
    text = "print({'tensor_map', 'export_memory', 'import_memory'} & d.info.claims)\n"
    text += "from bedplate.hal.errors import Unsupported\n"
    text += "try:\n    d.allocate(64, exportable=True)\n"
    text += "except Unsupported as error:\n    print(error.message)"
    told = script(text, programs, BEDPLATE_FAKE_CUDA="attribute.103=0,attribute.127=0")
    assert told.splitlines() == ["set()", "this device has no memory that can be exported"]


def test_devices_without_words_use_events(programs: Forks) -> None:
    """Attribute 122 says that the streams of a device write no 64-bit words."""
    text = "t = d.upload(np.arange(9)); print(d.download(t).sum())\n"
    text += "print(d.info.properties['cuda.timelines'])"
    told = script(text, programs, BEDPLATE_FAKE_CUDA="attribute.122=0")
    assert told.split() == ["36", "events"]


def test_plain_memory_serves_where_there_are_no_pools(programs: Forks) -> None:
    """And neither reserved addresses nor clusters are claimed where the device has none."""
    text = "t = d.upload(np.arange(9)); print(d.download(t).sum())\n"
    text += "print({'address_reserve', 'clusters'} & d.info.claims)"
    settings = "attribute.115=0,attribute.102=0,attribute.120=0"
    assert script(text, programs, BEDPLATE_FAKE_CUDA=settings).split() == ["36", "set()"]


def test_a_fault_is_told_with_its_code_and_ends_cuda(programs: Forks) -> None:
    """Error 719 of a kernel: the wait says so with the tag, and no device opens any more."""
    text = """
q, w = d.queue(), d.timeline()
source = open(r'KERNELS').read()
k = d.load_module('ptx', source).kernel('nothing')
b = Batch()
b.launch(k, (1,))
q.submit(b, tag=77, signal=[(w, 1)])
try:
    w.wait(1, 2 * 10**9)
except DeviceLost as error:
    print(error.message)
try:
    open_device('cuda', trust_claims=True)
except DeviceLost as error:
    print(error.message)
"""
    kernels = ROOT / "native" / "hal" / "conform" / "kernels.ptx"
    told = script(
        text.replace("KERNELS", str(kernels)), programs, BEDPLATE_FAKE_CUDA="fault_after=1"
    )
    first, second = told.splitlines()
    assert "batch 77: CUDA_ERROR_LAUNCH_FAILED (719)" in first
    assert second == "a fault ended CUDA for this process; start it again"


SINGLE = """
import threading
q, w = d.queue(), d.timeline()
module = d.load_module('ptx', open(r'KERNELS').read())
scale = module.kernel('scale')
x, y = d.upload(np.arange(4, dtype='f4')), d.empty((4,), 'f4')
def launch(values, signal, block=(4,)):
    b = Batch()
    b.launch(scale, (1,), values, block=block)
    try:
        q.submit(b, tag=5, signal=signal)
    except HalError as error:
        print(error.message)
good = [y, x, F32(3.0), U32(4)]
thread = threading.Thread(target=lambda: launch(good, []))
thread.start(); thread.join()
launch([y, x, F32(3.0)], [(w, 1)])
launch(good, [(w, 1)], block=(4096,))
print(w.value)
v = d.timeline()
launch(good, [(w, 1), (v, 1)])
w.wait(1, 2 * 10**9); v.wait(1, 2 * 10**9)
launch(good, [(w, 2)])
w.wait(2, 2 * 10**9)
print(*q.download(y))
launch(good, [(w, 2)])
try:
    w.wait(3, 2 * 10**9)
except HalError as error:
    print(error.message)
"""


def test_a_launch_alone_is_held_to_the_same_rules(programs: Forks) -> None:
    """Refused with its place in the batch, signalled once or twice; from a thread of no context."""
    kernels = ROOT / "native" / "hal" / "conform" / "kernels.ptx"
    head = "from bedplate.hal.api import F32, U32\nfrom bedplate.hal.errors import HalError\n"
    told = script(head + SINGLE.replace("KERNELS", str(kernels)), programs).splitlines()
    assert told[0] == "command 0: 20 bytes of arguments; the kernel takes 24"
    assert told[1].startswith("command 0: a block of 4096 x 1 x 1")
    assert told[2:4] == ["0", "0.0 3.0 6.0 9.0"]
    assert "batch 5: a timeline at 2 cannot be signalled to 2: it must grow" in told[4]


def test_memory_comes_back_and_runs_out(programs: Forks) -> None:
    """Sixteen times what the device has, one after the other; at once it is refused."""
    text = """
for _ in range(64):
    d.allocate(16 << 20).release()
try:
    kept = [d.allocate(16 << 20) for _ in range(64)]
except OutOfDeviceMemory as error:
    print(error.message)
"""
    told = script(text, programs, BEDPLATE_FAKE_CUDA="memory_mb=64")
    assert "bytes" in told


UNITS = """
from bedplate.hal.native import ffi
U = 2 << 20
mem = d.api.mem
out = ffi.new('uint64_t *')
def make(units):
    info = new('bp_memory_info', bytes=units * U, alignment=U)
    assert mem.create(d.handle, info, out) == 0
    return ffi.new('bp_range *', (out[0], 0, units * U))
assert mem.reserve(d.handle, 600 * U, U, out) == 0
place = out[0]
two, three, one = make(2), make(3), make(1)
map_at = lambda unit, span: mem.map(d.handle, place + unit * U, span)
unmap = lambda unit, units: mem.unmap(d.handle, place + unit * U, units * U)
print(map_at(1, two), map_at(3, three))
print([map_at(unit, one) for unit in (1, 2, 5, 600)], [map_at(unit, two) for unit in (0, 599)])
print([unmap(*word) for word in ((1, 1), (2, 1), (1, 5), (3, 2), (0, 2), (7, 1), (1, 0))])
print(mem.unmap(d.handle, place + U // 2, U))
print(unmap(1, 2), unmap(1, 2), map_at(2, one), map_at(1, make(1)), unmap(3, 3))
many = [(unit, make(1)) for unit in range(10, 500)]
print(sum(map_at(*word) for word in many), sum(unmap(unit, 1) for unit, _ in many[::2]))
"""


def test_what_is_mapped_is_known_unit_by_unit(programs: Forks) -> None:
    """Mappings of several units are taken as a whole; parts and overlaps are refused."""
    told = script("from bedplate.hal.native import new\n" + UNITS, programs).splitlines()
    assert told[0] == "0 0"
    assert told[1] == "[-13, -13, -13, -1] [-13, -1]"
    assert told[2] == "[-1, -1, -1, -1, -1, -1, -1]"
    assert told[3:] == ["-1", "0 -1 0 0 0", "0 0"]


@pytest.mark.skipif(REAL, reason="this machine has a driver")
def test_without_a_driver_it_says_so_and_others_work() -> None:
    """One sentence in the listing; cpu stays."""
    done = bedplate("hal", "list", "--json")
    assert done.returncode == 0, done.stderr
    assert "there is no NVIDIA driver here" in done.stdout
    assert '"cpu:0"' in done.stdout


@pytest.mark.device
def test_the_real_driver_keeps_the_contract(fake: Path) -> None:
    """The same list, on this machine's own libcuda.so.1."""
    check_contract(run([fake / "contract", NATIVE / "contract.ptx"]))


@pytest.mark.device
def test_our_declarations_are_those_of_the_toolkit() -> None:
    """abi.h and blas_abi.h against the real headers, where a toolkit or its packages have them."""
    nvcc = Path(shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc").resolve()
    folders = [nvcc.parents[1] / "include"]
    folders += [f for entry in sys.path for f in Path(entry).glob("nvidia/**/include")]
    for check, header in (("check.cpp", "cuda.h"), ("check_blas.cpp", "cublasLt.h")):
        if not any((folder / header).exists() for folder in folders):
            pytest.skip(f"NOT RUN: no {header} on this machine")
        source = ROOT / "native" / "hal" / "cuda" / check
        options = ["-std=c++17", "-fsyntax-only", "-Wno-invalid-offsetof"]
        done = run(["g++", *options, *(f"-I{folder}" for folder in folders), source])
        assert done.returncode == 0, done.stderr


@pytest.mark.device
@pytest.mark.timeout(300)
@pytest.mark.parametrize("timelines", ["words", "events"])
def test_the_suite_passes_on_the_device(timelines: str, tmp_path: Path) -> None:
    """All cases, with timelines of either kind, on this machine's own device."""
    words = ["hal", "conform", "cuda", "--json", "--data-dir", str(tmp_path)]
    check_conform(bedplate(*words, BEDPLATE_HAL_CUDA_TIMELINES=timelines))


@pytest.mark.device
def test_memory_is_copied_between_two_real_devices() -> None:
    """As on the stand-in; NOT RUN with one device."""
    told = run([sys.executable, "-c", HEAD + PEERS])
    if "cuda has no device 1" in told.stderr:
        pytest.skip("NOT RUN: this machine has one device")
    assert told.returncode == 0, told.stderr
    assert told.stdout.strip() == "7168"


@pytest.mark.device
@pytest.mark.parametrize("dtype", [DType.F32, DType.BF16, DType.F16], ids=lambda d: d.name)
@pytest.mark.parametrize(
    "shape", [(1, 576, 1536), (7, 33, 5), (128, 256, 512), (1000, 4096, 1024)], ids=str
)
def test_the_devices_matmul_agrees_with_numpy(dtype: DType, shape: tuple[int, int, int]) -> None:
    """One row, odd sizes, and sizes that want the tensor cores."""
    try:
        device = open_device("cuda", trust_claims=True)
    except HalError as error:
        pytest.skip(f"NOT RUN: {error.message}")
    with device:
        if "ops" not in device.info.claims:
            pytest.skip(f"NOT RUN: {device.info.properties['absent.ops']}")
        plan = check_matmul(device, dtype, shape, widened)
        assert plan.library.startswith("cuBLASLt")
