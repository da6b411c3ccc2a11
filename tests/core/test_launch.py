import pytest

from bedplate.core.launch import LaunchFault, LaunchRecord, LaunchStatus


@pytest.mark.parametrize(("status", "fault"), [("ok", LaunchFault("bounds", "x")), ("fault", None)])
def test_a_fault_is_there_exactly_when_the_status_says_so(
    status: LaunchStatus, fault: LaunchFault | None
) -> None:
    """A reader may rely on the status alone."""
    with pytest.raises(ValueError, match="status"):
        LaunchRecord("k", "simt", "simt:0", "sm_90", (1, 1, 1), (1, 1, 1), status, 0, fault=fault)
