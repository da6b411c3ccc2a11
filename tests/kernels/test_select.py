import pytest

from bedplate.hal.api import Device, Unavailable, open_device
from bedplate.kernels import select as selecting
from bedplate.kernels.api import LEVELS, IsaError, levels_of, select


def test_levels_end_at_what_the_processor_has(device: Device) -> None:
    """The allowed levels are those up to the device's property cpu.isa."""
    best = device.info.properties["cpu.isa"]
    assert levels_of(device) == LEVELS[: LEVELS.index(best) + 1]


def test_an_unknown_level_is_refused(device: Device) -> None:
    """The message lists the levels."""
    with pytest.raises(IsaError, match="'sse9', known: generic, avx2"):
        select(device, isa="sse9")


def test_the_environment_lowers_the_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """BEDPLATE_CPU_ISA=generic leaves only the portable loops, and a higher level is an error."""
    monkeypatch.setenv("BEDPLATE_CPU_ISA", "generic")
    with open_device("cpu") as lowered:
        assert select(lowered).isa == "generic"
        with pytest.raises(
            IsaError, match="does not run avx2, its best level is generic"
        ) as caught:
            select(lowered, isa="avx2")
        assert caught.value.exit_code == 3


def test_a_wrong_environment_level_is_refused_at_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """A level that does not exist never reaches a kernel: exit 3."""
    monkeypatch.setenv("BEDPLATE_CPU_ISA", "avx9000")
    with pytest.raises(Unavailable, match="avx9000") as caught:
        open_device("cpu")
    assert caught.value.exit_code == 3


def test_a_level_that_was_not_built(
    device: Device, monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    """Named, it is an error; otherwise the next lower level is used."""
    monkeypatch.setattr(selecting, "native_library_dir", lambda: tmp_path)
    assert select(device).isa == "generic"
    if "avx2" in levels_of(device):
        with pytest.raises(IsaError, match=r"libbedplate_kernels_cpu_avx2\.so is missing"):
            select(device, isa="avx2")
