"""Python programs in processes of their own that need not import everything again.

A parent with a library path of its own has imported what the programs begin with; each runs in
a fork of it, with changes to the environment. The parent starts no thread and opens no device.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

PARENT = """
import json, os, sys, tempfile, traceback
import numpy as np
from bedplate.hal.api import *
from bedplate.hal.batch import *
for line in sys.stdin:
    text, changes = json.loads(line)
    said = [tempfile.TemporaryFile() for _ in range(2)]
    pid = os.fork()
    if pid == 0:
        os.environ.update(changes)
        for number, file in enumerate(said, 1):
            os.dup2(file.fileno(), number)
        code = 0
        try:
            exec(compile(text, "program", "exec"), globals())
        except BaseException:
            code = 1
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    for file in said:
        file.seek(0)
    print(json.dumps([status, *(file.read().decode() for file in said)]), flush=True)
"""


class Forks:
    """A parent for programs below one library path; ends with `close`."""

    def __init__(self, library_path: str) -> None:
        self._parent = subprocess.Popen(
            [sys.executable, "-c", PARENT],
            env=os.environ | {"LD_LIBRARY_PATH": library_path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, text: str, **environment: str) -> tuple[int, str, str]:
        """Exit status, stdout and stderr of a program that begins with numpy and the HAL."""
        assert self._parent.stdin is not None
        assert self._parent.stdout is not None
        self._parent.stdin.write(json.dumps([text, environment]) + "\n")
        self._parent.stdin.flush()
        status, out, error = json.loads(self._parent.stdout.readline())
        return status, out, error

    def close(self) -> None:
        """Let the parent end."""
        self._parent.communicate()


def library_path(folder: Path) -> str:
    """Of a folder of libraries and its `blas`."""
    return f"{folder}:{folder / 'blas'}"
