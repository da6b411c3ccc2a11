"""`bedplate simt run --trace` and `--step`: a launch on the reference, issue by issue."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from bedplate.cli.output import note, people
from bedplate.core.errors import UsageError

if TYPE_CHECKING:
    from bedplate.simt.api import Console, Kernel, Request


def add_flags(verb: argparse.ArgumentParser) -> None:
    """Add the flags to `simt run`."""
    verb.add_argument(
        "--trace",
        metavar="FILE",
        help="write each issue with its mask; - is stdout; JSON lines for .jsonl or with --json",
    )
    verb.add_argument(
        "--step",
        action="store_true",
        help="step a warp with gdb's commands, from the terminal or from a script on stdin",
    )


def trace(
    arguments: argparse.Namespace, kernel: Kernel, request: Request, values: list[Any], text: str
) -> None:
    """Run the launch and write its rows; those before a fault are written too."""
    from bedplate.simt.api import Reference, Tracer, row_json, row_text, sources_beside

    sources = sources_beside(Path(arguments.ptx), text, kernel.function)
    lines = arguments.json or arguments.trace.endswith(".jsonl")
    reference = Reference(
        kernel, request.grid, request.block, values, dynamic_shared=request.shared
    )
    with _opened(arguments.trace) as file:

        def take(issue: Any) -> None:
            print((row_json if lines else row_text)(issue, sources), file=file)

        try:
            reference.run(Tracer(take))
        finally:
            people(arguments).write(reference.printed)


@contextlib.contextmanager
def _opened(name: str) -> Iterator[IO[str]]:
    if name == "-":
        yield sys.stdout
        sys.stdout.flush()
        return
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(Path(name).open("w", encoding="utf-8"))
        except OSError as cause:
            raise UsageError(f"cannot write {name}: {cause.strerror}") from cause
        yield file


def step(
    arguments: argparse.Namespace, kernel: Kernel, request: Request, values: list[Any], text: str
) -> bool:
    """Run the launch by commands; False when it was left before its end."""
    from bedplate.simt.api import Console, LaunchFailed, Quit, Reference, sources_beside

    def say(words: str) -> None:
        note(arguments, words)

    sources = sources_beside(Path(arguments.ptx), text, kernel.function)
    console = Console(kernel, sources, _ask, say)
    reference = Reference(
        kernel, request.grid, request.block, values, dynamic_shared=request.shared
    )
    say(f"{kernel.name}; help lists the commands")
    with _interrupts(console):
        try:
            reference.run(console.stepper)
        except Quit:
            return False
        except LaunchFailed as failure:
            console.told(reference.grid.printed)
            with contextlib.suppress(Quit):
                console.failed(str(failure))
            raise
    console.told(reference.grid.printed)
    say(f"the launch has ended after {console.stepper.issues} instructions")
    return True


def _ask(prompt: str) -> str | None:
    """A line; of a script it is shown, so that what was printed reads like a session."""
    if not sys.stdin.isatty():
        line = sys.stdin.readline()
        if not line:
            return None
        print(prompt + line.rstrip("\n"))
        return line
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 - gives `input` its history and editing
    own = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return input(prompt)
    except KeyboardInterrupt:
        print("\nquit leaves")
        return "#"  # nothing, and not the last command again
    except EOFError:
        print()
        return None
    finally:
        signal.signal(signal.SIGINT, own)


@contextlib.contextmanager
def _interrupts(console: Console) -> Iterator[None]:
    """On a terminal Ctrl-C stops a kernel that runs, at its next instruction."""
    if not sys.stdin.isatty():
        yield
        return

    def stop(*_: object) -> None:
        console.stepper.interrupted = True

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
