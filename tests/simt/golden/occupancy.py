"""Random launches and what NVIDIA's header says of them, as digests.

    python -m tests.simt.golden.occupancy --include CUDA/include

compiles `occupancy.c` against `cuda_occupancy.h` of CUDA 13.0 (wheel
nvidia-cuda-runtime 13.0.96), asks it about the first 100,000 launches of each
architecture, and writes occupancy.json: a digest of the first 2,000 answers, which
`make test` compares with ours, and one of all, which `make soak` compares.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from bedplate.simt.occupancy import ARCHITECTURES, Architecture, Occupancy, Usage, occupancy

GOLDEN = Path(__file__).with_name("occupancy.json")
FEW, ALL = 2_000, 100_000
NO_LIMIT = 2**31 - 1
ORDER = ("registers", "shared memory", "warps", "blocks", "barriers", "virtual resources")

Launch = tuple[Usage, int | None, int, int]
"""Usage, carve-out in percent, threads of an SM, registers that a block may have."""


def launches(sm: Architecture) -> Iterator[Launch]:
    """The same launches on every run; each limit decides some of them."""
    rng = random.Random(sm.name)
    while True:
        dynamic = rng.choice([0, rng.randint(0, sm.shared + 2_000), rng.randint(0, 20_000)])
        usage = Usage(
            threads=rng.choice([rng.randint(1, 1100), 32 * rng.randint(1, 32)]),
            registers=rng.choice([0, rng.randint(1, 257), rng.randint(16, 128)]),
            static_shared=rng.choice([0, rng.randint(0, 49_152), rng.randint(0, 2_000)]),
            dynamic_shared=dynamic,
            max_dynamic_shared=rng.choice([dynamic, dynamic, rng.randint(0, sm.shared)]),
            opt_in=rng.random() < 0.7,
            barriers=rng.choice([0, 1, 1, rng.randint(1, 16)]),
            virtual=rng.choice([0, 0, rng.randint(1, 140)]),
        )
        yield (
            usage,
            rng.choice([None, None, 0, 25, 50, 75, 100, rng.randint(0, 100)]),
            sm.threads or rng.choice([1024, 1536, 2048]),
            rng.choice([sm.registers, sm.registers, sm.registers // 2]),
        )


def ours(sm: Architecture, launch: Launch) -> Occupancy:
    """Our answer."""
    usage, carveout, threads, registers = launch
    return occupancy(
        sm,
        usage,
        carveout_percent=carveout,
        threads_per_sm=threads,
        registers_per_block=registers,
    )


def line(found: Occupancy) -> str:
    """An answer as text: blocks, the limits in ORDER, registers and shared memory of a block."""
    limits = [found.limits[name] for name in ORDER]
    numbers = [NO_LIMIT if limit is None else limit for limit in limits]
    return " ".join(map(str, (found.blocks, *numbers, found.registers, found.shared)))


def digest(lines: Iterable[str]) -> str:
    """One for many answers."""
    made = hashlib.sha256()
    for text in lines:
        made.update(text.encode() + b"\n")
    return made.hexdigest()


def _question(sm: Architecture, launch: Launch) -> str:
    usage, carveout, threads, registers = launch
    device: Sequence[object] = (
        *sm.capability,
        1024,
        threads,
        registers,
        sm.registers,
        sm.shared_per_block,
        sm.shared,
        sm.shared_per_block_optin,
        sm.reserved,
        -1 if carveout is None else carveout,
    )
    kernel = (
        usage.threads,
        usage.registers,
        usage.static_shared,
        usage.dynamic_shared,
        usage.max_dynamic_shared,
        int(usage.opt_in),
        usage.barriers,
        usage.virtual,
    )
    return " ".join(map(str, (*device, *kernel)))


def theirs(program: Path, sm: Architecture, count: int) -> list[str]:
    """The header's answers as `line` writes them."""
    questions = "\n".join(
        _question(sm, launch) for launch, _ in zip(launches(sm), range(count), strict=False)
    )
    told = subprocess.run([program], input=questions, capture_output=True, text=True, check=True)
    answers = [answer.split() for answer in told.stdout.splitlines()]
    if len(answers) != count or any(answer[0] != "0" for answer in answers):
        raise RuntimeError(f"the header refused launches of {sm.name}")
    return [" ".join((answer[1], *answer[3:])) for answer in answers]


def main() -> None:
    """Ask the header and write the digests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--include", type=Path, required=True)
    include = parser.parse_args().include
    made = {}
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "occupancy"
        source = Path(__file__).with_suffix(".c")
        subprocess.run(["cc", "-O1", "-w", "-I", include, source, "-o", program], check=True)
        for name, sm in ARCHITECTURES.items():
            answers = theirs(program, sm, ALL)
            made[name] = {"few": digest(answers[:FEW]), "all": digest(answers)}
    GOLDEN.write_text(json.dumps(made, indent=1) + "\n")


if __name__ == "__main__":
    main()
