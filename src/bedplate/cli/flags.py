"""The flags that every verb has.

verb = subparsers.add_parser("status", parents=[common_flags()], help="...")
"""

from __future__ import annotations

import argparse


def common_flags() -> argparse.ArgumentParser:
    """A parent parser with --json, --debug, --config and --data-dir."""
    common = argparse.ArgumentParser(add_help=False)
    group = common.add_argument_group("common")
    group.add_argument("--json", action="store_true", help="print JSON on stdout, for machines")
    group.add_argument("--debug", action="store_true", help="show a traceback when it fails")
    group.add_argument("--config", metavar="FILE", help="configuration file (TOML)")
    group.add_argument("--data-dir", metavar="DIR", help="folder of everything that is kept")
    return common
