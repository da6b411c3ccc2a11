import pytest

from bedplate.core.trace import TraceContext


def test_a_header_survives_a_round_trip() -> None:
    """The next process reads exactly the ids that this one sent."""
    context = TraceContext.start()
    assert TraceContext.parse(context.header()) == context


def test_a_child_stays_in_the_trace() -> None:
    """The trace id joins hops, the span id tells them apart."""
    context = TraceContext.start()
    assert context.child().trace_id == context.trace_id
    assert context.child().span_id != context.span_id


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "00-" + "0" * 32 + "-" + "1" * 16 + "-01",
        "00-" + "1" * 32 + "-" + "0" * 16 + "-01",
        "00-" + "A" * 32 + "-" + "1" * 16 + "-01",
        "01-" + "1" * 32 + "-" + "1" * 16 + "-01",
        "00-" + "1" * 32 + "-" + "1" * 16 + "-01-more",
    ],
)
def test_a_malformed_header_is_ignored(header: str | None) -> None:
    """A client cannot break a request with a bad traceparent."""
    assert TraceContext.parse(header) is None
