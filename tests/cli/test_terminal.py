from __future__ import annotations

import os
import signal
import subprocess
import sys

from tests.cli.terminal import Terminal

PROBE = """
import os, signal, sys
from bedplate.cli.terminal import own_terminal
def facts():
    terminal = os.open("/dev/tty", os.O_RDWR)
    return os.getpgrp() == os.getpid(), os.tcgetpgrp(terminal) == os.getpgrp()
before = facts()
with own_terminal():
    inside = facts(), signal.getsignal(signal.SIGTSTP) == signal.SIG_IGN
after = signal.getsignal(signal.SIGTSTP) == signal.SIG_DFL
print("SEEN", before, inside, after, flush=True)
"""


def run(script: str) -> str:
    """The probe's line when a shell runs it on a terminal of its own."""
    terminal = Terminal(["bash", "-c", script, "bash", PROBE])
    terminal.expect("SEEN.*\n")
    assert terminal.end() == 0, terminal.text
    return terminal.text.partition("SEEN ")[2].strip()


def test_a_command_in_someone_elses_group_takes_the_terminal() -> None:
    """As below `make`: it leads a group of its own, in the foreground, and cannot be stopped;
    afterwards the shell has the terminal again."""
    script = f'{sys.executable} -c "$1"; read -r -t 0.01 _ </dev/tty; [ $? -gt 128 ]'
    assert run(script) == "(False, True) ((True, True), True) True"


def test_a_command_that_leads_its_group_changes_nothing() -> None:
    """As from an interactive shell, which gives each command a group."""
    script = f'exec {sys.executable} -c "$1"'
    assert run(script) == "(True, True) ((True, True), False) True"


def test_without_a_terminal_nothing_happens() -> None:
    """In a pipeline of a service there is none."""
    code = (
        "import os; from bedplate.cli.terminal import own_terminal; group = os.getpgrp()\n"
        "with own_terminal(): print(os.getpgrp() == group)"
    )
    shell = f"setsid -w bash -c '{sys.executable} -c \"$CODE\" & wait $!'"
    done = subprocess.run(
        shell, shell=True, env={**os.environ, "CODE": code}, capture_output=True, check=True
    )
    assert done.stdout.strip() == b"True"
    assert signal.getsignal(signal.SIGTTOU) == signal.SIG_DFL
