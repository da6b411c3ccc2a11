import pickle

import pytest

from bedplate.core.errors import BedplateError, ConfigurationError, EnvironmentLacks, UsageError


class PickyError(UsageError):
    code = "picky.too_small"


@pytest.mark.parametrize(
    ("kind", "exit_code"),
    [(BedplateError, 1), (UsageError, 2), (ConfigurationError, 2), (EnvironmentLacks, 3)],
)
def test_each_class_has_its_exit_code(kind: type[BedplateError], exit_code: int) -> None:
    """The exit code follows from the class, as the contracts list it."""
    assert kind("no").exit_code == exit_code


def test_the_text_is_message_then_remedy() -> None:
    """A user sees what is wrong and then what to do, in one sentence."""
    assert str(PickyError("3 is too small", remedy="give 4")) == "3 is too small; give 4"


def test_an_instance_may_be_more_exact_than_its_class() -> None:
    """A code given to one error leaves the class and its other errors alone."""
    error = PickyError("no", code="picky.way_too_small")
    assert error.code == "picky.way_too_small"
    assert error.condition == "way_too_small"
    assert PickyError("no").code == "picky.too_small"


def test_every_field_survives_pickling() -> None:
    """An error of a worker process arrives whole in its parent."""
    error = PickyError("no", code="picky.x", remedy="yes", detail="errno 5")
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), copy.code, copy.message, copy.remedy, copy.detail) == (
        PickyError,
        "picky.x",
        "no",
        "yes",
        "errno 5",
    )
