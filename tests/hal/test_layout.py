"""Offsets and sizes: the generator's arithmetic, cffi's, the compiler's, and Rust's."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from bedplate.hal import abi
from bedplate.hal.native import ffi

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("kind", list(abi.LAYOUT))
def test_cffi_agrees(kind: str) -> None:
    """What Python fills lies where C reads it."""
    size, offsets = abi.LAYOUT[kind]
    assert ffi.sizeof(kind) == size
    assert {name: ffi.offsetof(kind, name) for name in offsets} == offsets


@pytest.mark.parametrize(("compiler", "standard"), [("gcc", "c11"), ("g++", "c++20")])
def test_the_compiler_agrees(compiler: str, standard: str, tmp_path: Path) -> None:
    """A program that prints every offset says the same, in C and in C++."""
    lines = ["#include <cstdio>" if compiler == "g++" else "#include <stdio.h>"]
    lines += ['#include "bedplate/hal_layout.h"', "int main(void) {"]
    for kind, (_, offsets) in abi.LAYOUT.items():
        lines.append(f'printf("{kind} %zu\\n", sizeof({kind}));')
        for name in offsets:
            lines.append(f'printf("{kind}.{name} %zu\\n", offsetof({kind}, {name}));')
    source = tmp_path / ("layout.c" if compiler == "gcc" else "layout.cc")
    source.write_text("\n".join([*lines, "return 0; }", ""]))
    program = tmp_path / "layout"
    include = ROOT / "native" / "hal" / "include"
    flags = [f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-pedantic", f"-I{include}"]
    subprocess.run([compiler, *flags, "-o", program, source], check=True)
    told = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    wanted = []
    for kind, (size, offsets) in abi.LAYOUT.items():
        wanted.append(f"{kind} {size}")
        wanted += [f"{kind}.{name} {offset}" for name, offset in offsets.items()]
    assert told.splitlines() == wanted


def test_a_wrong_offset_does_not_compile(tmp_path: Path) -> None:
    """The asserts of hal_layout.h are alive: a field moved in hal.h is an error."""
    include = tmp_path / "bedplate"
    shutil.copytree(ROOT / "native" / "hal" / "include" / "bedplate", include)
    header = include / "hal.h"
    text = header.read_text()
    moved = text.replace("    uint64_t tag;\n", "    uint64_t before;\n    uint64_t tag;\n")
    assert moved != text
    source = tmp_path / "layout.c"
    source.write_text('#include "bedplate/hal_layout.h"\n')
    command = ["gcc", "-std=c11", "-fsyntax-only", f"-I{tmp_path}", str(source)]
    assert subprocess.run(command, check=False).returncode == 0
    header.write_text(moved)
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert told.returncode != 0
    assert "offsetof(bp_batch, tag) == 8" in told.stderr


def test_rust_agrees(tmp_path: Path) -> None:
    """The repr(C) file compiles, which checks every size."""
    rustc = shutil.which("rustc")
    if rustc is None:
        pytest.skip("NOT RUN: there is no rustc")
    command = [rustc, "--crate-type", "lib", "--edition", "2021"]
    command += ["-o", str(tmp_path / "hal.rlib"), str(ROOT / "native" / "hal" / "rust" / "hal.rs")]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
