"""The other end of `llama_peer.py`: starts it, asks it, ends it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


class PeerMissing(Exception):
    """The peer is not installed here."""


class Peer:
    """llama.cpp in a process of its own. A context manager."""

    def __enter__(self) -> Peer:
        """Start the process; raises `PeerMissing` when it lacks llama-cpp-python."""
        python = os.environ.get("BEDPLATE_PEER_PYTHON", sys.executable)
        probe = [python, "-c", "import llama_cpp"]
        if subprocess.run(probe, capture_output=True, check=False).returncode:
            raise PeerMissing(f"{python} has no llama-cpp-python; run `make peers`")
        script = Path(__file__).with_name("llama_peer.py")
        # OpenBLAS settings made for old versions of numpy must not slow the peer.
        environment = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
        self._process = subprocess.Popen(
            [python, str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        return self

    def __exit__(self, *error: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(60)

    def ask(self, **command: Any) -> dict[str, Any]:
        """One command, one answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise PeerMissing(f"llama.cpp ended while it was asked to {command['do']}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def load(self, path: str, batch: int, tokens: int) -> str:
        """Load a model for `batch` sequences of `tokens`; the library's version."""
        return str(self.ask(do="load", path=path, batch=batch, tokens=tokens)["version"])
