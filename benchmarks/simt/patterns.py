"""Access patterns whose machine code is known: our counters beside the profiler's.

    python -m benchmarks.simt.patterns generate DIR
    python3 -m benchmarks.simt.patterns launch DIR     (what ncu watches)

One block of one warp, one access of the kind that counts, so that instructions are the
same on both sides. A load's value is stored, so it cannot be left out; a load pattern is
judged by counters of loads and a store pattern by those of stores. `measure` compares.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"
NAMES = {
    "global": (
        "l1tex__t_requests_pipe_lsu_mem_global_op_{}.sum",
        "l1tex__t_sectors_pipe_lsu_mem_global_op_{}.sum",
    ),
    "shared": (
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum",
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}.sum",
    ),
}
BYTES = 1 << 16


@dataclass(frozen=True)
class Pattern:
    """A space, load or store, the vector, and how an address follows from the lane."""

    name: str
    space: str
    way: str
    stride: int
    words: int = 1
    offset: int = 0
    lanes: int = 32
    mask: int = 31
    """The lane is cut to these bits first; 0 is a broadcast."""
    scatter: bool = False


def patterns() -> list[Pattern]:
    """All of them."""
    made = []
    for way in ("ld", "st"):
        for stride in (1, 2, 3, 4, 5, 8, 16, 32):
            made.append(Pattern(f"global_{way}_stride{stride}", "global", way, 4 * stride))
        made += [Pattern(f"global_{way}_v{n}", "global", way, 4 * n, n) for n in (2, 4)]
        made.append(Pattern(f"global_{way}_misaligned4", "global", way, 4, offset=4))
        made.append(Pattern(f"global_{way}_misaligned16", "global", way, 4, offset=16))
        made.append(Pattern(f"global_{way}_half", "global", way, 4, lanes=16))
        made.append(Pattern(f"global_{way}_scatter", "global", way, 4, scatter=True))
        for stride in (1, 2, 3, 4, 8, 16, 17, 32, 33):
            made.append(Pattern(f"shared_{way}_stride{stride}", "shared", way, 4 * stride))
        made += [Pattern(f"shared_{way}_v{n}", "shared", way, 4 * n, n) for n in (2, 4)]
        made.append(Pattern(f"shared_{way}_v4_stride128", "shared", way, 128, 4))
        made.append(Pattern(f"shared_{way}_v2_stride16", "shared", way, 16, 2))
        made.append(Pattern(f"shared_{way}_half", "shared", way, 4, lanes=16))
        made.append(Pattern(f"shared_{way}_half_stride32", "shared", way, 128, lanes=16))
    made.append(Pattern("global_ld_broadcast", "global", "ld", 4, mask=0))
    made.append(Pattern("shared_ld_broadcast", "shared", "ld", 4, mask=0))
    made.append(Pattern("shared_ld_pairs", "shared", "ld", 128, mask=15))
    return made


def text(pattern: Pattern) -> str:
    """The kernel; `data` is global memory, `out` is where a loaded value goes."""
    values = [f"%v{n}" for n in range(pattern.words)]
    listed = values[0] if pattern.words == 1 else "{" + ", ".join(values) + "}"
    vector = "" if pattern.words == 1 else f".v{pattern.words}"
    body = [
        f".visible .entry {pattern.name}(.param .u64 data, .param .u64 out)", "{",
        f".reg .b32 %t, %a, %x, %m, {', '.join(values)};", ".reg .b64 %rd<4>;", ".reg .pred %p;",
        "ld.param.u64 %rd1, [data];", "ld.param.u64 %rd2, [out];", "mov.u32 %t, %tid.x;",
    ]  # fmt: skip
    if pattern.space == "shared":
        body.insert(2, ".shared .align 128 .b32 tile[4160];")
    body.append(f"and.b32 %x, %t, {pattern.mask};")
    if pattern.scatter:
        body += ["mul.lo.u32 %x, %x, 40503;", "and.b32 %x, %x, 1023;"]
    body.append(f"mul.lo.u32 %a, %x, {pattern.stride};")
    body.append(f"add.u32 %a, %a, {pattern.offset};")
    if pattern.lanes < 32:
        body += [f"setp.ge.u32 %p, %t, {pattern.lanes};", "@%p bra END;"]
    if pattern.space == "shared":
        body += ["mov.u32 %m, tile;", "add.u32 %m, %m, %a;"]
        place = "[%m]"
    else:
        body += ["cvt.u64.u32 %rd3, %a;", "add.s64 %rd1, %rd1, %rd3;"]
        place = "[%rd1]"
    if pattern.way == "st":
        body += [f"add.u32 {value}, %t, {n};" for n, value in enumerate(values)]
        body.append(f"st.volatile.{pattern.space}{vector}.u32 {place}, {listed};")
    else:
        body.append(f"ld.volatile.{pattern.space}{vector}.u32 {listed}, {place};")
        body += [f"xor.b32 {values[0]}, {values[0]}, {value};" for value in values[1:]]
        body += ["mad.wide.u32 %rd2, %t, 4, %rd2;", f"st.global.u32 [%rd2], {values[0]};"]
    return "\n".join([*body, "END:", "ret;", "}", ""])


def names(pattern: Pattern) -> tuple[str, ...]:
    """The counters that judge a pattern."""
    return tuple(name.format(pattern.way) for name in NAMES[pattern.space])


def generate(folder: Path) -> int:
    """Write the kernels, and what our machine counts for each."""
    import numpy as np

    from bedplate.simt.api import Machine

    folder.mkdir(parents=True, exist_ok=True)
    whole = HEAD + "".join(map(text, patterns()))
    (folder / "patterns.ptx").write_text(whole)
    counted = {}
    with Machine(threads=1) as machine:
        loaded = machine.load(whole, "patterns.ptx")
        data, out = (machine.array(np.zeros(BYTES, np.uint8)) for _ in range(2))
        for pattern in patterns():
            run = loaded[pattern.name][1, 32](data, out, profile=True)
            assert run.report is not None
            metrics = run.report.metrics
            counted[pattern.name] = {name: metrics[name] for name in names(pattern)}
    (folder / "patterns.json").write_text(json.dumps(counted, indent=1))
    print(f"{len(counted)} patterns")
    return 0


def launch(folder: Path) -> int:
    """Start each kernel once; run under the profiler."""
    from benchmarks.simt.driver import Cuda

    cuda = Cuda()
    module = cuda.load((folder / "patterns.ptx").read_text())
    data, out = cuda.allocate(BYTES), cuda.allocate(BYTES)
    for pattern in patterns():
        cuda.launch(module, pattern.name, 1, 32, [data, out])
    return 0


def read(table: str) -> dict[str, dict[str, float]]:
    """Kernel to counter to value, from what `ncu --csv` prints, one counter a line."""
    lines = [line for line in table.splitlines() if line.startswith('"')]
    found: dict[str, dict[str, float]] = {}
    for row in csv.DictReader(io.StringIO("\n".join(lines))):
        kernel = row["Kernel Name"].split("(")[0].strip()
        value = row["Metric Value"].replace(",", "")
        found.setdefault(kernel, {})[row["Metric Name"]] = float(value or "nan")
    return found


def judged(
    expected: dict[str, dict[str, int]], got: dict[str, dict[str, float]]
) -> list[dict[str, object]]:
    """One row for each pattern and counter."""
    rows: list[dict[str, object]] = []
    for name, counters in expected.items():
        for counter, ours in counters.items():
            seen = got.get(name, {}).get(counter)
            row = {"pattern": name, "counter": counter, "ours": ours, "device": seen}
            rows.append(row | {"equal": seen == ours})
    return rows


def measure(folder: Path, out: Path) -> int:
    """Run under ncu and compare; 3 where there is no profiler."""
    if shutil.which("ncu") is None:
        print("counters NOT RUN: no ncu on this machine", file=sys.stderr)
        return 3
    wanted = sorted({name for pattern in patterns() for name in names(pattern)})
    words = [
        "ncu",
        "--clock-control",
        "none",
        "--csv",
        "--print-units",
        "base",
        "--metrics",
        ",".join(wanted),
    ]
    words += [sys.executable, "-m", "benchmarks.simt.patterns", "launch", str(folder)]
    try:
        said = subprocess.run(words, capture_output=True, text=True, check=False, timeout=200)
    except subprocess.TimeoutExpired:
        print("counters NOT RUN: ncu took more than 200 seconds", file=sys.stderr)
        return 3
    (out / "ncu.csv").write_text(said.stdout)
    got = read(said.stdout)
    if not got:
        print(
            f"counters NOT RUN: ncu gave none: {(said.stdout + said.stderr)[-400:]}",
            file=sys.stderr,
        )
        return 3
    rows = judged(json.loads((folder / "patterns.json").read_text()), got)
    (out / "counters.json").write_text(json.dumps(rows, indent=1))
    wrong = [row for row in rows if not row["equal"]]
    for row in wrong:
        print(f"counter {row['pattern']} {row['counter']}: ours {row['ours']}, GPU {row['device']}")
    bad = {row["pattern"] for row in wrong}
    print(f"patterns: {len(got)} seen, {len(set(got) - bad)} equal in every counter")
    return int(bool(wrong))


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("generate", "launch"):
        sys.exit("usage: python -m benchmarks.simt.patterns generate|launch DIR")
    sys.exit((generate if sys.argv[1] == "generate" else launch)(Path(sys.argv[2])))
