"""A command on a terminal of its own, as a person sees it."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import time


class Terminal:
    """Runs a command; `expect` reads, `type` writes, `end` gives the exit code."""

    def __init__(self, command: list[str]) -> None:
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)  # a test run below nohup ignores them
            os.execvp(command[0], command)
        self.text = ""

    def expect(self, pattern: str) -> None:
        """Read until `pattern` is seen."""
        give_up = time.monotonic() + 50
        while not re.search(pattern, self.text):
            assert time.monotonic() < give_up, self.text
            assert self._read(), self.text

    def type(self, text: str) -> None:
        """Type on the keyboard."""
        os.write(self.descriptor, text.encode())

    def end(self) -> int:
        """Read to the end; the exit code, negative for a signal."""
        while self._read():
            pass
        os.close(self.descriptor)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def _read(self) -> bool:
        select.select([self.descriptor], [], [], 5)
        try:
            data = os.read(self.descriptor, 65536)
        except OSError:  # the last process that held the terminal is gone
            return False
        self.text += data.decode(errors="replace")
        return bool(data)
