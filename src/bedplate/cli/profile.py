"""Profiles of `bedplate simt`: written by `run --profile`, shown by `report`."""

from __future__ import annotations

import argparse
import json
import os
from argparse import _SubParsersAction
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bedplate.cli.flags import common_flags
from bedplate.cli.output import note, people, print_json
from bedplate.core import files
from bedplate.core.errors import EXIT_DONE, UsageError

if TYPE_CHECKING:
    from bedplate.simt.api import Kernel, Request, Run

WORDS = (
    "{sectors_per_request:.2f} sectors a request, {wavefronts_per_request:.2f} wavefronts a "
    "request, lane efficiency {lane_efficiency:.2f}"
)
HEAD = (
    f"{'issues':>11}{'lanes':>8}{'requests':>11}{'sectors':>11}{'wavefronts':>11}"
    f"{'conflicts':>11}{'divergent':>11}  line"
)

LARGEST_FILE = 64 << 20
"""What the parser takes at most."""


def add_verb(verbs: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `simt report`."""
    verb = verbs.add_parser("report", help="a profile by source line", parents=[common_flags()])
    verb.add_argument("profile", metavar="FILE", help="what `simt run --profile` wrote")
    verb.add_argument("--html", metavar="FILE", help="write it as one HTML page")
    verb.add_argument(
        "--picture", action="store_true", help="the lanes of each issue, instead of lines"
    )
    verb.add_argument("--warp", type=int, default=0, metavar="N", help="of the picture; default: 0")
    verb.add_argument(
        "--rows", type=int, default=64, metavar="N", help="issues of the picture; default: 64"
    )
    verb.set_defaults(run=report)


def run(
    arguments: argparse.Namespace, kernel: Kernel, request: Request, values: list[Any], text: str
) -> Run:
    """Launch with counters and write the profile."""
    from bedplate.simt.api import sources_beside, timeline

    launch = request.grid, request.block, values
    told = timeline(kernel, *launch, dynamic_shared=request.shared)
    launched = kernel.launch(*launch, dynamic_shared=request.shared, profile=True)
    assert launched.report is not None
    sources = sources_beside(Path(arguments.ptx), text, kernel.function)
    document = {
        **launched.report.document(),
        "timeline": told.document(),
        "texts": sources.excerpts(kernel.function),
    }
    _write(Path(arguments.profile), json.dumps(document) + "\n")
    note(arguments, _summary(document))
    return launched


def report(arguments: argparse.Namespace) -> int:
    """Exit 0 with the table, the picture or the page, 2 for a file that is no profile."""
    path = Path(arguments.profile)
    if arguments.rows < 1 or arguments.warp < 0:
        raise UsageError("--rows is from 1, --warp from 0")
    text = text_of(path)
    try:
        document = json.loads(text)
        if document["schema"] != "bedplate.simt-profile/1":
            raise ValueError(document["schema"])
        lines = _shown(arguments, document)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as cause:
        raise UsageError(
            f"{path} is no profile", remedy="write one: simt run --profile FILE"
        ) from cause
    for line in lines:
        # Not by `note`: the picture's own colours are no text of others.
        print(line, file=people(arguments), flush=True)
    if arguments.json:
        print_json(document)
    return EXIT_DONE


def _shown(arguments: argparse.Namespace, document: Mapping[str, Any]) -> list[str]:
    """What is printed; writes the page."""
    if arguments.html:
        from bedplate.simt.api import profile_page

        _write(Path(arguments.html), profile_page(document))
        return [f"wrote {arguments.html}"]
    if arguments.picture:
        return _picture(arguments, document)
    return [] if arguments.json else _table(document)


def _picture(arguments: argparse.Namespace, document: Mapping[str, Any]) -> list[str]:
    from bedplate.simt.api import profile_picture

    if "timeline" not in document:
        raise UsageError("the profile has no timeline", remedy="write it again")
    warps = sorted({issue[0] for issue in document["timeline"]["issues"]})
    if arguments.warp not in warps:
        raise UsageError(f"there is no warp {arguments.warp}", remedy=f"the last is {warps[-1]}")
    stream = people(arguments)
    colour = stream.isatty() and not os.environ.get("NO_COLOR")
    encoding = (getattr(stream, "encoding", None) or "ascii").lower()
    plain = not encoding.startswith("utf")
    return list(
        profile_picture(document, arguments.warp, arguments.rows, plain=plain, colour=colour)
    )


def _table(document: Mapping[str, Any]) -> list[str]:
    from bedplate.simt.api import plain_line

    made = [plain_line(_summary(document)), HEAD]
    for line in document["lines"]:
        lanes = 100 * line["lanes"] / max(32 * line["issues"], 1)
        counted = [line[name] for name in ("requests", "sectors", "wavefronts", "conflicts")]
        numbers = "".join(f"{item:>11}" for item in (*counted, line["divergent"]))
        told = f"{line['issues']:>11}{lanes:>7.1f}%{numbers}  {line['file']}:{line['line']}"
        made.append(plain_line(told))
    return made


def _summary(document: Mapping[str, Any]) -> str:
    return f"{document['kernel']} on {document['arch']}, {WORDS.format(**document)}"


def text_of(path: Path) -> str:
    """A file's text, of which there is an end; raises `UsageError`."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
        if len(data) > LARGEST_FILE:
            raise UsageError(f"{path} has more than {LARGEST_FILE} bytes", remedy="give PTX")
        return data.decode()
    except OSError as cause:
        raise UsageError(f"cannot read {path}: {cause.strerror}") from cause
    except UnicodeDecodeError as cause:
        raise UsageError(
            f"{path} is not text", remedy="give PTX, not a cubin or an object file"
        ) from cause


def _write(path: Path, text: str) -> None:
    try:
        files.replace(path, text.encode())
    except OSError as cause:
        raise UsageError(f"cannot write {path}: {cause.strerror}") from cause
