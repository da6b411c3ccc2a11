"""From a model's name or path to a running engine.

A name stands for a model package on this machine; a path for a GGUF file or a
folder with safetensors. Nothing is fetched.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bedplate.core.metrics import Registry
from bedplate.core.modelname import model_name
from bedplate.hal.api import Device, open_device
from bedplate.kernels.api import select
from bedplate.serving.engine import EngineLoop
from bedplate.serving.errors import LimitsError, ModelFileError
from bedplate.serving.generate import Result, generate
from bedplate.serving.gguf_model import GgufModel
from bedplate.serving.metrics import EngineMetrics, add_vllm_aliases
from bedplate.serving.modelfile import ModelFile
from bedplate.serving.models.base import Precision
from bedplate.serving.models.llama import Llama
from bedplate.serving.pace import Pace
from bedplate.serving.packaged import DEFAULT_MODEL, find_model
from bedplate.serving.pools import EnginePools
from bedplate.serving.runner import Runner
from bedplate.serving.safetensors_model import SafetensorsModel
from bedplate.serving.sampling import Sampling
from bedplate.serving.scheduler import Limits
from bedplate.serving.template import ChatTemplate

MOST_RUNNING = 1024
BLOCK_TOKENS = (16, 32)  # what every attention kernel takes
_QUANTIZED_FORMATS = ("q4_0", "q4_1", "q8_0")


@dataclass(frozen=True)
class EngineOptions:
    """What an operator may choose. None: chosen for the model and the machine.

    `kv_memory_bytes` bounds the KV pool; lengths and batches in tokens.
    """

    device: str = "cpu"
    precision: Precision | None = None
    max_model_tokens: int | None = None
    max_running: int = 64
    max_batched_tokens: int = 512
    block_tokens: int = 16
    kv_memory_bytes: int | None = None
    prefix_sharing: bool = True
    metrics_alias: str = "vllm"

    def __post_init__(self) -> None:
        """Raise `LimitsError` naming the first flag out of range."""
        ranges: list[tuple[str, int | None, int, int]] = [
            ("--max-model-len", self.max_model_tokens, 2, 1 << 24),
            ("--max-num-seqs", self.max_running, 1, MOST_RUNNING),
            ("--max-num-batched-tokens", self.max_batched_tokens, 1, 1 << 16),
            ("--kv-memory-bytes", self.kv_memory_bytes, 1, 1 << 50),
        ]
        for flag, value, least, most in ranges:
            if value is not None and not least <= value <= most:
                raise LimitsError(f"{flag} is {value}, it must be from {least} to {most}")
        if self.block_tokens not in BLOCK_TOKENS:
            raise LimitsError(
                f"--block-size is {self.block_tokens}, it must be one of "
                f"{', '.join(map(str, BLOCK_TOKENS))}"
            )


def open_model(path: Path) -> ModelFile:
    """Open a GGUF file or a safetensors folder.

    Raises `ModelFileError` for damage or a pickle format, `UnsupportedModel` for
    a kind that is not served.
    """
    with _typed_errors(path):
        return _open(path)


@contextlib.contextmanager
def _typed_errors(path: Path) -> Iterator[None]:
    """What reading a damaged model can raise, as `ModelFileError`."""
    try:
        yield
    except OSError as cause:
        raise ModelFileError(f"cannot read {path}: {cause.strerror or cause}") from cause
    except (
        TypeError,
        ValueError,
        AttributeError,
        LookupError,
        OverflowError,
        RecursionError,
    ) as cause:
        # What a file says of itself has a type or a size that nothing sound has.
        raise ModelFileError(
            f"{path} holds a value of the wrong kind: {type(cause).__name__}: {cause}",
            remedy="fetch the model again, or convert it anew",
        ) from cause


def _open(path: Path) -> ModelFile:
    if path.is_dir():
        return SafetensorsModel(path)
    if path.suffix in (".pt", ".pth", ".bin", ".pkl", ".ckpt"):
        raise ModelFileError(
            f"{path} is a pickle, which can run code when it is read",
            remedy="convert it to safetensors or GGUF",
        )
    if path.suffix == ".safetensors":
        raise ModelFileError(
            f"{path} is one file of a model", remedy=f"give its folder, {path.parent}"
        )
    return GgufModel(path)


def plan_limits(
    model: ModelFile, options: EngineOptions, bytes_per_token: int, memory: int
) -> Limits:
    """Pool and batch limits. `memory` is what the device has, in bytes.

    Raises `LimitsError` when one longest request does not fit the pool.
    """
    longest = options.max_model_tokens or model.config.context_length
    if not 2 <= longest <= model.config.context_length:
        raise LimitsError(
            f"--max-model-len is {longest}, the model takes 2 to {model.config.context_length}"
        )
    block = options.block_tokens
    budget = options.kv_memory_bytes
    if budget is None:
        # As much as eight longest requests, within a quarter of the memory.
        budget = min(memory // 4, 8 * longest * bytes_per_token)
    blocks = budget // (bytes_per_token * block)
    if blocks * block < longest:
        fits = blocks * block
        raise LimitsError(
            f"the KV pool of {budget} bytes holds {fits} tokens, "
            f"less than one request of {longest}",
            remedy=f"use --max-model-len {fits} or less, or a larger --kv-memory-bytes",
        )
    return Limits(
        block_count=blocks,
        max_requests=max(1024, 2 * options.max_running),
        block_tokens=block,
        max_running=options.max_running,
        max_batched_tokens=options.max_batched_tokens,
        max_model_tokens=longest,
        max_sample_rows=options.max_running,
        prefix_sharing=options.prefix_sharing,
    )


class Engine(EngineLoop):
    """A loaded model with its engine. Use as a context manager.

    Attributes for people: `name`, `model`, `precision`, `device`, `kv_bytes`.
    """

    def __init__(
        self,
        spec: str = DEFAULT_MODEL,
        options: EngineOptions | None = None,
        *,
        registry: Registry | None = None,
        name: str | None = None,
    ) -> None:
        """Load the model and start. Raises what `find_model` and `open_model` do."""
        options = options or EngineOptions()
        self.model = model = open_model(find_model(spec))
        self.name = model_name(spec) if name is None else name
        if not self.name:
            raise LimitsError("the name to serve the model under is empty")
        if options.precision is None:
            quantized = model.weight_format() in _QUANTIZED_FORMATS
            self.precision = Precision.QUANTIZED if quantized else Precision.BFLOAT16
        else:
            self.precision = options.precision
        with _typed_errors(model.path):
            tokenizer = model.tokenizer()
        if tokenizer.size > model.config.vocabulary:
            raise ModelFileError(
                f"the tokenizer of {model.path} has {tokenizer.size} ids, "
                f"its embedding {model.config.vocabulary} rows"
            )
        source = model.chat_template
        with contextlib.ExitStack() as undo:
            self.template: ChatTemplate | None = None
            if source:
                self.template = ChatTemplate(source, model.template_variables())
                undo.callback(self.template.close)
            # Ends after the device, whose close waits for the last view of its memory.
            after_device = undo.enter_context(contextlib.ExitStack())
            self.device: Device = undo.enter_context(open_device(options.device))
            self.pools = EnginePools(self.device)
            after_device.callback(self.pools.close)
            self.registry = registry or Registry()
            runner, limits, metrics = self._assemble(model, options, tokenizer.size)
            pace = Pace(model.config.parameters)
            super().__init__(runner, tokenizer, limits, metrics, pace)
            self._resources = undo.pop_all()

    def _assemble(
        self, model: ModelFile, options: EngineOptions, id_count: int
    ) -> tuple[Runner, Limits, EngineMetrics]:
        device = self.device
        pools = self.pools
        ops = select(device, weights=pools.weights)
        rows, samples = options.max_batched_tokens, options.max_running
        loaded = Llama(pools, ops, model, self.precision, rows=rows, samples=samples)
        limits = plan_limits(model, options, loaded.kv_bytes_per_token(), device.info.memory_bytes)
        self.kv_bytes = loaded.allocate_kv(limits.block_count, limits.block_tokens)
        runner = Runner(device, pools.scratch, ops, loaded, limits, id_count=id_count)
        runner.warm_up()
        pools.publish(self.registry, device.id)
        pools.seal()
        version = importlib.metadata.version("bedplate")
        if options.metrics_alias == "vllm":
            add_vllm_aliases(self.registry)
        return runner, limits, EngineMetrics(self.registry, self.name, version)

    def close(self) -> None:
        """Stop the engine, return the device and end the template's process."""
        super().close()
        self._resources.close()

    def metrics_text(self) -> str:
        """The text of `/metrics`."""
        return self.registry.exposition().decode()

    def generate(
        self, prompts: Iterable[str | Sequence[int]], sampling: Sampling | None = None
    ) -> list[Result]:
        """Run all prompts at once; see `generate.generate`."""
        return generate(self, prompts, sampling)

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
