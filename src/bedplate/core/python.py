"""How a process of ours starts another one in Python.

The working directory is no place of modules: it may be a model's folder, and a
`queue.py` that came with a model must not run because the platform was started there.
"""

from __future__ import annotations

import sys

PYTHON = (sys.executable, "-P")
