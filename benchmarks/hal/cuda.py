"""What the cuda backend adds to the driver, side by side in one process.

    python -m benchmarks.hal.cuda --out results.json [--quick] [--program FILE]

`bedplate_hal_bench_cuda` runs both sides of every quantity in every round, in
an order that changes; here they become measurements. Every value is a median.
`call_N` is the time to hand over N launches in one batch, `rate_N` until all
are done, `signal_1` with a signal behind each, beside an event record. The
goals: 50 ns a command in batches of 64, 0.97 of the driver's rates and
bandwidths, 1.03 of its time for a node of a graph.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from bedplate.core.machine import machine_facts, tree_facts
from bedplate.core.measurement import MeasuredDevice, Measurement, measured, store
from bedplate.core.paths import native_library_dir
from bedplate.core.samples import Better, compare, summarise
from bedplate.hal.api import open_device
from bedplate.hal.errors import HalError

ROOT = Path(__file__).resolve().parents[2]
BENCH = ROOT / "build" / "Release" / "native" / "hal" / "bedplate_hal_bench_cuda"
PEER = {
    "call_1": "cuLaunchKernel",
    "call_64": "cuLaunchKernel",
    "rate_1": "cuLaunchKernel, cuStreamSynchronize",
    "rate_64": "cuLaunchKernel, cuStreamSynchronize",
    "signal_1": "cuLaunchKernel, cuEventRecord",
    "round_trip": "cuLaunchKernel, cuStreamSynchronize",
    "copy_d2d": "cuMemcpyAsync",
    "copy_h2d": "cuMemcpyAsync",
    "copy_d2h": "cuMemcpyAsync",
    "graph_node": "cuGraphLaunch",
    "query": "cuEventQuery",
}
LEAST_RATIO = {"rate_1": 0.97, "rate_64": 0.97, "graph_node": 1 / 1.03}
LEAST_RATIO |= {name: 0.97 for name in PEER if name.startswith("copy_")}
ADDED_NS = 50.0


def run(program: Path, rounds: int) -> dict[str, list[float]]:
    """The values of each quantity, as printed; warm-up rounds are left out."""
    libraries = native_library_dir()
    command = [program, libraries / "hal.d" / "bedplate_hal_cuda.so"]
    command += [libraries / "conform" / "kernels.ptx", str(rounds)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    values: dict[str, list[float]] = defaultdict(list)
    warm = False
    for line in told.splitlines():
        name, _, value = line.partition(" ")
        if name == "round":
            warm = int(value) >= 0
        elif warm:
            values[name].append(float(value))
    return dict(values)


def describe(facts: dict[str, Any], values: dict[str, list[float]]) -> list[Measurement]:
    """Every quantity beside its peer, and what a command adds."""
    results = []
    for name, peer in PEER.items():
        better: Better = "higher" if name.startswith("copy_") else "lower"
        native = values[name + "_native"]
        fields = facts | {"name": f"cuda_{name}", "better": better}
        fields |= {"unit": "GB/s" if better == "higher" else "ns"}
        fields |= {"peer_name": peer, "peer_version": facts["device"].driver}
        ratio = compare(values[name], native, better)
        results.append(measured(summarise(values[name]), ratio=ratio, **fields))
    for size in (1, 64):
        pairs = zip(values[f"call_{size}"], values[f"call_{size}_native"], strict=True)
        added = [ours - native for ours, native in pairs]
        fields = facts | {"name": f"cuda_added_{size}", "better": "lower", "unit": "ns"}
        if size == 64:
            fields["goal"] = ADDED_NS
        results.append(measured(summarise(added), **fields))
    return results


def missed(result: Measurement) -> bool:
    """Whether a number with a goal misses it."""
    least = LEAST_RATIO.get(result.name.removeprefix("cuda_"))
    if least is not None and result.ratio is not None:
        return result.ratio < least
    return result.goal is not None and result.value is not None and result.value > result.goal


def main() -> int:
    """Measure, print and store; 1 when a goal is missed, 3 when NOT RUN."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--program", type=Path, default=BENCH)
    arguments = parser.parse_args()
    tree = tree_facts(ROOT)
    try:
        with open_device("cuda", trust_claims=True) as device:
            info = device.info
    except HalError as error:
        print(f"NOT RUN: {error.message}", file=sys.stderr)
        return 3
    if tree is None or not arguments.program.exists():
        lacking = "a git tree, for the commit" if tree is None else "`make build`, for its program"
        print(f"NOT RUN: the benchmark wants {lacking}", file=sys.stderr)
        return 3
    rounds = 15 if arguments.quick else 100
    values = run(arguments.program, rounds)
    uuid = info.properties["cuda.uuid"]
    facts: dict[str, Any] = {
        "system": "hal",
        "machine": machine_facts(),
        "versions": {"driver": info.driver},
        "device": MeasuredDevice(info.id, info.name, uuid, info.driver),
        "conditions": {"kernel": "scale, 1 block of 32", "timelines": "words"},
        "quality": {"suite": "bedplate hal conform cuda"},
        "rounds": rounds,
        "tree": tree,
    }
    results = describe(facts, values)
    for result in results:
        beside = f"{result.ratio:.3f} of {result.peer.name}" if result.peer else ""
        verdict = "  MISSED" if missed(result) else ""
        print(f"{result.name:<18}{result.value:>12.2f} {result.unit:<5}{beside}{verdict}")
    store(arguments.out, results)
    return 1 if any(missed(result) for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
