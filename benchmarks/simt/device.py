"""The GPU's side of the comparison: fuzzed forms, and counters of pinned access patterns.

    python3 -m benchmarks.simt.device DIR OUT [--results FILE] [--seconds N] [--skip-counters]

Needs numpy, a CUDA driver and, for counters, ncu; no build of Bedplate. With --results, for which
`src` is on the path, how much was equal is stored as numbers of the commit that DIR is from.
DIR is what `fuzz generate` and `patterns generate` wrote. OUT gets `fuzz.json` (a verdict for each
form), `raw.npz` (results of the first chunk that differs, for `fuzz compare`), and
`counters.json`. A form is `equal`, `payload` (equal but for which NaN), `differs`, or, for
approximate ones, `within` or `outside` of the ISA's bound.

Exit code 0 when all is equal, 1 when something is not, 3 when something was NOT RUN.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.simt import patterns, tuples
from benchmarks.simt.driver import Cuda, CudaError

RAW_BYTES = 14 << 20
"""Of raw results, which hardly compress; a file that comes back may have a limit."""
RELATIVE = {"rcp": 2.0**-23, "sqrt": 2.0**-23, "rsqrt": 2.0**-22.9, "ex2": 2.0**-22.5}
"""The error that PTX states for f32, in parts of the result."""
DIVISION_ULPS = 2.0
SMALL = 1 << 16
"""Tuples of programs, which have more results than two."""
CHECKED: dict[str, Any] = {"f32": np.float32, "f64": np.float64}


def truth(name: str, values: list[np.ndarray]) -> Any:
    """What an approximate form comes near to, in f64 or wider."""
    with np.errstate(all="ignore"):
        wide = [value.astype(np.longdouble) for value in values]
        match name.split(".")[0]:
            case "rcp":
                return 1 / wide[0]
            case "sqrt":
                return np.sqrt(wide[0])
            case "rsqrt":
                return 1 / np.sqrt(wide[0])
            case "ex2":
                return np.exp2(wide[0])
            case _:
                return wide[0] / wide[1]


def bound(told: dict[str, Any], got: np.ndarray) -> tuple[str, float, str]:
    """Whether an approximate result is near enough: a verdict, the worst ulp, and where.

    Looked at are normal operands and normal results below 2**125; the rest is exact rules of
    zeros, subnormals and infinities, which `fuzz compare` shows.
    """
    kind = CHECKED[told["inputs"][0]]
    values = [data.view(kind) for data in tuples.inputs(told)]
    result, least = got.view(kind), np.finfo(kind).tiny
    right = truth(told["name"], values)
    with np.errstate(all="ignore"):
        normal = np.all([(np.abs(v) >= least) & (np.abs(v) < 2.0**125) for v in values], axis=0)
        normal &= (np.abs(right) >= least) & (np.abs(right) < 2.0**125)
        unit = np.ldexp(np.longdouble(1), np.frexp(right)[1] - 1 - np.finfo(kind).nmant)
        error = np.where(normal, np.abs(result.astype(np.longdouble) - right) / unit, 0)
    error = np.where(np.isnan(error), np.inf, error)
    worst = int(np.argmax(error))
    opcode = told["name"].split(".")[0]
    # f64's rsqrt has the exponent and 20 bits only
    part = RELATIVE.get(opcode, 0) * (2.0**32 if kind is np.float64 else 1)
    with np.errstate(all="ignore"):
        most = np.where(normal, part * np.abs(right) / unit, 0)
    most = np.full_like(most, DIVISION_ULPS) if opcode == "div" else most + 2.0**-20
    operands = ", ".join(f"{data[worst]:#x}" for data in tuples.inputs(told))
    where = f"({operands}) gave {got[worst]:#x}"
    return ("within" if (error <= most).all() else "outside", float(error[worst]), where)


class Fuzz:
    """Runs each form; operands of a type are copied to the device once."""

    def __init__(self, cuda: Cuda, folder: Path) -> None:
        self.cuda = cuda
        self.pools: dict[tuple[str, int, bool], int] = {}
        self.results = [cuda.allocate(8 * tuples.MOST) for _ in range(2)]
        self.results += [cuda.allocate(8 * SMALL) for _ in range(6)]
        self.expected = dict(np.load(folder / "expected.npz"))
        self.poison = np.full(8 * tuples.MOST, 0xA5, np.uint8)
        self.raw: dict[str, np.ndarray] = {}
        self.raw_bytes = 0

    def pool(self, kind: str, place: int, data: np.ndarray, special: bool) -> int:
        """Where the operands of a place are."""
        key = (kind, place, special)
        if key not in self.pools:
            self.pools[key] = self.cuda.allocate(8 * tuples.MOST)
            whole = tuples.operand(kind, place)
            if special:
                whole = np.where(whole == 0, whole.dtype.type(7), whole)
            self.cuda.write(self.pools[key], whole)
        assert (data == tuples.operand(kind, place)[: len(data)]).all() or special
        return self.pools[key]

    def run(self, module: Any, told: dict[str, Any]) -> list[np.ndarray]:
        """The results of one form."""
        given = tuples.inputs(told)
        addresses = [
            self.pool(kind, place, given[place], bool(told["divides"] and place == 1))
            for place, kind in enumerate(told["inputs"])
        ]
        kinds = [tuples.WORDS[tuples.bits(kind)] for kind in told["outputs"]]
        places = self.results[: len(kinds)]
        for place, kind in zip(places, kinds, strict=True):
            self.cuda.write(place, self.poison[: told["count"] * np.dtype(kind).itemsize])
        grid = told["count"] // 256
        self.cuda.launch(module, told["symbol"], grid, 256, [*addresses, *places])
        count = told["count"]
        return [self.cuda.read(p, count, k) for p, k in zip(places, kinds, strict=True)]

    def judge(self, told: dict[str, Any], results: list[np.ndarray]) -> dict[str, Any]:
        """The verdict on a form; keeps the first chunk that differs."""
        if told["approximate"]:
            verdict, worst, where = bound(told, results[0])
            return {"verdict": verdict, "worst_ulp": worst, "where": where}
        if "tolerance" in told:
            ours = self.expected[told["name"]].view(np.float32)
            difference = np.stack(results).view(np.float32).astype(np.float64) - ours
            worst = float(np.max(np.abs(difference)))
            verdict = "within" if worst <= told["tolerance"] else "outside"
            return {"verdict": verdict, "worst": worst, "tolerance": told["tolerance"]}
        verdict, chunks = "equal", 0
        for number, (result, kind) in enumerate(zip(results, told["outputs"], strict=True)):
            got = tuples.digests(result)
            wrong = [
                n
                for n, (a, b) in enumerate(zip(got, told["digests"][number], strict=True))
                if a != b
            ]
            if not wrong:
                continue
            chunks = max(chunks, len(wrong))
            numbers = tuples.digests(tuples.without_payloads(result, kind))
            same = numbers == told["numbers"][number]
            verdict = "payload" if same and verdict != "differs" else "differs"
            self.keep(told["name"], number, wrong[0], result)
        return {"verdict": verdict, "chunks": chunks}

    def keep(self, name: str, number: int, chunk: int, result: np.ndarray) -> None:
        """Raw results travel while there is room."""
        piece = result[chunk * tuples.CHUNK : (chunk + 1) * tuples.CHUNK]
        if self.raw_bytes + piece.nbytes <= RAW_BYTES:
            self.raw[f"{name}|{number}|{chunk}"] = piece.copy()
            self.raw_bytes += piece.nbytes


def fuzz(cuda: Cuda, folder: Path, out: Path, seconds: float) -> dict[str, int]:
    """Run all forms; how many there are of each verdict."""
    manifest = json.loads((folder / "manifest.json").read_text())
    by_module: dict[str, list[dict[str, Any]]] = {}
    for told in manifest["forms"]:
        by_module.setdefault(told["module"], []).append(told)
    told_of: dict[str, dict[str, Any]] = {}
    runner, began = Fuzz(cuda, folder), time.monotonic()
    for name, forms in by_module.items():
        late = time.monotonic() - began > seconds
        try:
            module = None if late else cuda.load((folder / name).read_text())
        except CudaError as error:
            told_of |= {told["name"]: {"verdict": "NOT RUN", "why": str(error)} for told in forms}
            continue
        for told in forms:
            try:
                if late:
                    raise CudaError("out of time")
                verdict = runner.judge(told, runner.run(module, told))
            except CudaError as error:
                verdict = {"verdict": "NOT RUN", "why": str(error)}
            told_of[told["name"]] = verdict
            told_of[told["name"]]["tuples"] = told["count"]
        with contextlib.suppress(CudaError):
            if module is not None:
                cuda.unload(module)
    raw: dict[str, Any] = dict(runner.raw)
    np.savez_compressed(out / "raw.npz", **raw)
    counted: dict[str, int] = {}
    for verdict in told_of.values():
        counted[verdict["verdict"]] = counted.get(verdict["verdict"], 0) + 1
    whole: dict[str, Any] = {
        "device": cuda.name,
        "seconds": time.monotonic() - began,
        "verdicts": counted,
    }
    whole |= {"tuples": sum(t.get("tuples", 0) for t in told_of.values()), "forms": told_of}
    whole |= {"left_out": manifest["left_out"], "refused": manifest["refused"]}
    (out / "fuzz.json").write_text(json.dumps(whole, indent=1))
    for name, told in told_of.items():
        if told["verdict"] not in ("equal", "within"):
            print(f"{told['verdict']:<9}{name} {told.get('where', told.get('why', ''))}")
    return counted


def keep(results: Path, folder: Path, out: Path, driver: str, counters: bool) -> None:
    """Store how many forms and counters were equal, of how many."""
    from benchmarks.simt.record import counted

    from bedplate.core.machine import TreeFacts
    from bedplate.core.measurement import MeasuredDevice

    tree = TreeFacts(**json.loads((folder / "manifest.json").read_text())["tree"])
    told = json.loads((out / "fuzz.json").read_text())
    common: dict[str, Any] = {
        "versions": {"driver": driver},
        "device": MeasuredDevice("cuda:0", told["device"], driver=driver),
    }
    verdicts = told["verdicts"]
    equal = verdicts.get("equal", 0) + verdicts.get("within", 0)
    quality = {"verdicts": verdicts, "tuples": told["tuples"], "refused": len(told["refused"])}
    forms = {"goal": len(told["forms"]), "quality": quality, **common}
    counted(results, tree, "forms_equal_to_a_gpu", "forms", equal, **forms)
    if counters:
        rows = json.loads((out / "counters.json").read_text())
        equal = sum(row["equal"] for row in rows)
        quality = {"patterns": len({row["pattern"] for row in rows})}
        fields = {"goal": len(rows), "quality": quality, **common}
        counted(results, tree, "counters_equal_to_a_gpu", "counters", equal, **fields)


def main() -> int:
    """Run what there is a device for."""
    parser = argparse.ArgumentParser(description="a GPU beside the software GPU")
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("--skip-counters", action="store_true")
    parser.add_argument("--results", type=Path, help="the file that records go to")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    try:
        cuda = Cuda()
    except CudaError as error:
        print(f"NOT RUN: {error}", file=sys.stderr)
        return 3
    counted = fuzz(cuda, given.folder, given.out, given.seconds)
    print(f"forms on {cuda.name}: {counted}", flush=True)
    code = 3 if "NOT RUN" in counted else 0
    if set(counted) - {"equal", "within", "NOT RUN"}:
        code = 1
    counters = 3
    if not given.skip_counters:
        counters = patterns.measure(given.folder, given.out)
        code = max((code, counters), key=(0, 3, 1).index)
    if given.results is not None:
        keep(given.results, given.folder, given.out, cuda.version, counters != 3)
    return code


if __name__ == "__main__":
    sys.exit(main())
