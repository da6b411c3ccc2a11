"""The opencl backend, on PoCL (a compiler) and Oclgrind (a simulator)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.hal.opencl import PLATFORMS, platform_device

from bedplate.core.paths import native_library_dir
from bedplate.hal.api import (
    F32,
    U32,
    Batch,
    Device,
    InvalidArgument,
    Range,
    Unsupported,
    open_device,
)
from bedplate.hal.suite import judge
from bedplate.hal.suite.registry import Tier
from bedplate.hal.suite.run import run, select, worker_command
from bedplate.hal.transfer import Transfer

ADD = """
kernel void add(global float *x, float y, uint n) {
    if (get_global_id(0) < n)
        x[get_global_id(0)] += y;
}
"""


def conforms(platform: str, tier: Tier, hidden: frozenset[str] = frozenset()) -> None:
    """Nothing fails, and all that is claimed is certified.

    A device is known here as it was first seen: `hidden` is what it does not claim now.
    """
    info = platform_device(platform)
    claims = info.claims - hidden
    cases = select(claims, tier)
    results = run(cases, worker_command(info.id))
    failed = [f"{r.name}: {r.reason}" for r in results if r.verdict == "fail"]
    assert not failed
    verdicts = judge.verdicts(claims, cases, results)
    assert {n for n, v in verdicts.items() if v.claimed and v.verdict != "certified"} == set()
    assert {"module_opencl_c", "pin_host", "dynamic_shared"} <= claims


@pytest.mark.timeout(120)
@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_platform_conforms(platform: str) -> None:
    """As `bedplate hal conform --tier quick` would find."""
    conforms(platform, "quick")


@pytest.mark.soak
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("shared", ["1", "0"])
def test_a_platform_conforms_in_full(
    monkeypatch: pytest.MonkeyPatch, platform: str, shared: str
) -> None:
    """With shared virtual memory where there is some, and by buffers alone."""
    monkeypatch.setenv("BEDPLATE_HAL_OPENCL_SVM", shared)
    conforms(platform, "full", frozenset() if shared == "1" else frozenset({"host_visible"}))


@pytest.fixture(params=PLATFORMS)
def opened(request: pytest.FixtureRequest) -> Iterator[Device]:
    """A device of each platform."""
    with open_device(platform_device(request.param).id, trust_claims=True) as device:
        yield device


def test_it_says_who_it_is(opened: Device) -> None:
    """Platform, versions and kind of memory."""
    told = opened.info.properties
    assert told["opencl.platform"] in PLATFORMS
    assert told["opencl.platform"] in opened.info.driver
    assert "OpenCL" in told["opencl.version"]
    assert (told["opencl.memory"] == "shared") == ("host_visible" in opened.info.claims)
    assert opened.info.memory_bytes > 1 << 20


def test_a_build_error_has_the_compilers_words(opened: Device) -> None:
    """The name that is unknown is in the sentence, which is one line."""
    with pytest.raises(
        InvalidArgument, match=r"does not build.*CL_BUILD_PROGRAM_FAILURE"
    ) as caught:
        opened.load_module("opencl_c", "kernel void f(global int *x) { x[0] = no_such_name; }")
    assert "no_such_name" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_queues_share_a_kernel(opened: Device) -> None:
    """Arguments of one launch are never those of another, from two threads and two queues."""
    kernel = opened.load_module("opencl_c", ADD).kernel("add")

    def work(step: float) -> bool:
        x = opened.upload(np.zeros(64, "f4"))
        with opened.queue() as queue:
            for _ in range(20):
                batch = Batch()
                batch.launch(kernel, (1,), [x, F32(step), U32(64)], block=(64,))
                queue.submit(batch)
            return bool((queue.download(x) == 20 * step).all())

    with ThreadPoolExecutor(2) as pool:
        assert all(pool.map(work, (1.0, 2.0, 4.0, 8.0)))


def test_more_commands_than_are_held_at_once(opened: Device) -> None:
    """A batch beyond the executor's window of 1,024 runs whole and in order."""
    x = opened.upload(np.zeros(4, "u4"))
    batch = Batch()
    for i in range(2500):
        batch.fill(Range(x.buffer, 4 * (i % 4), 4), i)
    with opened.queue() as queue:
        queue.submit(batch)
        assert queue.download(x).tolist() == [2496, 2497, 2498, 2499]


def test_pinned_memory_is_for_copies(opened: Device) -> None:
    """A kernel that would be given some is refused before anything runs."""
    kernel = opened.load_module("opencl_c", ADD).kernel("add")
    host = np.zeros(64, "f4")
    pinned = Transfer(opened)._pin(host.view("u1"))
    batch = Batch()
    batch.launch(kernel, (1,), [pinned, F32(1), U32(64)], block=(64,))
    with opened.queue() as queue, pytest.raises(Unsupported, match="argument 0 is pinned memory"):
        queue.submit(batch)
    pinned.release()


def test_a_block_that_the_source_fixes_is_asked_for(opened: Device) -> None:
    """reqd_work_group_size: another block is refused with both."""
    fixed = "__attribute__((reqd_work_group_size(4, 1, 1)))"
    text = f"kernel {fixed} void f(global int *x) {{ x[0] = 1; }}"
    kernel = opened.load_module("opencl_c", text).kernel("f")
    x = opened.upload(np.zeros(1, "i4"))
    with opened.queue() as queue:
        wrong, right = Batch(), Batch()
        wrong.launch(kernel, (1,), [x], block=(2,))
        right.launch(kernel, (1,), [x], block=(4,))
        with pytest.raises(InvalidArgument, match=r"a block of 2 x 1 x 1.* built for 4 x 1 x 1"):
            queue.submit(wrong)
        queue.submit(right)
        assert queue.download(x).tolist() == [1]


def test_native_code_is_not_taken(opened: Device) -> None:
    """OpenCL C only; the refusal says so."""
    with pytest.raises(Unsupported, match="OpenCL C only"):
        opened.load_native_module(native_library_dir() / "conform" / "bedplate_hal_conform.so")
    with pytest.raises(InvalidArgument, match="'cuda' is not a kind of code"):
        opened.load_module("cuda", "x")


LIST = """
from bedplate.hal.open import device_infos, load
print(*[info.name for info in device_infos(load("opencl"))], sep="|")
"""


def names_under(vendors: str) -> tuple[str, str]:
    """Devices that a new process sees, and its last line of errors."""
    environment = os.environ | {"OCL_ICD_VENDORS": vendors}
    done = subprocess.run(
        [sys.executable, "-c", LIST], env=environment, capture_output=True, text=True, check=False
    )
    return done.stdout.strip(), (done.stderr.strip().splitlines() or [""])[-1]


def test_a_trailing_slash_changes_nothing() -> None:
    """OpenCL-ICD-Loader #104: the same devices with and without it."""
    platform_device("Oclgrind")
    folder = os.environ["OCL_ICD_VENDORS"]
    seen = {names_under(text)[0] for text in (folder, folder + "/")}
    assert len(seen) == 1
    assert "Oclgrind Simulator" in seen.pop()


def test_without_a_platform_it_is_unavailable(tmp_path_factory: pytest.TempPathFactory) -> None:
    """One sentence that names the variable; other backends still work."""
    platform_device("Oclgrind")
    told, error = names_under(str(tmp_path_factory.mktemp("nothing")))
    assert told == ""
    assert "Unavailable" in error
    assert "finds no platform by OCL_ICD_VENDORS=" in error
