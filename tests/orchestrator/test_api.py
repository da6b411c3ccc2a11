from __future__ import annotations

import subprocess
import sys

import pytest

from bedplate.orchestrator import api


def test_every_name_is_there() -> None:
    """What the list promises can be imported, and nothing else."""
    for name in api.__all__:
        assert getattr(api, name) is not None
    with pytest.raises(AttributeError, match="'nothing'"):
        api.nothing  # noqa: B018 (reading it is the test)


@pytest.mark.parametrize("name", ["run_gateway", "Platform", "ask"])
def test_what_never_computes_carries_no_engine(name: str) -> None:
    """The gateway stays small, and a command that only asks is there at once."""
    code = (
        f"import sys; from bedplate.orchestrator.api import {name}; "
        "print([m for m in ('numpy', 'tokenizers', 'gguf', 'jinja2', 'bedplate.hal.api', "
        "'bedplate.kernels.api') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_the_supervisor_carries_neither_model_nor_device_code() -> None:
    """It lives as long as the platform: no numpy, no HTTP client, no engine."""
    code = (
        "import sys; from bedplate.cli.supervise import run; "
        "from bedplate.orchestrator.api import Patience, Plan, run_supervisor; "
        "print([m for m in ('numpy', 'httpx', 'starlette', 'bedplate.serving.api', "
        "'bedplate.hal.api') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
