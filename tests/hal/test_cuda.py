"""The cuda backend: on a stand-in for the driver everywhere, on the real one by `make device`.

The stand-in and what it is true to are in native/cuda/fake.h; native/cuda/contract.h is the list
that both are held to.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
NATIVE = Path(__file__).parent / "native" / "cuda"
ENTRY = "from bedplate.cli.main import entry; entry()"
REAL = Path("/dev/nvidiactl").exists()


@pytest.fixture(scope="session")
def fake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the stand-in as libcuda.so.1, and the contract's program."""
    folder = tmp_path_factory.mktemp("cuda")
    subprocess.run([NATIVE / "build.sh", folder], check=True)
    return folder


def run(command: list[Any], libraries: Path | None = None, **environment: str) -> Any:
    """A finished process, with the folder of a driver first in the library path."""
    changed = os.environ | environment
    if libraries is not None:
        changed["LD_LIBRARY_PATH"] = str(libraries)
    return subprocess.run(
        [str(word) for word in command], env=changed, capture_output=True, text=True, check=False
    )


def bedplate(*words: str, libraries: Path | None = None, **environment: str) -> Any:
    """The command line in a process of its own."""
    return run([sys.executable, "-c", ENTRY, *words], libraries, **environment)


def script(text: str, libraries: Path, **environment: str) -> str:
    """What a Python program with an open cuda device as `d` prints."""
    head = "from bedplate.hal.api import *\nfrom bedplate.hal.batch import *\n"
    head += "import numpy as np\nd = open_device('cuda', trust_claims=True)\n"
    done = run([sys.executable, "-c", head + text], libraries, **environment)
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


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


def test_the_stand_in_keeps_the_contract(fake: Path) -> None:
    """Order, words, events, capture, sticky errors and codes are those of the real driver."""
    check_contract(run([fake / "contract", NATIVE / "contract.ptx"], fake))


@pytest.mark.timeout(180)
@pytest.mark.parametrize("timelines", ["words", "events"])
def test_the_suite_passes_on_the_stand_in(fake: Path, timelines: str, tmp_path: Path) -> None:
    """All cases, with timelines of either kind."""
    done = bedplate(
        "hal",
        "conform",
        "cuda",
        "--json",
        "--data-dir",
        str(tmp_path),
        libraries=fake,
        BEDPLATE_HAL_CUDA_TIMELINES=timelines,
    )
    check_conform(done)


def test_devices_without_words_use_events(fake: Path) -> None:
    """Attribute 122 says that the streams of a device write no 64-bit words."""
    text = "t = d.upload(np.arange(9)); print(d.download(t).sum())\n"
    text += "print(d.info.properties['cuda.timelines'])"
    told = script(text, fake, BEDPLATE_FAKE_CUDA="attribute.122=0")
    assert told.split() == ["36", "events"]


def test_plain_memory_serves_where_there_are_no_pools(fake: Path) -> None:
    """And neither reserved addresses nor clusters are claimed where the device has none."""
    text = "t = d.upload(np.arange(9)); print(d.download(t).sum())\n"
    text += "print({'address_reserve', 'clusters'} & d.info.claims)"
    settings = "attribute.115=0,attribute.102=0,attribute.120=0"
    assert script(text, fake, BEDPLATE_FAKE_CUDA=settings).split() == ["36", "set()"]


def test_a_fault_is_told_with_its_code_and_ends_cuda(fake: Path) -> None:
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
    told = script(text.replace("KERNELS", str(kernels)), fake, BEDPLATE_FAKE_CUDA="fault_after=1")
    first, second = told.splitlines()
    assert "batch 77: CUDA_ERROR_LAUNCH_FAILED (719)" in first
    assert second == "a fault ended CUDA for this process; start it again"


def test_memory_comes_back_and_runs_out(fake: Path) -> None:
    """Sixteen times what the device has, one after the other; at once it is refused."""
    text = """
for _ in range(64):
    d.allocate(16 << 20).release()
try:
    kept = [d.allocate(16 << 20) for _ in range(64)]
except OutOfDeviceMemory as error:
    print(error.message)
"""
    told = script(text, fake, BEDPLATE_FAKE_CUDA="memory_mb=64")
    assert "bytes" in told


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
    """abi.h against cuda.h, where a toolkit is installed."""
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    header = Path(nvcc).resolve().parents[1] / "include"
    if not (header / "cuda.h").exists():
        pytest.skip("no cuda.h on this machine")
    check = ROOT / "native" / "hal" / "cuda" / "check.cpp"
    command = ["g++", "-std=c++17", "-fsyntax-only", "-Wno-invalid-offsetof", f"-I{header}", check]
    done = run(command)
    assert done.returncode == 0, done.stderr


@pytest.mark.device
@pytest.mark.timeout(300)
@pytest.mark.parametrize("timelines", ["words", "events"])
def test_the_suite_passes_on_the_device(timelines: str, tmp_path: Path) -> None:
    """All cases, with timelines of either kind, on this machine's own device."""
    words = ["hal", "conform", "cuda", "--json", "--data-dir", str(tmp_path)]
    check_conform(bedplate(*words, BEDPLATE_HAL_CUDA_TIMELINES=timelines))
