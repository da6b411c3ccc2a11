"""A child for the supervisor's tests: `python fake_child.py MODE SOCKET`.

MODE says what it does: `ready` answers its health route, `stalled` answers so,
`ready-then-stalled` changes after two answers, `silent` takes connections and says
nothing, `exit-N` ends with code N and a sentence, `stubborn` is ready and ignores
SIGTERM, `slow` is ready and takes a moment to end with code 7 after it, `family` is
ready and has a child of its own that sleeps.
"""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from typing import NoReturn


def end_slowly(number: int, frame: object) -> NoReturn:
    """Finish what is open, as a drain does."""
    time.sleep(0.3)
    sys.exit(7)


def main() -> None:
    """Do what MODE says until killed."""
    mode, path = sys.argv[1:3]
    if mode.startswith("exit-"):
        print("loading\nbedplate serve: the file is no good; give another\n", end="", flush=True)
        sys.exit(int(mode.removeprefix("exit-")))
    if mode == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if mode == "slow":
        signal.signal(signal.SIGTERM, end_slowly)
    if mode == "family":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        print(child.pid, flush=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    answers = 0
    while True:
        connection, _ = listener.accept()
        if mode == "silent":
            time.sleep(600)
        with connection:
            while data := connection.recv(65536):
                if not data.endswith(b"\r\n\r\n"):
                    continue
                answers += 1
                bad = mode == "stalled" or (mode == "ready-then-stalled" and answers > 2)
                state = "stalled" if bad else "ready"
                body = json.dumps({"state": state, "reason": "no step"}).encode()
                head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
                connection.sendall(head + body)


if __name__ == "__main__":
    main()
