"""The same two-layer model, 64 wide, with random weights, gives the same tokens everywhere.

One row a step, keys and values written into a cache at an offset, greedy. The
numbers of a step differ between devices by rounding; tokens are the same
because at every step the best two logits are further apart than that, which
is checked against double precision, not assumed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.hal.opencl import PLATFORMS, platform_device

from bedplate.core.paths import native_library_dir
from bedplate.hal.api import U32, Batch, Device, Kernel, Range, Tensor, open_device

FOLDER = native_library_dir() / "examples"
VOCABULARY, WIDTH, HIDDEN, LAYERS, CONTEXT = 96, 64, 128, 2, 16
PROMPT = (5, 17, 61, 2)
ROW_BYTES = 4 * WIDTH
SUFFIXES = {"ptx": "ptx", "opencl_c": "cl"}


def weights() -> dict[str, NDArray[np.float32]]:
    """Random, of a size that keeps activations near one."""
    random = np.random.default_rng(20261130)

    def normal(rows: int, columns: int) -> NDArray[np.float32]:
        return (random.standard_normal((rows, columns)) / np.sqrt(rows)).astype("f4")

    found = {"table": random.standard_normal((VOCABULARY, WIDTH)).astype("f4")}
    for layer in range(LAYERS):
        for name in ("q", "k", "v", "o"):
            found[f"{name}{layer}"] = normal(WIDTH, WIDTH)
        found[f"gate{layer}"], found[f"up{layer}"] = normal(WIDTH, HIDDEN), normal(WIDTH, HIDDEN)
        found[f"down{layer}"] = normal(HIDDEN, WIDTH)
    found["norm"] = np.ones(WIDTH, "f4")
    found["head"] = 4 * normal(WIDTH, VOCABULARY)
    return found


def reference(tokens: Sequence[int]) -> NDArray[np.float64]:
    """Logits behind the last token, in double precision."""
    w = {name: array.astype("f8") for name, array in weights().items()}

    def norm(rows: NDArray[np.float64]) -> NDArray[np.float64]:
        scale = np.sqrt((rows**2).mean(-1, keepdims=True) + 1e-5)
        return np.asarray(rows / scale * w["norm"])

    x = w["table"][list(tokens)]
    for layer in range(LAYERS):
        y = norm(x)
        q, k, v = (y @ w[f"{name}{layer}"] for name in "qkv")
        scores = q @ k.T / np.sqrt(WIDTH)
        scores[np.triu_indices(len(tokens), 1)] = -np.inf
        soft = np.exp(scores - scores.max(-1, keepdims=True))
        x = x + soft / soft.sum(-1, keepdims=True) @ v @ w[f"o{layer}"]
        y = norm(x)
        gate = y @ w[f"gate{layer}"]
        x = x + gate / (1 + np.exp(-gate)) * (y @ w[f"up{layer}"]) @ w[f"down{layer}"]
    return np.asarray(norm(x)[-1] @ w["head"])


class Model:
    """The model on a device: its weights, its cache, and rows to work in."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.weights = {name: device.upload(array) for name, array in weights().items()}
        caches = [f"{name}_cache{layer}" for name in "kv" for layer in range(LAYERS)]
        self.caches = {name: device.allocate(CONTEXT * ROW_BYTES) for name in caches}
        sizes = {"gate": HIDDEN, "up": HIDDEN, "mixed": HIDDEN, "logits": VOCABULARY}
        names = ("x", "y", "z", "q", "attended", "scores", *sizes)
        self.rows = {name: device.empty((sizes.get(name, WIDTH),), "f4") for name in names}
        self.kernels: dict[str, Kernel] = {}
        for file in ("arithmetic", "layers"):
            if "module_native" in device.info.claims:
                module = device.load_native_module(FOLDER / f"{file}.so")
            else:
                kind = "ptx" if "module_ptx" in device.info.claims else "opencl_c"
                path = FOLDER / f"{file}.{SUFFIXES[kind]}"
                module = device.load_module(kind, path.read_bytes(), path.name)
            self.kernels |= {name: module.kernel(name) for name in module.kernels()}

    def step(self, token: int, position: int) -> Batch:
        """The commands for one token."""
        batch, w, r = Batch(), self.weights, self.rows

        def run(kernel: str, *arguments: Any) -> None:
            batch.launch(self.kernels[kernel], (1,), arguments, block=(64,))

        def product(out: Tensor | Range, row: Tensor, weight: str) -> None:
            inner, columns = w[weight].shape
            run("product", out, row, w[weight], U32(1), U32(inner), U32(columns))

        run("embed", r["x"], w["table"], U32(token), U32(WIDTH))
        for layer in range(LAYERS):
            k, v = self.caches[f"k_cache{layer}"], self.caches[f"v_cache{layer}"]
            run("rmsnorm", r["y"], r["x"], w["norm"], U32(WIDTH))
            product(r["q"], r["y"], f"q{layer}")
            product(Range(k, position * ROW_BYTES, ROW_BYTES), r["y"], f"k{layer}")
            product(Range(v, position * ROW_BYTES, ROW_BYTES), r["y"], f"v{layer}")
            run("scores", r["scores"], r["q"], k, U32(position + 1), U32(WIDTH))
            run("attend", r["attended"], r["scores"], v, U32(position + 1), U32(WIDTH))
            product(r["z"], r["attended"], f"o{layer}")
            run("add", r["y"], r["x"], r["z"], U32(WIDTH))
            run("rmsnorm", r["z"], r["y"], w["norm"], U32(WIDTH))
            product(r["gate"], r["z"], f"gate{layer}")
            product(r["up"], r["z"], f"up{layer}")
            run("silu_mul", r["mixed"], r["gate"], r["up"], U32(HIDDEN))
            product(r["z"], r["mixed"], f"down{layer}")
            run("add", r["x"], r["y"], r["z"], U32(WIDTH))
        run("rmsnorm", r["y"], r["x"], w["norm"], U32(WIDTH))
        product(r["logits"], r["y"], "head")
        return batch


POCL, OCLGRIND = PLATFORMS
SLOW = pytest.param(OCLGRIND, marks=pytest.mark.soak)
"""The simulator takes twenty seconds for the sixteen steps."""


@pytest.fixture(params=["cpu", "simt", POCL, SLOW, pytest.param("cuda", marks=pytest.mark.device)])
def device(request: pytest.FixtureRequest) -> Iterator[Device]:
    """cpu, the software GPU, a device of each OpenCL platform, and a real GPU."""
    spec = platform_device(request.param).id if request.param in PLATFORMS else request.param
    with open_device(spec, trust_claims=True) as opened:
        yield opened


def test_the_tokens_are_those_of_double_precision(device: Device) -> None:
    """Twelve tokens behind a prompt of four, each step's logits near, its choice beyond doubt."""
    model, tokens = Model(device), list(PROMPT)
    with device.queue() as queue:
        for position in range(CONTEXT):
            queue.submit(model.step(tokens[position], position))
            logits = queue.download(model.rows["logits"])
            if position + 1 < len(PROMPT):
                continue
            wanted = reference(tokens[: position + 1])
            second, first = np.sort(wanted)[-2:]
            error = float(abs(logits - wanted).max())
            assert error < 1e-4
            assert first - second > 4 * error
            tokens.append(int(logits.argmax()))
            assert tokens[-1] == int(wanted.argmax())
    assert len(set(tokens[len(PROMPT) :])) > 3
