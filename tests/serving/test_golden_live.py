"""The golden file against transformers itself, run live: `make soak`.

Runs in the Python that BEDPLATE_PEER_PYTHON names, or this one; NOT RUN without
transformers. Long prompts are left out: they take most of the time and were made
by the same code.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bedplate.serving.api import find_model

ROOT = Path(__file__).parents[2]
LONGEST = 300

_PROGRAM = """
import json, sys, torch
sys.path[:0] = [{root!r}, {root!r} + "/src"]
from tests.serving.golden import make
from tests.serving.golden.prompts import prompts
from bedplate.serving.tokenizer import from_gguf
from pathlib import Path
path = Path({model!r})
model, meta = make.load(path)
found = []
with torch.inference_mode():
    for ids in prompts(from_gguf(path, meta.get).encode):
        if len(ids) <= {longest}:
            best = make.logits_of(model, ids).max(-1)
            found.append([best.indices.tolist(), best.values.tolist()])
json.dump(found, open({out!r}, "w"))
"""


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_transformers_still_gives_what_the_golden_file_says(tmp_path: Path) -> None:
    """Best tokens equal and their logits within float32's rounding, on prompts up to 300 tokens."""
    python = os.environ.get("BEDPLATE_PEER_PYTHON", sys.executable)
    probe = [python, "-c", "import torch, transformers, gguf, tokenizers"]
    if subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip(f"NOT RUN: {python} has no transformers; run `make peers`")
    out = tmp_path / "live.json"
    program = _PROGRAM.format(
        root=str(ROOT), model=str(find_model("smollm2")), longest=LONGEST, out=str(out)
    )
    subprocess.run([python, "-c", program], check=True, timeout=1100)
    live = json.loads(out.read_text())
    document = json.loads((Path(__file__).parent / "golden" / "expected.json").read_text())
    stored = [p for p in document["prompts"] if p["length"] <= LONGEST]
    assert len(live) == len(stored) > 30
    for (best, values), entry in zip(live, stored, strict=True):
        decided = np.array(entry["margin"]) > 0.01
        assert (np.array(best) == entry["best"])[decided].all()
        np.testing.assert_allclose(values, entry["logit"], atol=5e-3)
