"""`bedplate <verb>`: parse, run one verb, turn errors into exit codes.

A verb is a module of this package with `register(subparsers)`; it adds its
parser with `parents=[common_flags()]` and sets `run`, a function of the
parsed arguments that returns the exit code. A `BedplateError` becomes one
sentence on stderr and its exit code; a traceback is shown only with
`--debug`. Every verb's module is imported to build the parser, so what is
slow to import belongs inside its `run`.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import re
import sys
import traceback
from collections.abc import Sequence
from typing import Any, NoReturn

import bedplate
import bedplate.cli
from bedplate.core import nearest
from bedplate.core.errors import EXIT_DONE, EXIT_FAILED, EXIT_USAGE, BedplateError

_UNKNOWN_VERB = re.compile(r"argument VERB: invalid choice: '(.*)' \(choose from '(.*)'\)")

_NOT_FOR_PEOPLE = {"gateway", "supervise"}  # the platform starts them itself


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence, as all errors here are."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where help is, and exit 2."""
        if found := _UNKNOWN_VERB.fullmatch(message):
            verbs = set(found[2].split("', '")) - _NOT_FOR_PEOPLE
            message = f"unknown verb {found[1]!r}; {nearest.hint(found[1], verbs)}"
        self.exit(EXIT_USAGE, f"{self.prog}: {message}; see `{self.prog} --help`\n")


def parser() -> argparse.ArgumentParser:
    """The whole command line, with every verb that this package holds."""
    top = Parser(
        prog="bedplate",
        description="The whole GPU stack, on any hardware, including none.",
        epilog="`bedplate VERB --help` explains a verb.",
    )
    top.add_argument("--version", action="version", version=f"bedplate {bedplate.__version__}")
    verbs = top.add_subparsers(title="verbs", metavar="VERB", dest="verb")
    for register in _registrations():
        register(verbs)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    top = parser()
    parsed = top.parse_args(arguments)
    if parsed.verb is None:
        top.print_help(sys.stderr)
        return EXIT_USAGE
    if getattr(parsed, "data_dir", None):
        # Every part of this process and its children shall mean the same folder.
        os.environ["BEDPLATE_DATA_DIR"] = os.path.abspath(os.path.expanduser(parsed.data_dir))
    try:
        return int(parsed.run(parsed) or EXIT_DONE)
    except KeyboardInterrupt:
        return EXIT_FAILED  # verbs that run until Ctrl-C end by themselves
    except BrokenPipeError:
        # The reader of our output is gone, as with `| head`; leave nothing to flush into it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED
    except Exception as error:
        return _report(parsed, error)


def entry() -> None:
    """The console script."""
    sys.exit(main())


def _registrations() -> list[Any]:
    names = sorted(found.name for found in pkgutil.iter_modules(bedplate.cli.__path__))
    modules = [name for name in names if name != "__main__"]
    found = [importlib.import_module(f"bedplate.cli.{name}") for name in modules]
    return [module.register for module in found if hasattr(module, "register")]


def _report(parsed: argparse.Namespace, error: Exception) -> int:
    if parsed.debug:
        traceback.print_exc()
    if isinstance(error, BedplateError):
        print(f"bedplate {parsed.verb}: {error}", file=sys.stderr)
        return error.exit_code
    text = f"{type(error).__name__}: {error}"
    remedy = "run it again with --debug and report what it prints"
    print(f"bedplate {parsed.verb}: internal error, {text}; {remedy}", file=sys.stderr)
    return EXIT_FAILED
