"""`make device`: the tests that need an accelerator, or NOT RUN and why.

pytest selects the tests marked `device`; each asks for the backend that it
needs. Without any accelerator the exit code is 3, never a pass.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

# A driver node of each vendor: NVIDIA, AMD, Intel.
NODES = ("dev/nvidiactl", "dev/kfd", "dev/dri/renderD128")


def main(root: Path = Path("/")) -> int:
    found = [node for node in NODES if (root / node).exists()]
    if not found:
        print("device tests NOT RUN: no accelerator on this machine", file=sys.stderr)
        return 3
    print(f"accelerator: {', '.join('/' + node for node in found)}")
    done = subprocess.run([sys.executable, "-m", "pytest", "-m", "device"], check=False)
    if done.returncode == 5:
        print("device tests NOT RUN: no test is marked `device`", file=sys.stderr)
        return 3
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
