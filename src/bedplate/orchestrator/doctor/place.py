"""The place where a platform lives: configuration, model, data directory, port, key, health."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bedplate.core import keyfile
from bedplate.core.command import quoted
from bedplate.core.config import Configuration, load
from bedplate.core.errors import ConfigurationError, EnvironmentLacks
from bedplate.orchestrator import record
from bedplate.orchestrator.config import GatewayConfig, OrchestratorConfig
from bedplate.orchestrator.doctor.finding import Finding, failed, lacks, not_run, of_error, ok
from bedplate.orchestrator.probe import Endpoint
from bedplate.serving.api import (
    PACKAGED,
    Address,
    ModelFileError,
    ServingConfig,
    ServingError,
    find_model,
    open_model,
)

_ELSEWHERE = "choose another with --data-dir or BEDPLATE_DATA_DIR"
# Python, libraries and one step's activations: 260 MiB measured with the default model.
_PROCESS_BYTES = 300 << 20
_SECTIONS = {
    "gateway": GatewayConfig,
    "orchestrator": OrchestratorConfig,
    "serving": ServingConfig,
}


@dataclass(frozen=True)
class Place:
    """A data directory, and the file that `--config` names."""

    data: Path
    config: str | None = None

    def load(self) -> Configuration:
        """The configuration that commands here would use. Raises `ConfigurationError`."""
        return load(_SECTIONS, file=self.config, data_dir=self.data)

    def is_configured(self) -> bool:
        """Whether `load` works."""
        try:
            self.load()
        except ConfigurationError:
            return False
        return True

    def configuration(self) -> Iterator[Finding]:
        """Whether file and environment can be read."""
        source = self.load().source
        yield ok("configuration", f"from {source}" if source else "defaults and the environment")

    def model(self) -> Iterator[Finding]:
        """Whether the configured model is there, with the right hash."""
        name = self.load().section(OrchestratorConfig).model
        try:
            path = find_model(name)
        except ModelFileError as error:
            absent = name in PACKAGED and "hash" not in error.message
            yield (lacks if absent else failed)("model", error.message, error.remedy or "")
            return
        hashed = "with the expected hash" if name in PACKAGED else "found"
        yield ok("model", f"{name}, {path.name} {hashed}")

    def needed_bytes(self) -> tuple[int | None, str]:
        """Memory that the configured model needs for one longest request, and its name.

        The weights once, in the precision they are held in: as in the file unless
        `dtype` says otherwise.
        """
        configuration = self.load()
        name = configuration.section(OrchestratorConfig).model
        serving = configuration.section(ServingConfig)
        try:
            path = find_model(name)
            shape = open_model(path).config
        except ServingError:
            return None, name
        longest = serving.max_model_len or shape.context_length
        element = 4 if serving.dtype == "float32" else 2
        per_token = 2 * shape.layers * shape.kv_heads * shape.head_dim * element
        wide = serving.dtype in ("float32", "bfloat16")
        weights = shape.parameters * element if wide else _file_bytes(path)
        return weights + longest * per_token + _PROCESS_BYTES, name

    def folder(self) -> Iterator[Finding]:
        """Whether the data directory can be written, and only by its owner."""
        name = "data directory"
        if not self.data.exists():
            parent = next(p for p in self.data.parents if p.exists())
            if not parent.is_dir() or not _can_write(parent):
                yield lacks(name, f"{self.data} cannot be made in {parent}", _ELSEWHERE)
            else:
                yield ok(name, f"{self.data} will be made by the first start")
        elif not self.data.is_dir():
            yield failed(name, f"{self.data} is not a folder", _ELSEWHERE)
        elif not _can_write(self.data):
            yield lacks(name, f"no permission to write in {self.data}", _ELSEWHERE)
        elif stat.S_IMODE(self.data.stat().st_mode) & 0o077:
            yield failed(name, f"{self.data} is open to others", f"run `chmod 700 {self.data}`")
        else:
            yield ok(name, f"{self.data}, private")

    def port(self) -> Iterator[Finding]:
        """Whether the gateway's port is free, or held by this very platform."""
        running = record.read(self.data)
        if running is not None:  # whatever is configured: it may have been given as a flag
            text = f"{running.port} of {running.host or running.reachable_host}"
            yield ok("port", f"{text}, held by our own platform, process {running.pid}")
            return
        section = self.load().section(GatewayConfig)
        text = f"{section.port} of {section.host}"
        try:
            with contextlib.closing(Address(section.host, section.port).bind()):
                yield ok("port", f"{text} is free")
        except EnvironmentLacks as error:
            yield of_error("port", error)

    def key(self) -> Iterator[Finding]:
        """Whether there is an API key to accept."""
        if os.environ.get("BEDPLATE_API_KEY"):
            yield ok("API key", "from BEDPLATE_API_KEY")
        elif not (self.data / keyfile.FILE).exists():
            yield ok("API key", "none yet; the first start makes one and shows it once")
        else:
            stored = keyfile.read(self.data / keyfile.FILE)
            names = ", ".join(sorted(stored))
            if stored:
                yield ok("API key", f"{len(stored)} stored: {names}")
            else:
                remedy = f"remove {self.data / keyfile.FILE} to have one made"
                yield failed("API key", "the file of keys holds none", remedy)

    def platform(self) -> Iterator[Finding]:
        """Whether every part of a running platform is well."""
        running = record.read(self.data)
        if running is None:
            yield not_run(
                "platform",
                "nothing runs on this data directory",
                f"{quoted('up', self.data)} starts it",
            )
            return
        for child in record.children(self.data):
            name = child["name"]
            if child["state"] != "ready":
                remedy = f"see {quoted('status', self.data)} and {self.data}/run/{name}.log"
                yield failed(name, f"{child['state']}: {child['reason'] or 'loading'}", remedy)
            elif child["restarts"]:
                count = child["restarts"]
                times = "once" if count == 1 else f"{count} times"
                text = f"ready, process {child['pid']}, started again {times}"
                yield ok(name, f"{text}, the last time since {child['last_end']}")
            else:
                yield ok(name, f"ready, process {child['pid']}")
        yield self._answers(running)

    def _answers(self, running: record.Record) -> Finding:
        endpoint = Endpoint(running.reachable_host, running.port, route="/ready")
        answer = endpoint.ask(5.0)
        if answer and answer.get("ready"):
            return ok("platform", f"{running.model} answers at {running.url}/v1")
        return failed(
            "platform", f"no request would be served at {running.url}", "wait, or restart it"
        )


def _file_bytes(path: Path) -> int:
    files = path.glob("*.safetensors") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)


def _can_write(folder: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
