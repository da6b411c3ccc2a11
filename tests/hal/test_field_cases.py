"""What broke in the field elsewhere, as the smallest input that shows it here.

One test for each report that has no other home: OpenCL-ICD-Loader #104, ROCm
#1131 and the manifests of icd_linux.c are in `test_discovery.py`, llama.cpp
#17180 in `test_suite_run.py`, versions that meet in `test_abi_matrix.py`.
"""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests.hal import foreign

from bedplate.hal import abi, certificate, doctor
from bedplate.hal.api import Unsupported, open_device
from bedplate.hal.discovery import DIRECTORIES_VARIABLE
from bedplate.hal.native import ffi, library, new
from bedplate.hal.open import device_infos, load
from bedplate.hal.suite.liar import lie_of
from bedplate.hal.suite.registry import all_cases
from bedplate.hal.suite.run import CaseResult
from bedplate.hal.suite.subject import Subject
from bedplate.hal.suite.worker import run_case
from bedplate.hal.template import create
from bedplate.kernels.api import ReferenceOracle


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of registrations that is searched, and data of the test's own."""
    made = tmp_path / "hal.d"
    made.mkdir(mode=0o755)
    monkeypatch.setenv("BEDPLATE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("BEDPLATE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv(DIRECTORIES_VARIABLE, str(made))
    return made


def listed(name: str) -> doctor.ListedBackend:
    """A backend as `bedplate hal list` shows it; `cpu` must be whole beside it."""
    found = {backend.name: backend for backend in doctor.listing()}
    assert found["cpu"].reason is None
    assert found["cpu"].devices
    return found[name]


def test_weathernext_185_a_struct_of_24_bytes_where_more_are_known() -> None:
    """Accepted; what the caller does not know is zero, and nothing aborts."""
    with open_device("cpu", trust_claims=True) as device:
        info, out = new("bp_memory_info", bytes=64, alignment=64), ffi.new("uint64_t *")
        info.head.struct_size = 24
        info.reserved[0] = 0x5A5A  # behind what the caller knows: not read
        assert device.api.mem.create(device.handle, info, out) == abi.BP_OK
        info.host = ffi.cast("void *", 0x5A5A)
        assert device.api.mem.describe(device.handle, out[0], info) == abi.BP_OK
        assert (info.bytes, int(ffi.cast("uintptr_t", info.host))) == (64, 0x5A5A)


@pytest.mark.parametrize("change", [-32, 0, 8, 64])
def test_aws_neuron_sdk_1095_smaller_and_larger_answers_both_work(change: int) -> None:
    """A backend of another age answers with a bp_api of another size."""
    whole = ffi.sizeof("bp_api")
    storage = ffi.new("char[]", whole + 64)
    ffi.memmove(storage, load("cpu").api, whole)
    answer = ffi.cast("bp_api *", storage)
    answer.head.struct_size = whole + change
    out = ffi.new("const bp_api **")
    assert library().bp_hal_adopt(answer, 0, abi.ABI_MINOR, out) == abi.BP_OK
    count = ffi.new("uint32_t *")
    assert out[0].core.enumerate(count) == abi.BP_OK
    assert out[0].head.struct_size == whole


def test_aws_neuron_sdk_1095_a_stubborn_backend_is_one_line(folder: Path) -> None:
    """It insists on one size of bp_host; it is refused, the others keep working."""
    insists = "if (host->head.struct_size != sizeof(*host) - 8) return -2;"
    body = f"QUERY {{ {insists} *out = &api; return 0; }}"
    foreign.register(foreign.build(folder, "neuron", body), "neuron")
    reason = listed("neuron").reason or ""
    assert "refused the query for ABI major 0 with status -2" in reason
    assert "\n" not in reason


def test_hip_ep_875_a_null_where_a_newer_table_was_asked_for(folder: Path) -> None:
    """A host that does not know a service answers null, and an ext that is absent is null."""
    body = """
    QUERY {
        bp_text name = {"bp.of.a.newer.host.9", 20};
        if (host->service(host->user, &name)) return -12;
        *out = &api;
        return 0;
    }"""
    foreign.register(foreign.build(folder, "hip", body), "hip")
    backend = load("hip")
    data = ffi.new("char[]", b"bp.ops.1")
    assert backend.api.ext(ffi.new("bp_text *", {"data": data, "length": 8})) == ffi.NULL
    with pytest.raises(Unsupported, match=r"no table bp\.ops\.1"):
        _ = backend.ops


def test_level_zero_196_and_209_a_missing_entry_takes_no_device_away(
    folder: Path, conform_module: Path
) -> None:
    """A whole backend without the tables module and capture: listed, opened, and refusing."""
    create("zero", folder.parent / "zero")
    subprocess.run(["make", "-s", "-C", str(folder.parent / "zero")], check=True)
    for name in ("bedplate_hal_zero.so", "zero.json"):
        (folder.parent / "zero" / name).rename(folder / name)
    assert [device["id"] for device in listed("zero").devices] == ["zero:0"]
    with open_device("zero", trust_claims=True) as device:
        with pytest.raises(Unsupported, match=r"no module\.load"):
            device.load_native_module(conform_module)
        status = device.api.capture.begin(device.handle, 1)
        assert status == abi.BP_UNSUPPORTED
        assert device.api.mem.pin(device.handle, ffi.NULL, 1, ffi.NULL) == abi.BP_UNSUPPORTED


def test_a_backend_without_its_needed_entries_is_listed_with_the_reason(folder: Path) -> None:
    """enumerate works, properties is absent: named, and the others keep working."""
    foreign.register(foreign.build(folder, "half"), "half")
    assert listed("half").reason == "this backend has no core.properties"


@pytest.mark.timeout(120)
def test_prismml_237_a_wrong_op_is_withdrawn_for_that_driver_and_device(tmp_path: Path) -> None:
    """An op that is claimed and far off without a message; other devices keep theirs."""
    backend = load("liar")
    (info,) = [info for info in device_infos(backend) if lie_of(info) == "wrong_op"]
    wanted = [case for case in all_cases().values() if case.capability == "ops"]
    results = []
    for case in wanted:
        if case.tier != "quick" or case.polarity == "absent":
            continue
        subject = Subject(backend, info.index, ReferenceOracle())
        verdict, reason = run_case(case, subject)
        subject.close()
        results.append(CaseResult(case.name, case.capability, verdict, reason))
    made = certificate.make(backend, info, "quick", wanted, results)
    assert made["capabilities"]["ops"]["verdict"] == "withdrawn"
    certificate.store(made, tmp_path)
    assert certificate.find(backend, info, tmp_path) is not None
    for other in (replace(info, driver="another"), replace(info, name="another")):
        assert certificate.find(backend, other, tmp_path) is None
