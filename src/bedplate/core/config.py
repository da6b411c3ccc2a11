"""Configuration: flag > environment > file > default, checked before use.

A system declares its section as a frozen dataclass; core knows no keys:

    @dataclass(frozen=True)
    class GatewayConfig:
        port: int = 8000

    config = load({"gateway": GatewayConfig}, flags={"gateway": {"port": 9000}})
    config.section(GatewayConfig).port

The file is TOML with one table a section; the environment's name for the key
is `BEDPLATE_GATEWAY_PORT`. An unknown section or key is an error that names
the nearest known one, or all when none is near; a section that this program
does not read is let be. The working directory is never searched: what a
command does must not depend on where it is called.
"""

from __future__ import annotations

import dataclasses
import os
import tomllib
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from bedplate.core import nearest, paths
from bedplate.core.errors import ConfigurationError

SYSTEM_FILE = Path("/etc/bedplate/bedplate.toml")
SECTIONS = frozenset(
    {
        *("core", "gateway", "orchestrator", "simt", "roofline", "kernels", "compiler"),
        *("driver", "containers", "runtime", "cluster", "serving", "collectives", "hal"),
        *("observability", "licensing", "standards", "guide"),
    }
)
# Variables with a fixed meaning that are not keys of a section.
FIXED_VARIABLES = frozenset(
    {
        "BEDPLATE_HAL_BACKEND_FILES",
        "BEDPLATE_HAL_BACKEND_DIRS",
        "BEDPLATE_HAL_LOG",
        "BEDPLATE_HAL_CPU_THREADS",
        "BEDPLATE_RUNTIME_ALLOC_CONF",
        "BEDPLATE_COLLECTIVES_STRICT_CALLSITE",
    }
)

Section = TypeVar("Section")


class Configuration:
    """The sections that a program asked for, each complete and checked.

    `source` is the file that was read, or None.
    """

    def __init__(self, sections: Mapping[type[Any], Any], source: Path | None) -> None:
        self._sections = sections
        self.source = source

    def section(self, kind: type[Section]) -> Section:
        """The values of one section, by its dataclass."""
        return typing.cast(Section, self._sections[kind])


def load(
    sections: Mapping[str, type[Any]],
    *,
    flags: Mapping[str, Mapping[str, Any]] | None = None,
    file: str | None = None,
    data_dir: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Configuration:
    """Read and check the configuration.

    `sections` maps names to dataclasses; `flags` holds the values given on
    the command line, where None means "not given"; `file` is `--config`.
    Raises `ConfigurationError` naming the value, where it came from and the
    nearest known key, or all of them.
    """
    env = os.environ if environment is None else environment
    source = find_file(file, data_dir or paths.data_dir(None, env), env)
    tables = _read(source) if source else {}
    built: dict[type[Any], Any] = {}
    for name, kind in sections.items():
        hints = typing.get_type_hints(kind, include_extras=True)
        known = [field.name for field in dataclasses.fields(kind)]
        values: dict[str, Any] = {}
        for key, value in tables.get(name, {}).items():
            where = f"{source}, [{name}] {key}"
            _check_known(key, known, where)
            values[key] = _convert(value, hints[key], where, strict=True)
        for variable, text in _variables(name, env):
            key = variable.removeprefix(f"BEDPLATE_{name.upper()}_").lower()
            _check_known(key, known, variable)
            values[key] = _convert(text, hints[key], variable, strict=False)
        for key, value in (flags or {}).get(name, {}).items():
            if value is not None:
                values[key] = _convert(
                    value, hints[key], f"--{key.replace('_', '-')}", strict=False
                )
        try:
            built[kind] = kind(**values)
        except TypeError as cause:
            raise ConfigurationError(f"section [{name}] lacks a value: {cause}") from cause
    return Configuration(built, source)


def find_file(flag: str | None, data: Path, environment: Mapping[str, str]) -> Path | None:
    """The configuration file to read: `--config`, `BEDPLATE_CONFIG`, the data
    directory's, the system's, or None. A named file must exist.
    """
    if named := flag or environment.get("BEDPLATE_CONFIG"):
        path = Path(named).expanduser()
        if not path.is_file():
            raise ConfigurationError(f"the configuration file {path} does not exist")
        return path
    for path in (data / "bedplate.toml", SYSTEM_FILE):
        if path.is_file():
            return path
    return None


def _read(source: Path) -> dict[str, dict[str, Any]]:
    try:
        tables = tomllib.loads(source.read_text(encoding="utf-8"))
    except OSError as cause:
        raise ConfigurationError(f"cannot read {source}: {cause.strerror}") from cause
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as cause:
        raise ConfigurationError(f"{source} is not valid TOML: {cause}") from cause
    for name, table in tables.items():
        _check_known(name, sorted(SECTIONS), f"{source}, section [{name}]")
        if not isinstance(table, dict):
            raise ConfigurationError(
                f"{source}: {name} is a value outside of a section",
                remedy=f"write it under a section such as [{name}]",
            )
    return tables


def _variables(section: str, environment: Mapping[str, str]) -> list[tuple[str, str]]:
    prefix = f"BEDPLATE_{section.upper()}_"
    found = [(name, text) for name, text in environment.items() if name.startswith(prefix)]
    return sorted((name, text) for name, text in found if name not in FIXED_VARIABLES)


def _check_known(key: str, known: list[str], where: str) -> None:
    if key in known:
        return
    raise ConfigurationError(
        f"{where}: unknown key {key!r}",
        code="core.unknown_key",
        remedy=nearest.hint(key, known) if known else "the section has no keys",
    )


def _convert(value: Any, kind: Any, where: str, *, strict: bool) -> Any:
    if not strict and isinstance(value, str) and typing.get_origin(kind) is tuple:
        # In the environment a list is written with commas.
        value = [part.strip() for part in value.split(",") if part.strip()]
    try:
        return msgspec.convert(value, kind, strict=strict, dec_hook=_from_text)
    except msgspec.ValidationError as cause:
        reason = str(cause)[:1].lower() + str(cause)[1:]
        raise ConfigurationError(f"{where}: {value!r} is not valid, {reason}") from cause


def _from_text(kind: type[Any], value: Any) -> Any:
    if kind is Path and isinstance(value, str):
        return Path(value).expanduser()
    raise NotImplementedError(f"a configuration value cannot be a {kind.__name__}")
