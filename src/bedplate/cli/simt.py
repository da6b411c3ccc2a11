"""`bedplate simt`: run PTX without a GPU."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bedplate.cli import checks, occupancy, profile, watching
from bedplate.cli.flags import common_flags
from bedplate.cli.output import note, print_json
from bedplate.cli.profile import text_of
from bedplate.core.errors import EXIT_DONE, UsageError

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from bedplate.simt.api import (
        DeviceArray,
        Kernel,
        LaunchFailed,
        LoadedModule,
        Request,
        Run,
        Verified,
    )

ARGUMENT = "f32:2, arange:f32[1024] (also zeros, ones, random), or a .npy file; again for each"
MODES = ("verify", "profile", "check", "trace", "step")
"""What a run can be besides plain."""
SHOWN = 8
"""Values of an array that are printed."""


def register(verbs: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `simt` and its verbs."""
    parser = verbs.add_parser("simt", help="run PTX on this machine's processor")
    inner = parser.add_subparsers(title="verbs", metavar="VERB", dest="simt_verb", required=True)
    verb = inner.add_parser("run", help="launch a kernel of a PTX file", parents=[common_flags()])
    verb.add_argument("ptx", metavar="PTX", help="a .ptx file")
    verb.add_argument("--kernel", metavar="NAME", help="default: the only one of the file")
    verb.add_argument("--grid", metavar="X[,Y[,Z]]", help="blocks; default: 1")
    verb.add_argument("--block", metavar="X[,Y[,Z]]", help="threads of a block; default: 1")
    verb.add_argument("--shared", type=int, metavar="BYTES", help="dynamic shared memory")
    verb.add_argument("--arg", action="append", metavar="VALUE", help=ARGUMENT)
    verb.add_argument(
        "--launch", metavar="FILE", help="TOML with kernel, grid, block, args, shared"
    )
    verb.add_argument(
        "--save",
        action="append",
        default=[],
        metavar="N=FILE",
        help="write argument N (from 0) after the launch as a .npy file",
    )
    verb.add_argument("--arch", default="sm_90", metavar="SM", help="default: sm_90")
    verb.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of random and of schedules; default: 0"
    )
    verb.add_argument(
        "--schedule",
        choices=("its", "ipdom", "adversarial"),
        default="its",
        help="how lanes of a warp take turns; adversarial goes by the seed; default: its",
    )
    verb.add_argument("--threads", type=int, metavar="N", help="host threads; default: all cores")
    verb.add_argument(
        "--verify",
        action="store_true",
        help="run both engines and stop at the first register that differs",
    )
    verb.add_argument(
        "--profile", metavar="FILE", help="count sectors, banks and divergence into a JSON file"
    )
    checks.add_flags(verb)
    watching.add_flags(verb)
    verb.set_defaults(run=run)
    occupancy.add_verb(inner)
    profile.add_verb(inner)


def run(arguments: argparse.Namespace) -> int:
    """Exit 0 when the launch ended well, 1 for a fault or a difference, 2 for bad input."""
    from bedplate.simt.api import DeviceArray, Machine, argument_value, changed_arrays, verify

    modes = [mode for mode in MODES if getattr(arguments, mode)]
    if len(modes) > 1:
        raise UsageError(f"--{modes[0]} and --{modes[1]} cannot go together", remedy="run twice")
    if arguments.step and arguments.json:
        raise UsageError("--step and --json cannot go together", remedy="use --trace --json")
    request = _request(arguments)
    path = Path(arguments.ptx)
    with Machine(
        arch=arguments.arch,
        seed=arguments.seed,
        threads=arguments.threads,
        schedule=arguments.schedule,
    ) as machine:
        text = text_of(path)
        loaded = machine.load(text, str(path))
        kernel = loaded[request.kernel or _only(loaded)]
        values = [argument_value(machine, word, request.folder) for word in request.args]
        saves = [_save(word, values) for word in arguments.save]
        before = [v.view().tobytes() if isinstance(v, DeviceArray) else b"" for v in values]
        verified, record, checked, code = None, None, None, EXIT_DONE
        if arguments.check:
            checked, code = checks.run(arguments, kernel, request, values)
        elif arguments.trace:
            watching.trace(arguments, kernel, request, values, text)
        elif arguments.step:
            if not watching.step(arguments, kernel, request, values, text):
                return EXIT_DONE
        elif arguments.verify:
            verified = verify(
                kernel, request.grid, request.block, values, dynamic_shared=request.shared
            )
        else:
            record = _launch(arguments, kernel, request, values, text).record
        for array, file in saves:
            _write(array, file)
        outputs = changed_arrays(values, before)
        if arguments.json:
            _print_document(record, verified, outputs, checked)
        else:
            _print_words(arguments, verified, outputs)
    return code


