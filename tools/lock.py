"""Renew requirements/*.txt: exact versions and hashes, no addresses.

    .venv/bin/python tools/lock.py [NAME...]

Each `requirements/NAME.in` lists what we ask for; pip resolves it without
installing anything, and its report gives the version and the sha256 of every
file that it would take. The later files are resolved with the earlier ones as
constraints, so the repository holds one version of a library; all versions
together are written to constraints.txt, for peers.txt. Extra hashes
for the other Python versions and processors of `TARGETS` are added where a
release has a file for them. Local pip settings that add files of this machine
(find-links, constraints, extra indexes) are switched off.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "requirements"
ORDER = ["build", "run", "dev", "model"]
WITHOUT_DEPENDENCIES = {"model"}
# The first is the machine that everything must install on: Debian 12, whose
# Python is 3.11.2. A release may ask for a later 3.11, so the patch counts.
TARGETS = [("3.11.2", "x86_64"), ("3.12", "x86_64"), ("3.13", "x86_64"), ("3.11.2", "aarch64")]
GLIBC_MINORS = (5, 12, 17, 24, 26, 27, 28, 31, 34)

Pins = dict[str, tuple[str, set[str]]]


def resolve(arguments: list[str], requirements: str) -> Pins:
    """Name to (version, sha256 digests) of what pip would take."""
    environment = {k: v for k, v in os.environ.items() if k != "PIP_FIND_LINKS"}
    environment["PIP_CONFIG_FILE"] = os.devnull
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "wanted.txt"
        source.write_text(requirements)
        report = Path(scratch) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run"]
        command += ["--ignore-installed", "--report", str(report), "-r", str(source)]
        outcome = subprocess.run(
            command + arguments, env=environment, capture_output=True, check=False
        )
        if outcome.returncode != 0:
            raise SystemExit(outcome.stderr.decode())
        found = json.loads(report.read_text())["install"]
    pins: Pins = {}
    for item in found:
        name = item["metadata"]["name"].lower().replace("_", "-").replace(".", "-")
        digest = item["download_info"]["archive_info"]["hashes"]["sha256"]
        pins[name] = (item["metadata"]["version"], {digest})
    return pins


def add_other_targets(pins: Pins) -> None:
    """Add the digests that the other targets would take, version by version."""
    for python, machine in TARGETS[1:]:
        platforms = [f"--platform=manylinux_2_{minor}_{machine}" for minor in GLIBC_MINORS]
        platforms += [f"--platform=manylinux{tag}_{machine}" for tag in ("1", "2010", "2014")]
        with tempfile.TemporaryDirectory() as target:
            arguments = ["--no-deps", "--only-binary=:all:", f"--python-version={python}"]
            arguments += [*platforms, f"--target={target}"]
            for name, (version, digests) in pins.items():
                try:
                    digests.update(resolve(arguments, f"{name}=={version}\n")[name][1])
                except SystemExit:
                    print(f"  {name} {version} has no file for {python} {machine}")


def render(name: str, pins: Pins) -> str:
    lines = [f"# Made by tools/lock.py from {name}.in; do not edit."]
    for package, (version, digests) in sorted(pins.items()):
        hashes = [f"    --hash=sha256:{digest}" for digest in sorted(digests)]
        lines.append(f"{package}=={version} \\")
        lines.append(" \\\n".join(hashes))
    return "\n".join(lines) + "\n"


def main(names: list[str]) -> None:
    constraints: dict[str, str] = {}
    for name in ORDER:
        target = FOLDER / f"{name}.txt"
        if not names or name in names:
            pins = renew(name, constraints)
            target.write_text(render(name, pins))
            print(f"{target.name}: {len(pins)} packages", flush=True)
        for line in target.read_text().splitlines():
            if "==" in line:
                package, version = line.split(" ")[0].split("==")
                constraints[package] = version
    listed = "".join(f"{package}=={version}\n" for package, version in sorted(constraints.items()))
    (FOLDER / "constraints.txt").write_text(f"# Made by tools/lock.py; do not edit.\n{listed}")


def renew(name: str, constraints: dict[str, str]) -> Pins:
    with tempfile.TemporaryDirectory() as scratch:
        limits = Path(scratch) / "constraints.txt"
        limits.write_text("".join(f"{name}=={version}\n" for name, version in constraints.items()))
        arguments = ["--constraint", str(limits), f"--target={scratch}"]
        arguments += [f"--python-version={TARGETS[0][0]}", "--only-binary=:all:"]
        arguments += ["--no-deps"] if name in WITHOUT_DEPENDENCIES else []
        pins = resolve(arguments, (FOLDER / f"{name}.in").read_text())
    if name not in WITHOUT_DEPENDENCIES:
        add_other_targets(pins)
    return pins


if __name__ == "__main__":
    main(sys.argv[1:])
