import io
import json
import logging
from collections.abc import Iterator

import pytest

from bedplate.core.errors import ConfigurationError
from bedplate.core.logging import configure, get_logger


@pytest.fixture(autouse=True)
def _restore() -> Iterator[None]:
    logger = logging.getLogger("bedplate")
    before = logger.handlers[:], logger.level, logger.propagate
    yield
    logger.handlers[:], logger.level, logger.propagate = before


def test_text_lines_have_the_fields_in_order() -> None:
    """time level system event key=value, quoted only where needed."""
    out = io.StringIO()
    configure("info", "text", out)
    get_logger("serving").info("request_finished", tokens=3, reason="stop sign")
    time, rest = out.getvalue().split(" ", 1)
    assert time.endswith("Z")
    assert rest == 'info serving request_finished tokens=3 reason="stop sign"\n'


def test_json_lines_always_carry_a_trace_id() -> None:
    """A collector can rely on the six fields of the contract."""
    out = io.StringIO()
    configure("debug", "json", out)
    get_logger("hal.loader").debug("backend_opened", "opened cpu", path="x\ny")
    entry = json.loads(out.getvalue())
    del entry["time"]
    assert entry == {
        "level": "debug",
        "system": "hal.loader",
        "event": "backend_opened",
        "message": "opened cpu",
        "path": "x\ny",
        "trace_id": None,
    }


def test_one_record_is_one_line_whatever_it_holds() -> None:
    """A field with a line break cannot forge a second record."""
    out = io.StringIO()
    configure("info", "text", out)
    get_logger("serving").warning("odd", text="a\nb info serving forged")
    assert out.getvalue().count("\n") == 1


def test_below_the_level_nothing_is_written() -> None:
    """The level of the environment is honoured."""
    out = io.StringIO()
    configure("warning", "text", out)
    get_logger("serving").info("quiet")
    assert out.getvalue() == ""


def test_an_exception_brings_its_traceback() -> None:
    """The log has the detail that the user's sentence leaves out."""
    out = io.StringIO()
    configure("info", "text", out)
    try:
        raise RuntimeError("inner")
    except RuntimeError:
        get_logger("serving").exception("step_failed")
    assert "RuntimeError: inner" in out.getvalue()


@pytest.mark.parametrize(("level", "format"), [("loud", "text"), ("info", "xml")])
def test_unknown_words_are_refused(level: str, format: str) -> None:
    """The error names the variable and the allowed words."""
    with pytest.raises(ConfigurationError, match="use one of"):
        configure(level, format)
