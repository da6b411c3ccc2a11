import re
import subprocess
from pathlib import Path

import pytest

from bedplate.core import machine
from bedplate.hal.api import open_device


def test_the_machine_is_named_after_its_processor() -> None:
    """Results are published; the host's own name is nobody's business."""
    facts = machine.machine_facts()
    assert facts.cores >= 1
    assert facts.name.endswith(f"-{facts.cores}c")
    assert facts.name.replace("-", "").isalnum()
    assert facts.name == facts.name.lower()


AVX2 = "fpu avx2 fma f16c"
AVX512 = f"{AVX2} avx512f avx512bw avx512dq avx512vl"


@pytest.mark.parametrize(
    ("family", "model", "flags", "name", "isa"),
    [
        (25, 1, AVX2, "amd-epyc-f25m1", "avx2"),
        (26, 2, f"{AVX512} avx512_vnni avx512_bf16", "amd-epyc-f26m2", "avx512_bf16"),
        (25, 17, AVX512, "amd-epyc-f25m17", "avx512"),
        (23, 1, "fpu avx2", "amd-epyc-f23m1", "generic"),
        (6, 85, "avx512_vnni avx512_bf16", "amd-epyc-f6m85", "generic"),
    ],
)
def test_processors_of_one_name_are_told_apart(
    tmp_path: Path, family: int, model: int, flags: str, name: str, isa: str
) -> None:
    """A hypervisor's AMD EPYC may be any of them; the level needs every one below it."""
    block = (
        f"processor\t: 0\ncpu family\t: {family}\nmodel\t\t: {model}\n"
        f"model name\t: AMD EPYC Processor\nflags\t\t: {flags}\npower management:\n\n"
    )
    source = tmp_path / "cpuinfo"
    source.write_text(block + block.replace(f": {family}", ": 99"))
    facts = machine.machine_facts(source)
    assert (facts.name, facts.isa) == (f"{name}-{facts.cores}c", isa)
    assert facts.cpu == "AMD EPYC Processor"


def test_the_level_is_the_one_that_the_cpu_backend_finds() -> None:
    """Two readers of the same processor: the kernel's list here, cpuid there."""
    with open_device("cpu") as device:
        assert machine.isa_level() == device.info.properties["cpu.best_isa"]


def test_a_processor_without_a_name_is_its_architecture(tmp_path: Path) -> None:
    """ARM kernels list no model name."""
    source = tmp_path / "cpuinfo"
    source.write_text("processor : 0\nBogoMIPS : 50\n")
    assert machine.cpu_model(source)
    facts = machine.machine_facts(source)
    assert re.fullmatch(r"[a-z0-9-]+-\d+c", facts.name)
    assert "-f" not in facts.name
    assert facts.isa == "generic"


def test_a_tree_knows_its_commit_and_whether_it_differs(tmp_path: Path) -> None:
    """A number measured on edited files must say so."""
    assert machine.tree_facts(tmp_path / "none") is None
    git = ["git", "-C", str(tmp_path), "-c", "user.name=t", "-c", "user.email=t@example.invalid"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    clean = machine.tree_facts(tmp_path)
    assert clean is not None
    assert (len(clean.commit), clean.dirty) == (40, False)
    results = tmp_path / "benchmarks" / "results"
    results.mkdir(parents=True)
    (results / "new.json").write_text("")
    assert machine.tree_facts(tmp_path) == clean
    (tmp_path / "new").write_text("")
    assert machine.tree_facts(tmp_path) == machine.TreeFacts(clean.commit, True)
