"""`python -m bedplate.hal.spec [--check|--report|--tag]`: write what the spec implies.

`--check` writes nothing: a file that is not what the spec implies is named,
and the exit code is 1. `--report` compares the spec with the newest released
version and exits with 1 unless all changes are appends. `--tag` keeps the
present version with its headers under `native/hal/abi`, for ever.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bedplate.hal.spec.header import hal_h, layout_h, loader_h
from bedplate.hal.spec.model import Spec, load
from bedplate.hal.spec.page import page
from bedplate.hal.spec.python import module
from bedplate.hal.spec.report import report
from bedplate.hal.spec.rust import rust
from bedplate.hal.spec.stubs import stubs_c, stubs_h
from bedplate.hal.spec.tags import SPEC, TagError, make


def outputs(spec: Spec) -> dict[str, str]:
    """Path in the tree to text, for everything that is generated."""
    return {
        "native/hal/include/bedplate/hal.h": hal_h(spec),
        "native/hal/include/bedplate/hal_loader.h": loader_h(spec),
        "native/hal/include/bedplate/hal_layout.h": layout_h(spec),
        "native/hal/loader/stubs.h": stubs_h(spec),
        "native/hal/loader/stubs.c": stubs_c(spec),
        "native/hal/rust/hal.rs": rust(spec),
        "src/bedplate/hal/abi.py": module(spec),
        "docs/reference/hal-abi.md": page(spec),
    }


def stale(root: Path) -> list[str]:
    """The generated files under `root` that differ from what its spec implies."""
    found = []
    for name, text in outputs(load(root / SPEC)).items():
        path = root / name
        if not path.exists() or path.read_text() != text:
            found.append(name)
    return found


def main(arguments: list[str] | None = None) -> int:
    """Write, compare, report or tag; 1 when a file is not current or a change is refused."""
    parser = argparse.ArgumentParser(prog="python -m bedplate.hal.spec", description=__doc__)
    act = parser.add_mutually_exclusive_group()
    act.add_argument("--check", action="store_true", help="write nothing, exit 1 when stale")
    act.add_argument("--report", action="store_true", help="changes since the newest tag")
    act.add_argument("--tag", action="store_true", help="keep this version's headers")
    parser.add_argument("--root", type=Path, default=Path.cwd(), help="the source tree")
    options = parser.parse_args(arguments)
    if options.check:
        names = stale(options.root)
        for name in names:
            print(f"{name} is not what {SPEC} implies; run python -m bedplate.hal.spec")
        return 1 if names else 0
    if options.report:
        lines, refused = report(options.root)
        print("\n".join(lines))
        return 1 if refused else 0
    if options.tag:
        return _tag(options.root)
    for name, text in outputs(load(options.root / SPEC)).items():
        path = options.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return 0


def _tag(root: Path) -> int:
    if names := stale(root):
        print(f"{names[0]} is not what {SPEC} implies; run python -m bedplate.hal.spec first")
        return 1
    try:
        made = make(root)
    except TagError as error:
        print(error)
        return 1
    print(f"tagged {made.name} in {made.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
