import argparse
from collections.abc import Callable

import pytest

import bedplate
from bedplate.cli import main as cli
from bedplate.cli.flags import common_flags
from bedplate.core.errors import BedplateError, EnvironmentLacks, UsageError

Run = Callable[[argparse.Namespace], int]


@pytest.fixture
def verb(monkeypatch: pytest.MonkeyPatch) -> Callable[[Run], None]:
    """Makes the command line consist of one verb, `try`, that runs a function."""

    def install(run: Run) -> None:
        def register(verbs: argparse._SubParsersAction) -> None:  # type: ignore[type-arg]
            verbs.add_parser("try", parents=[common_flags()]).set_defaults(run=run)

        monkeypatch.setattr(cli, "_registrations", lambda: [register])

    return install


def raising(error: BaseException) -> Run:
    """A verb that fails with `error`."""

    def run(_: argparse.Namespace) -> int:
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "exit_code", "sentence"),
    [
        (BedplateError("it broke"), 1, "bedplate try: it broke"),
        (UsageError("x is wrong", remedy="give y"), 2, "bedplate try: x is wrong; give y"),
        (EnvironmentLacks("no compiler"), 3, "bedplate try: no compiler"),
        (ZeroDivisionError("oh"), 1, "bedplate try: internal error, ZeroDivisionError: oh"),
    ],
)
def test_an_error_is_one_sentence_and_an_exit_code(
    verb: Callable[[Run], None],
    capsys: pytest.CaptureFixture[str],
    error: Exception,
    exit_code: int,
    sentence: str,
) -> None:
    """No traceback without --debug, nothing on stdout."""
    verb(raising(error))
    assert cli.main(["try"]) == exit_code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(sentence)
    assert err.count("\n") == 1


def test_debug_shows_the_traceback_before_the_sentence(
    verb: Callable[[Run], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever asks sees where it happened, and the sentence stays last."""
    verb(raising(UsageError("x is wrong")))
    assert cli.main(["try", "--debug"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("Traceback")
    assert lines[-1] == "bedplate try: x is wrong"


def test_an_interrupt_is_not_a_success(verb: Callable[[Run], None]) -> None:
    """A verb that was stopped halfway did not do its work; those that run until Ctrl-C return 0."""
    verb(raising(KeyboardInterrupt()))
    assert cli.main(["try"]) == 1


def test_a_verb_that_returns_nothing_is_done(verb: Callable[[Run], None]) -> None:
    """The exit code of a verb is its return value, 0 for none."""
    verb(lambda parsed: 1 if parsed.json else 0)
    assert cli.main(["try"]) == 0
    assert cli.main(["try", "--json"]) == 1


def test_no_verb_is_a_usage_error_with_help(capsys: pytest.CaptureFixture[str]) -> None:
    """The list of verbs goes to stderr, exit code 2."""
    assert cli.main([]) == 2
    assert "usage: bedplate" in capsys.readouterr().err


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    """It comes from pyproject.toml and nowhere else."""
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"bedplate {bedplate.__version__}\n"
