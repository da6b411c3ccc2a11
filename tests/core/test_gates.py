import pytest

from bedplate.core.gates import GateResult, GateVerdict


@pytest.mark.parametrize("verdict", [GateVerdict.FAILED, GateVerdict.NOT_RUN])
def test_what_did_not_pass_says_why(verdict: GateVerdict) -> None:
    """NOT RUN without a reason would be a silent skip."""
    assert GateResult("g", GateVerdict.PASSED).reason is None
    with pytest.raises(ValueError, match="no reason"):
        GateResult("g", verdict)
