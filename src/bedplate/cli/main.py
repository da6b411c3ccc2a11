"""`bedplate <verb>`: parse, run one verb, turn errors into exit codes.

A verb is a module of this package with `register(subparsers)`; it sets
`run=<function of the parsed arguments that returns the exit code>` with
`set_defaults`. A `BedplateError` becomes one sentence on stderr and its exit
code; a traceback is shown only with `--debug`. Modules are imported by the
dispatcher, so a verb's heavy imports belong inside its `run`.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
import traceback
from collections.abc import Sequence

import bedplate
from bedplate.core.errors import EXIT_FAILED, EXIT_USAGE, BedplateError

PRIVATE = {"main", "common"}


def common_flags() -> argparse.ArgumentParser:
    """The flags of every verb, to be given as `parents=[common_flags()]`."""
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true", help="print JSON on stdout, for machines")
    common.add_argument("--debug", action="store_true", help="show a traceback when a command fails")
    common.add_argument("--config", metavar="FILE", help="configuration file (TOML)")
    common.add_argument("--data-dir", metavar="DIR", help="folder of everything that is kept")
    return common


def parser() -> argparse.ArgumentParser:
    """The whole command line, with every verb that this package holds."""
    top = argparse.ArgumentParser(prog="bedplate", description=(bedplate.__doc__ or "").split("\n")[0])
    top.add_argument("--version", action="version", version=f"bedplate {bedplate.__version__}")
    verbs = top.add_subparsers(title="verbs", metavar="VERB", dest="verb")
    package = importlib.import_module("bedplate.cli")
    for module in sorted(pkgutil.iter_modules(package.__path__), key=lambda found: found.name):
        if module.name not in PRIVATE:
            importlib.import_module(f"bedplate.cli.{module.name}").register(verbs)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    top = parser()
    parsed = top.parse_args(arguments)
    if parsed.verb is None:
        top.print_help(sys.stderr)
        return EXIT_USAGE
    try:
        return int(parsed.run(parsed) or 0)
    except BedplateError as error:
        if parsed.debug:
            traceback.print_exc()
        print(f"bedplate {parsed.verb}: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 0
    except BrokenPipeError:
        # The reader of our output has gone, as `| head` does.
        sys.stderr.close()
        return EXIT_FAILED
    except Exception as error:
        if parsed.debug:
            traceback.print_exc()
        print(
            f"bedplate {parsed.verb}: internal error: {type(error).__name__}: {error}; "
            "run it again with --debug and report what it prints",
            file=sys.stderr,
        )
        return EXIT_FAILED


def entry() -> None:
    """The console script."""
    sys.exit(main())