def _launch(
    arguments: argparse.Namespace, kernel: Kernel, request: Request, values: list[Any], text: str
) -> Run:
    """A launch, plain or with a profile, with what it prints; also of one that fails."""
    from bedplate.simt.api import LaunchFailed

    try:
        if arguments.profile:
            launched = profile.run(arguments, kernel, request, values, text)
        else:
            launched = kernel.launch(
                request.grid, request.block, values, dynamic_shared=request.shared
            )
    except LaunchFailed as failure:
        _print_printed(arguments, failure)
        raise
    _print_printed(arguments, launched)
    return launched


def _print_printed(arguments: argparse.Namespace, told: Run | LaunchFailed) -> None:
    """What `printf` said on standard output; beside a document on standard error."""
    stream = sys.stderr if arguments.json else sys.stdout
    stream.write(told.printed)
    if told.printed_lost:
        note(arguments, f"printf: {told.printed_lost} more calls found no room")


def _request(arguments: argparse.Namespace) -> Request:
    """The launch file's request with what the flags say instead."""
    from bedplate.simt.api import Request, read_request, sizes

    given = read_request(Path(arguments.launch)) if arguments.launch else Request(None, (1,), (1,))
    grid = sizes(arguments.grid, "--grid") if arguments.grid else given.grid
    block = sizes(arguments.block, "--block") if arguments.block else given.block
    kernel = arguments.kernel or given.kernel
    shared = given.shared if arguments.shared is None else arguments.shared
    if arguments.arg:
        return Request(kernel, grid, block, arguments.arg, shared)
    return Request(kernel, grid, block, given.args, shared, given.folder)


def _only(loaded: LoadedModule) -> str:
    names = list(loaded)
    if len(names) != 1:
        raise UsageError(
            f"the file has {len(names)} kernels", remedy=f"choose --kernel of {', '.join(names)}"
        )
    return str(names[0])


def _save(text: str, values: list[Any]) -> tuple[DeviceArray, Path]:
    from bedplate.simt.api import DeviceArray

    number, equals, file = text.partition("=")
    if not (equals and number.isdecimal() and file):
        raise UsageError(f"--save {text!r} is not of the form N=FILE")
    if int(number) >= len(values) or not isinstance(values[int(number)], DeviceArray):
        raise UsageError(f"--save {text!r}: argument {number} is no array")
    return values[int(number)], Path(file)


def _write(array: DeviceArray, path: Path) -> None:
    import io

    import numpy as np

    from bedplate.core import files

    buffer = io.BytesIO()
    np.save(buffer, array.numpy())
    files.replace(path, buffer.getvalue())


def _print_words(
    arguments: argparse.Namespace,
    verified: Verified | None,
    outputs: list[tuple[int, DeviceArray]],
) -> None:
    if verified is not None:
        note(
            arguments,
            f"both engines agree: {verified.registers} registers of {verified.blocks} blocks"
            + (f", {verified.cut} blocks only in part" if verified.cut else ""),
        )
    for number, array in outputs:
        values = array.numpy().reshape(-1)
        shown = " ".join(str(item) for item in values[:SHOWN])
        more = " ..." if values.size > SHOWN else ""
        shape = "x".join(map(str, array.shape))
        note(arguments, f"argument {number}, {array.dtype}[{shape}]: {shown}{more}")
    if not outputs:
        note(arguments, "no array changed")


def _print_document(
    record: Any, verified: Any, outputs: list[tuple[int, DeviceArray]], checked: Any
) -> None:
    changed = [
        {
            "argument": number,
            "dtype": str(array.dtype),
            "shape": array.shape,
            "first": array.numpy().reshape(-1)[:SHOWN].tolist(),
        }
        for number, array in outputs
    ]
    document = {"schema": "bedplate.simt-run/1", "launch": record, "verified": verified}
    if checked is not None:
        document["checked"] = checked
    print_json({**document, "changed": changed})
