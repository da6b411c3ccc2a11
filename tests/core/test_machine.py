import subprocess
from pathlib import Path

from bedplate.core import machine


def test_the_machine_is_named_after_its_processor() -> None:
    """Results are published; the host's own name is nobody's business."""
    facts = machine.machine_facts()
    assert facts.cores >= 1
    assert facts.name.endswith(f"-{facts.cores}c")
    assert facts.name.replace("-", "").isalnum()
    assert facts.name == facts.name.lower()


def test_a_processor_without_a_name_is_its_architecture(tmp_path: Path) -> None:
    """ARM kernels list no model name."""
    source = tmp_path / "cpuinfo"
    source.write_text("processor : 0\nBogoMIPS : 50\n")
    assert machine.cpu_model(source)


def test_a_tree_knows_its_commit_and_whether_it_differs(tmp_path: Path) -> None:
    """A number measured on edited files must say so."""
    assert machine.tree_facts(tmp_path / "none") is None
    git = ["git", "-C", str(tmp_path), "-c", "user.name=t", "-c", "user.email=t@example.invalid"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    clean = machine.tree_facts(tmp_path)
    assert clean is not None
    assert (len(clean.commit), clean.dirty) == (40, False)
    (tmp_path / "new").write_text("")
    assert machine.tree_facts(tmp_path) == machine.TreeFacts(clean.commit, True)
