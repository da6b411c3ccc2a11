import signal
import subprocess
import sys
import time

import pytest

SLEEP = "import time; time.sleep(600)"


def run(code: str, *arguments: object) -> str:
    """Run Python code in a process of its own; what it printed."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout


def gone(pid: int) -> bool:
    """Whether the process ended, collected or not."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def test_a_child_ends_with_its_parent() -> None:
    """The kernel does it, also when the parent is killed."""
    child = (
        "import os, sys; from bedplate.core.parent import end_with_parent; "
        f"end_with_parent(int(sys.argv[1])); print(os.getpid(), flush=True); {SLEEP}"
    )
    parent = (
        "import os, signal, subprocess, sys\n"
        "command = [sys.executable, '-c', sys.argv[1], str(os.getpid())]\n"
        "child = subprocess.Popen(command, stdout=subprocess.PIPE)\n"
        "print(child.stdout.readline().decode(), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    command = [sys.executable, "-c", parent, child]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL
    pid = int(done.stdout)
    give_up = time.monotonic() + 20
    while not gone(pid):
        assert time.monotonic() < give_up, "the child lives on"
        time.sleep(0.01)


@pytest.mark.parametrize(("handler", "signal_number"), [("SIG_IGN", 14), ("SIG_DFL", 15)])
def test_a_child_has_a_moment_after_its_parent(handler: str, signal_number: int) -> None:
    """SIGTERM at once, for its goodbyes; one that does not heed it is ended by SIGALRM."""
    child = (
        "import signal, sys, time; from bedplate.core.parent import end_soon_after_parent\n"
        f"signal.signal(signal.SIGTERM, signal.{handler})\n"
        "end_soon_after_parent(int(sys.argv[1]), 0.2)\n"
        "sys.stdout.write('ready\\n'); sys.stdout.flush(); time.sleep(600); time.sleep(600)"
    )
    # The one in the middle is the parent; a subreaper sees how its child ends.
    middle = (
        "import os, subprocess, sys\n"
        "command = [sys.executable, '-c', sys.argv[1], str(os.getpid())]\n"
        "child = subprocess.Popen(command, stdout=subprocess.PIPE)\n"
        "child.stdout.readline()\n"
        "os.kill(os.getpid(), 9)\n"
    )
    code = (
        "import os, subprocess, sys; from bedplate.core.parent import adopt_orphans\n"
        "adopt_orphans()\n"
        "subprocess.run([sys.executable, '-c', sys.argv[1], sys.argv[2]])\n"
        "print(os.waitstatus_to_exitcode(os.wait()[1]))\n"
    )
    assert run(code, middle, child).split() == [str(-signal_number)]


def test_a_child_whose_parent_is_already_gone_ends_at_once() -> None:
    """It was given a process that is not its parent: too late, so it ends itself."""
    code = "from bedplate.core.parent import end_with_parent; end_with_parent(1); print('alive')"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGTERM
    assert done.stdout == ""


def test_orphans_are_adopted_and_collected_own_children_are_not() -> None:
    """A grandchild whose parent is killed leaves no zombie; our own child's status stays."""
    code = (
        "import os, signal, subprocess, sys, time\n"
        "from bedplate.core.parent import adopt_orphans, collect_orphans\n"
        "adopt_orphans()\n"
        "middle = 'import subprocess, sys; "
        'child = subprocess.Popen([sys.executable, "-c", ""]); print(child.pid, flush=True); '
        "import os; os.kill(os.getpid(), 9)'\n"
        "parent = subprocess.Popen([sys.executable, '-c', middle], stdout=subprocess.PIPE)\n"
        "orphan = int(parent.stdout.readline())\n"
        "parent.wait()\n"
        "own = subprocess.Popen([sys.executable, '-c', 'raise SystemExit(7)'])\n"
        "collected = 0\n"
        "until = time.monotonic() + 20\n"
        "while not collected and time.monotonic() < until:\n"
        "    own.poll()\n"
        "    collected = collect_orphans([own.pid])\n"
        "    time.sleep(0.01)\n"
        "print(collected, os.path.exists(f'/proc/{orphan}'), own.wait())\n"
    )
    assert run(code).split() == ["1", "False", "7"]


def test_nothing_to_collect_is_fine() -> None:
    """Without any child there is nothing to wait for."""
    code = "from bedplate.core.parent import collect_orphans; print(collect_orphans([]))"
    assert run(code).split() == ["0"]
