import pytest

from bedplate.kernels.errors import AttributeValueError, DtypeError, ShapeError
from bedplate.kernels.schema import TensorFacts
from bedplate.kernels.vocabulary import SCHEMAS


def facts(*shape: int, dtype: str = "f32") -> TensorFacts:
    """Facts of a tensor, f32 unless said."""
    return TensorFacts(shape, dtype)


MATMUL = [facts(4, 64), facts(64, 32), None, None, None, facts(4, 32)]


def test_bind_returns_the_extents() -> None:
    """A fitting call binds every symbol."""
    assert SCHEMAS["matmul"].bind(MATMUL) == {"M": 4, "K": 64, "N": 32}


def test_derived_extents() -> None:
    """2F, D/2 and S+1 bind their symbol and are checked against it."""
    assert SCHEMAS["silu_mul"].bind([facts(3, 8), None, facts(3, 4)]) == {"T": 3, "F": 4}
    with pytest.raises(ShapeError, match="no value of 2F"):
        SCHEMAS["silu_mul"].bind([facts(3, 7), None, facts(3, 4)])
    with pytest.raises(ShapeError, match="D/2 with D = 8"):
        SCHEMAS["rope"].bind([facts(2, 3, 8), facts(2, dtype="i32"), facts(3), None])
    caches, whole = [facts(5, 2, 16, 8)] * 2, facts(6, 4, 8)

    def attention(starts: int) -> list[TensorFacts | None]:
        lengths = [facts(3, 9, dtype="i32"), facts(starts, dtype="i32"), facts(3, dtype="i32")]
        return [whole, *caches, *lengths, None, whole]

    assert SCHEMAS["paged_attention"].bind(attention(4))["S"] == 3
    with pytest.raises(ShapeError, match=r"query_start is 3 long .* S\+1 with S = 3"):
        SCHEMAS["paged_attention"].bind(attention(3))
    with pytest.raises(ShapeError, match=r"query_start is 0 long .* no value of S\+1"):
        SCHEMAS["paged_attention"].bind(attention(0))


def test_a_contradicting_extent_names_op_tensor_and_value() -> None:
    """The message holds the op, the tensor, its extent and the expected one."""
    wrong = [*MATMUL]
    wrong[1] = facts(63, 32)
    with pytest.raises(ShapeError, match="matmul: b is 63 long in axis 0, expected K with K = 64"):
        SCHEMAS["matmul"].bind(wrong)


def test_missing_rank_count_and_format() -> None:
    """A missing tensor, a wrong rank, a wrong number and a wrong format are told apart."""
    schema = SCHEMAS["matmul"]
    with pytest.raises(ShapeError, match="tensor a is required"):
        schema.bind([None, *MATMUL[1:]])
    with pytest.raises(ShapeError, match=r"a has rank 1, expected \[M, K\]"):
        schema.bind([facts(4), *MATMUL[1:]])
    with pytest.raises(ShapeError, match="takes 6 tensors"):
        schema.bind(MATMUL[:5])
    with pytest.raises(DtypeError, match="a is i32, accepted: f32, bf16"):
        schema.bind([facts(4, 64, dtype="i32"), *MATMUL[1:]])


def test_attributes_are_checked() -> None:
    """Unknown, missing and out-of-range attributes are refused with the accepted ones."""
    attention = SCHEMAS["paged_attention"]
    with pytest.raises(AttributeValueError, match="no attribute window, accepted: scale"):
        attention.attribute_values({"window": 1})
    with pytest.raises(AttributeValueError, match="scale is required"):
        attention.attribute_values({})
    with pytest.raises(AttributeValueError, match="scale is nan"):
        attention.attribute_values({"scale": float("nan")})
    most = 2**32 - 1
    for value in (0, most):
        given = attention.attribute_values({"scale": 0, "sliding_window": value})
        assert (given["scale"], given["sliding_window"]) == (0, value)
    for value in (-1, most + 1):
        with pytest.raises(AttributeValueError, match=f"is {value}, accepted: 0 to {most}"):
            attention.attribute_values({"scale": 0, "sliding_window": value})


@pytest.mark.parametrize("name", SCHEMAS)
def test_outputs_come_last(name: str) -> None:
    """No readable-only tensor follows a pure output."""
    roles = [t.role for t in SCHEMAS[name].tensors]
    assert "out" in roles or "inout" in roles
    if "out" in roles:
        assert set(roles[roles.index("out") :]) == {"out"}
