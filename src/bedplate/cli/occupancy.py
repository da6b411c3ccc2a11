"""`bedplate simt occupancy`: how many blocks an SM holds, and why no more."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bedplate.cli.flags import common_flags
from bedplate.cli.output import print_json, print_table
from bedplate.core.errors import EXIT_DONE, UsageError

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from bedplate.simt.api import Occupancy, Usage

BAR = 32
"""Cells of a full bar."""


def add_verb(verbs: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add it to the verbs of `simt`."""
    verb = verbs.add_parser(
        "occupancy",
        help="resident blocks of an SM, what limits them, and other block sizes",
        parents=[common_flags()],
    )
    verb.add_argument("--arch", metavar="SM", help="sm_70 to sm_121; default: ptxas's, or sm_90")
    verb.add_argument("--threads", type=int, required=True, metavar="N", help="of a block")
    verb.add_argument("--registers", type=int, metavar="N", help="of a thread, as ptxas says")
    verb.add_argument("--ptxas", metavar="FILE", help="what `ptxas -v` printed, for registers")
    verb.add_argument("--kernel", metavar="NAME", help="of that file; default: its only one")
    verb.add_argument("--static", type=int, metavar="BYTES", help="static shared memory")
    verb.add_argument(
        "--shared", type=int, default=0, metavar="BYTES", help="dynamic shared memory; default: 0"
    )
    verb.add_argument("--barriers", type=int, metavar="N", help="numbered barriers; default: 1")
    verb.add_argument("--carveout", type=int, metavar="PERCENT", help="default: all of it")
    verb.add_argument(
        "--threads-per-sm", type=int, metavar="N", help="where devices of an architecture differ"
    )
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Exit 0, also for a block that does not fit; 2 for values that no device has."""
    from bedplate.simt.api import by_block_size, occupancy

    arch, usage = _usage(arguments)
    threads = arguments.threads_per_sm
    found = occupancy(arch, usage, carveout_percent=arguments.carveout, threads_per_sm=threads)
    if arguments.json:
        print_json(_document(found))
        return EXIT_DONE
    sm = found.architecture
    print(
        f"{sm.name}: {found.blocks} blocks of {usage.threads} threads on an SM,"
        f" {found.warps} of {found.threads_per_sm // 32} warps ({found.share:.0%});"
        f" limiter: {', '.join(found.limiters)}"
    )
    rows = [
        (name, "no limit" if limit is None else limit, _uses(name, found))
        for name, limit in found.limits.items()
    ]
    print_table(("resource", "blocks", "a block has"), rows)
    sizes = list(by_block_size(arch, usage, threads_per_sm=threads))
    print_table(
        ("threads", "blocks", "warps", "occupancy", "limiter"),
        [
            (f"{one.usage.threads}{' *' if one.usage.threads == usage.threads else ''}",
             one.blocks, one.warps, _bar(one.share), ", ".join(one.limiters))
            for one in sizes
        ],
    )  # fmt: skip
    return EXIT_DONE


def _usage(arguments: argparse.Namespace) -> tuple[str, Usage]:
    from bedplate.simt.api import Usage, read_ptxas

    arch, usage = "sm_90", None
    if arguments.ptxas:
        try:
            text = Path(arguments.ptxas).read_text(encoding="utf-8", errors="replace")
        except OSError as cause:
            raise UsageError(f"cannot read {arguments.ptxas}: {cause.strerror}") from cause
        kernels = read_ptxas(text)
        names = [one.kernel for one in kernels]
        chosen = [one for one in kernels if arguments.kernel in (None, one.kernel)]
        if len(chosen) != 1:
            raise UsageError(
                f"{arguments.ptxas} has {len(chosen)} kernels named {arguments.kernel!r}"
                if arguments.kernel
                else f"{arguments.ptxas} has {len(kernels)} kernels",
                remedy=f"choose --kernel of {', '.join(names)}",
            )
        arch = chosen[0].arch or arch
        usage = Usage(
            arguments.threads,
            chosen[0].registers,
            chosen[0].static_shared,
            barriers=chosen[0].barriers,
        )
    elif arguments.registers is None:
        raise UsageError(
            "how many registers a thread uses is not known",
            remedy="give --registers N, or --ptxas FILE with what `ptxas -v` printed",
        )
    usage = usage or Usage(arguments.threads, arguments.registers)
    given = {
        "registers": arguments.registers,
        "static_shared": arguments.static,
        "dynamic_shared": arguments.shared,
        "barriers": arguments.barriers,
    }
    named: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    return arguments.arch or arch, replace(usage, **named)


def _uses(name: str, found: Occupancy) -> str:
    usage = found.usage
    return {
        "warps": f"{-(-usage.threads // 32)} warps",
        "blocks": "",
        "registers": f"{found.registers} registers",
        "shared memory": f"{found.shared} bytes",
        "barriers": f"{usage.barriers} barriers",
        "virtual resources": f"{usage.virtual} units" if usage.virtual else "",
    }[name]


def _bar(share: float) -> str:
    """A bar that reads without colour, with the figure behind it."""
    full = round(share * BAR)
    return f"{'#' * full}{'.' * (BAR - full)} {share:4.0%}"


def _document(found: Occupancy) -> dict[str, object]:
    return {
        "schema": "bedplate.simt-occupancy/1",
        "arch": found.architecture.name,
        "usage": found.usage,
        "blocks": found.blocks,
        "warps": found.warps,
        "occupancy": found.share,
        "limiters": found.limiters,
        "limits": found.limits,
        "registers_of_block": found.registers,
        "shared_bytes_of_block": found.shared,
    }
