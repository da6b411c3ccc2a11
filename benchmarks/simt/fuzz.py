"""Every form of one lane or one warp on seeded operands: what a GPU must give.

    python -m benchmarks.simt.fuzz generate DIR [--only OPCODE,...]
    python -m benchmarks.simt.fuzz compare DIR RESULT

`generate` writes kernels, a manifest and digests of what the compiled engine gives;
the reference must give the same on the first 64 tuples of each form. A GPU machine runs `device`
on that folder. `compare` reads what it wrote and names form, operands, ours, the device's.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.simt import memories, tuples, warps
from benchmarks.trial import ROOT

from bedplate.core.machine import tree_facts
from bedplate.simt.api import Machine, Reference
from bedplate.simt.interpreter.engine import Observer
from bedplate.simt.operands import _types
from bedplate.simt.signature import table
from bedplate.simt.signature.base import Form

HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"
FORM_TUPLES, OPCODE_TUPLES = 100_000, 1_000_000
PIECE = 40
WARP = ("vote", "shfl", "match", "redux")
APPROXIMATE = re.compile(r"\.(approx|full)\b")
PROGRAMS = "in `warps` and `memories`"
LEFT_OUT = {
    "cvta": "its result is an address of the machine",
    "ld": PROGRAMS + "; of .param the parameters of every kernel",
    "st": PROGRAMS + "; not .param, which is of calls",
    **dict.fromkeys(("atom", "red"), PROGRAMS + ", one lane an address"),
    **dict.fromkeys(("mma", "wmma"), PROGRAMS + ", with a tolerance"),
    **dict.fromkeys(("ldmatrix", "cp", "bar", "barrier", "activemask"), PROGRAMS),
}
CONTROL = "control flow: it has no result of its own"
MASK = "0xffffffff"


def kernel(name: str, symbol: str, form: Form, slots: dict[str, str]) -> tuple[str, dict[str, Any]]:
    """A kernel that applies an instruction to each tuple, and its line of the manifest."""
    types = _types(form, slots)
    kinds: list[str] = []
    declared, body, given, results = [], [], [], []
    flags = {place.name for place in (*form.inputs, *form.outputs) if place.kind == "carry"}

    def loaded(kind: str) -> str:
        number = len(kinds)
        kinds.append(kind)
        bytes = tuples.bits(kind) // 8
        half = kind in ("f16", "bf16")
        load = "b16" if half else "u32" if kind == "pred" else kind
        register = f"{load[0]}16" if tuples.bits(kind) == 8 else load
        declared.append(f".reg .{register} %i{number};")
        body.extend(
            [
                f"ld.param.u64 %rd, [p{number}];",
                f"mad.wide.u32 %rd, %t, {bytes}, %rd;",
                f"ld.global.{load} %i{number}, [%rd];",
            ]
        )
        return f"%i{number}"

    for place in form.inputs:
        if place.kind == "carry":
            continue
        if form.opcode in WARP and place.name == "m":
            given.append(MASK)
        elif form.opcode == "shfl" and place.name == "c":
            given.append("0x1f" if slots.get("mode") != "up" else "0")
        elif types[place.name].name == "pred":
            register = loaded("pred")
            declared.append(f".reg .pred %q{register[2:]};")
            body.append(f"and.b32 {register}, {register}, 1;")
            body.append(f"setp.ne.u32 %q{register[2:]}, {register}, 0;")
            given.append(f"%q{register[2:]}")
        else:
            given.append(loaded(types[place.name].name))
    if "in" in flags:
        # a borrow is a carry of the other kind, so the flag is set by its own instruction
        setter = "sub" if form.opcode == "subc" else "add"
        first, second = loaded("u32"), loaded("u32")
        declared.append(".reg .u32 %cf;")
        body.append(f"{setter}.cc.u32 %cf, {first}, {second};")
    for place in form.outputs:
        if place.kind == "carry":
            continue
        kind = types[place.name].name
        wide = max(tuples.bits(kind), 16 if tuples.bits(kind) == 8 else 0)
        register = {"f16": "b16", "bf16": "b16", "pred": "pred"}.get(kind, f"{kind[0]}{wide}")
        declared.append(f".reg .{register} %o{place.name};")
        results.append((f"%o{place.name}", kind))
    body.append(f"{name} {'|'.join(r for r, _ in results)}, {', '.join(given)};")
    if "out" in flags:
        declared.append(".reg .u32 %co;")
        last = "subc" if form.opcode in ("sub", "subc") else "addc"
        body.append(f"{last}.u32 %co, 0, 0;")
        results.append(("%co", "u32"))
    outputs = []
    for number, (result, type_) in enumerate(results):
        register, kind = result, type_
        if kind == "pred":
            declared.append(f".reg .u32 %s{number};")
            body.append(f"selp.u32 %s{number}, 1, 0, {register};")
            register, kind = f"%s{number}", "u32"
        store = "b16" if kind in ("f16", "bf16") else kind
        body.append(f"ld.param.u64 %rd, [p{len(kinds) + number}];")
        body.append(f"mad.wide.u32 %rd, %t, {tuples.bits(kind) // 8}, %rd;")
        body.append(f"st.global.{store} [%rd], {register};")
        outputs.append(kind)
    parameters = ", ".join(f".param .u64 p{n}" for n in range(len(kinds) + len(outputs)))
    start = [".reg .b32 %t, %c;", ".reg .b64 %rd;", "mov.u32 %t, %tid.x;", "mov.u32 %c, %ctaid.x;"]
    start.insert(2, "\n".join(declared))
    start.append("mad.lo.u32 %t, %c, 256, %t;")
    text = "\n".join(
        [f".visible .entry {symbol}({parameters})", "{", *start, *body, "ret;", "}", ""]
    )
    told: dict[str, Any] = {"name": name, "symbol": symbol, "inputs": kinds, "outputs": outputs}
    told["divides"] = form.opcode in ("div", "rem") and form.group == "integer"
    told["approximate"] = bool(APPROXIMATE.search(name))
    return text, told


def chosen(only: set[str]) -> tuple[list[tuple[str, dict[str, Any]]], dict[str, str]]:
    """Every kernel, and the forms for which there is none with the reason."""
    made, left, perhaps = [], {}, 0
    for form in table.FORMS:
        if only and form.opcode not in only:
            continue
        if form.opcode in LEFT_OUT or not (form.lanewise or form.opcode in WARP):
            left[form.written] = LEFT_OUT.get(form.opcode, CONTROL)
            continue
        for name in form.spellings():
            slots = form.match(name.split(".")[1:])
            assert slots is not None
            made.append(kernel(name, f"k{perhaps}", form, slots))
            perhaps += 1
    spelled: dict[str, int] = {}
    for _, told in made:
        opcode = told["name"].split(".")[0]
        spelled[opcode] = spelled.get(opcode, 0) + 1
    for _, told in made:
        share = -(-OPCODE_TUPLES // spelled[told["name"].split(".")[0]])
        wanted = max(FORM_TUPLES, share)
        told["count"] = min(-(-wanted // tuples.CHUNK) * tuples.CHUNK, tuples.MOST)
    return made, left


def refused(texts: list[str], ptxas: Path) -> dict[int, str]:
    """Which of the kernels the assembler does not take, with its words."""
    found: dict[int, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "m.ptx"
        while True:
            kept = [n for n in range(len(texts)) if n not in found]
            lines = [n for n in kept for _ in range(texts[n].count("\n"))]
            source.write_text(HEAD + "".join(texts[n] for n in kept))
            words: list[str | Path] = [ptxas, "-arch=sm_90a", "-O0", "-o", "/dev/null", source]
            said = subprocess.run(words, capture_output=True, text=True, check=False)
            if said.returncode == 0:
                return found
            before = len(found)
            for line, why in re.findall(r"line (\d+); error\s*:\s*(.*)", said.stderr):
                at = int(line) - HEAD.count("\n") - 1
                if 0 <= at < len(lines):
                    found.setdefault(lines[at], why)
            if len(found) == before:
                raise SystemExit(f"ptxas failed without a line: {said.stderr[:500]}")


def expected(
    machine: Machine, loaded: Any, told: dict[str, Any], count: int, slow: bool
) -> list[Any]:
    """The results of one engine on the first tuples."""
    arrays = [machine.array(data[:count]) for data in tuples.inputs(told)]
    outs = [machine.empty(count, tuples.WORDS[tuples.bits(kind)]) for kind in told["outputs"]]
    values = [np.uint64(array.address) for array in (*arrays, *outs)]
    block = min(256, count)
    if slow:
        Reference(loaded[told["symbol"]], count // block, block, values).run(Observer())
    else:
        loaded[told["symbol"]][count // block, block](*values)
    results = [out.numpy().copy() for out in outs]
    for array in (*arrays, *outs):
        machine.memory.free(array.address)
    return results


def generate(folder: Path, only: set[str], ptxas: Path) -> int:
    """Write modules, manifest and digests; 1 when the two engines differ somewhere."""
    folder.mkdir(parents=True, exist_ok=True)
    made, left = chosen(only)
    tree = tree_facts(ROOT)
    programs = (*warps.programs(), *memories.programs())
    for _, told in programs:
        told["count"] = min(told["count"], tuples.MOST)
    made += [item for item in programs if not only or item[1]["name"].split(".")[0] in only]
    manifest: dict[str, Any] = {"forms": [], "left_out": left, "refused": {}}
    if tree is not None:
        manifest["tree"] = {"commit": tree.commit, "dirty": tree.dirty}
    kept_whole: dict[str, Any] = {}
    differ = 0
    with Machine(threads=1, memory=256 << 20) as machine:
        for start in range(0, len(made), PIECE):
            piece = made[start : start + PIECE]
            no = refused([text for text, _ in piece], ptxas)
            for number, why in no.items():
                manifest["refused"][piece[number][1]["name"]] = why
            kept = [item for number, item in enumerate(piece) if number not in no]
            text = HEAD + "".join(text for text, _ in kept)
            name = f"module{start // PIECE}.ptx"
            (folder / name).write_text(text)
            loaded = machine.load(text, name)
            for _, told in kept:
                told["module"] = name
                if not told["approximate"]:
                    fast = expected(machine, loaded, told, told["count"], False)
                    least = told.get("least", 64)
                    slow = expected(machine, loaded, told, least, True)
                    if any((a[:least] != b).any() for a, b in zip(fast, slow, strict=True)):
                        print(f"DIFFER: the engines on {told['name']}", flush=True)
                        differ += 1
                    if "tolerance" in told:
                        kept_whole[told["name"]] = np.stack(fast)
                    told["digests"] = [tuples.digests(result) for result in fast]
                    told["numbers"] = [
                        tuples.digests(tuples.without_payloads(result, kind))
                        for result, kind in zip(fast, told["outputs"], strict=True)
                    ]
                manifest["forms"].append(told)
            print(f"{min(start + PIECE, len(made))} of {len(made)} forms", flush=True)
            (folder / "manifest.json").write_text(json.dumps(manifest))
    np.savez_compressed(folder / "expected.npz", **kept_whole)
    return int(differ > 0)


def compare(folder: Path, result: Path) -> int:
    """Print the first tuples that differ for each form whose raw outputs came back."""
    manifest = {
        told["name"]: told for told in json.loads((folder / "manifest.json").read_text())["forms"]
    }
    raw = np.load(result)
    with Machine(threads=1, memory=256 << 20) as machine:
        for key in raw.files:
            name, output, chunk = key.rsplit("|", 2)
            told, at = manifest[name], int(chunk) * tuples.CHUNK
            loaded = machine.load((folder / told["module"]).read_text(), told["module"])
            ours = expected(machine, loaded, told, at + tuples.CHUNK, False)[int(output)][at:]
            wrong = np.nonzero(ours != raw[key])[0]
            print(f"{name} result {output}: {len(wrong)} of {tuples.CHUNK} tuples of chunk {chunk}")
            for n in wrong[:3]:
                operands = ", ".join(f"{data[at + n]:#x}" for data in tuples.inputs(told))
                print(f"    ({operands}): ours {ours[n]:#x}, the device's {raw[key][n]:#x}")
    return 0


def main() -> int:
    """One of the two commands."""
    parser = argparse.ArgumentParser(description="forms of PTX on seeded operands")
    commands = parser.add_subparsers(dest="command", required=True)
    make = commands.add_parser("generate")
    make.add_argument("folder", type=Path)
    make.add_argument("--only", default="")
    make.add_argument("--ptxas", type=Path, default=Path("/usr/local/cuda/bin/ptxas"))
    look = commands.add_parser("compare")
    look.add_argument("folder", type=Path)
    look.add_argument("result", type=Path)
    given = parser.parse_args()
    if given.command == "compare":
        return compare(given.folder, given.result)
    return generate(given.folder, set(filter(None, given.only.split(","))), given.ptxas)


if __name__ == "__main__":
    sys.exit(main())
