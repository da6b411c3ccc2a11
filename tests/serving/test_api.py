from __future__ import annotations

import pytest

from bedplate.serving import api


def test_every_name_is_there() -> None:
    """What the list promises can be imported, and nothing else; the table has no name more."""
    for name in api.__all__:
        assert getattr(api, name) is not None
    assert set(api.__all__) == set(api._HOMES)
    with pytest.raises(AttributeError, match="'nothing'"):
        api.nothing  # noqa: B018 (reading it is the test)
