"""What native code says on stderr, by BEDPLATE_HAL_LOG."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FAILING = """
import sys
import numpy as np
from bedplate.hal.api import Batch, DeviceError, U64, open_device
with open_device("cpu", trust_claims=True) as device, device.queue() as queue:
    batch = Batch()
    batch.launch(device.load_native_module(sys.argv[1]).kernel("fail_at"), (1,), [U64(0)])
    queue.submit(batch, tag=4711)
    try:
        queue.synchronize()
    except DeviceError:
        pass
"""


@pytest.mark.parametrize(
    ("level", "speaks"),
    [("error", True), ("debug", True), ("loud", False), (None, False)],
)
def test_a_failed_batch_is_logged_with_its_tag(
    conform_module: Path, level: str | None, speaks: bool
) -> None:
    """One line at the level error; nothing when the variable is unset or no level."""
    environment = {k: v for k, v in os.environ.items() if k != "BEDPLATE_HAL_LOG"}
    if level is not None:
        environment["BEDPLATE_HAL_LOG"] = level
    done = subprocess.run(
        [sys.executable, "-c", FAILING, str(conform_module)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    line = "error hal batch 4711, command 0 (launch fail_at): block 0 was told to fail\n"
    assert done.stderr == (line if speaks else "")
