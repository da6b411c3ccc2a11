from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from bedplate.core import config
from bedplate.core.errors import ConfigurationError


@dataclass(frozen=True)
class Gateway:
    port: int = 8000
    host: str = "127.0.0.1"
    keys: bool = True
    origins: tuple[str, ...] = ()
    mode: Literal["open", "closed"] = "closed"
    model: Path | None = None


def load(
    tmp_path: Path, text: str = "", env: dict[str, str] | None = None, **flags: Any
) -> Gateway:
    """The gateway section from a file, an environment and flags."""
    (tmp_path / "bedplate.toml").write_text(text)
    loaded = config.load(
        {"gateway": Gateway}, flags={"gateway": flags}, data_dir=tmp_path, environment=env or {}
    )
    return loaded.section(Gateway)


def test_flag_beats_environment_beats_file_beats_default(tmp_path: Path) -> None:
    """The order of the contract, one source taken away at a time."""
    text, env = "[gateway]\nport = 1\n", {"BEDPLATE_GATEWAY_PORT": "2"}
    assert load(tmp_path, text, env, port=3).port == 3
    assert load(tmp_path, text, env, port=None).port == 2
    assert load(tmp_path, text).port == 1
    assert load(tmp_path).port == 8000


def test_the_environment_is_text_turned_into_types(tmp_path: Path) -> None:
    """Booleans, lists, choices and paths all have a text form."""
    env = {
        "BEDPLATE_GATEWAY_KEYS": "false",
        "BEDPLATE_GATEWAY_ORIGINS": "a, b",
        "BEDPLATE_GATEWAY_MODE": "open",
        "BEDPLATE_GATEWAY_MODEL": "/m.gguf",
    }
    gateway = load(tmp_path, env=env)
    assert gateway == Gateway(keys=False, origins=("a", "b"), mode="open", model=Path("/m.gguf"))


@pytest.mark.parametrize(
    ("text", "env", "words"),
    [
        ("[gateway]\nprot = 1\n", {}, ["prot", "'port'", "bedplate.toml"]),
        ("[gatewya]\n", {}, ["gatewya", "'gateway'"]),
        ("", {"BEDPLATE_GATEWAY_PROT": "1"}, ["BEDPLATE_GATEWAY_PROT", "'port'"]),
        ("[gateway]\nport = 'x'\n", {}, ["[gateway] port", "'x'"]),
        ("", {"BEDPLATE_GATEWAY_PORT": "x"}, ["BEDPLATE_GATEWAY_PORT", "'x'"]),
        ("[gateway]\nmode = 'ajar'\n", {}, ["mode", "'ajar'"]),
        ("port = 1\n", {}, ["unknown key 'port'"]),
        ("gateway = 1\n", {}, ["outside of a section"]),
        ("[gateway\n", {}, ["not valid TOML"]),
    ],
)
def test_a_wrong_value_is_named_with_its_source(
    tmp_path: Path, text: str, env: dict[str, str], words: list[str]
) -> None:
    """One sentence: where it stands, what it is, and the nearest known key."""
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, text, env)
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert caught.value.exit_code == 2


def test_a_file_never_turns_text_into_numbers(tmp_path: Path) -> None:
    """TOML has types; `port = "1"` is a mistake, not a number."""
    with pytest.raises(ConfigurationError, match="not valid"):
        load(tmp_path, '[gateway]\nport = "1"\n')


def test_sections_of_other_programs_are_let_be(tmp_path: Path) -> None:
    """One file serves every program of the platform."""
    assert load(tmp_path, "[serving]\nwhatever = 1\n[gateway]\nport = 4\n").port == 4


def test_variables_for_native_code_are_not_keys(tmp_path: Path) -> None:
    """BEDPLATE_HAL_LOG belongs to the loader, not to section [hal]."""

    @dataclass(frozen=True)
    class Hal:
        device: str = "cpu"

    env = {"BEDPLATE_HAL_LOG": "debug", "BEDPLATE_HAL_DEVICE": "liar"}
    loaded = config.load({"hal": Hal}, data_dir=tmp_path, environment=env)
    assert loaded.section(Hal).device == "liar"


def test_a_named_file_must_exist(tmp_path: Path) -> None:
    """A typing mistake in --config never falls back to another file."""
    with pytest.raises(ConfigurationError, match="does not exist"):
        config.load({}, file=str(tmp_path / "no.toml"), data_dir=tmp_path, environment={})
    with pytest.raises(ConfigurationError, match="does not exist"):
        config.load(
            {}, data_dir=tmp_path, environment={"BEDPLATE_CONFIG": str(tmp_path / "no.toml")}
        )


def test_the_working_directory_is_never_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command does the same wherever it is called."""
    (tmp_path / "bedplate.toml").write_text("[gateway]\nport = 1\n")
    monkeypatch.chdir(tmp_path)
    loaded = config.load({"gateway": Gateway}, data_dir=tmp_path / "data", environment={})
    assert loaded.section(Gateway).port == 8000
