import numpy as np
import pytest

from bedplate.kernels.errors import DtypeError
from bedplate.kernels.tolerance import accumulated, compare, stored

ONE = np.ones((2, 3))


def test_a_value_on_the_bound_is_accepted_and_one_past_it_is_not() -> None:
    """The bound itself belongs to the accepted side."""
    assert compare(ONE + 0.25, ONE, 0.25 * ONE).accepted
    outcome = compare(ONE + 0.25, ONE, 0.24 * ONE)
    assert not outcome.accepted
    assert outcome.worst_ratio == pytest.approx(0.25 / 0.24)


def test_a_zero_bound_demands_equality() -> None:
    """Exact ops pass with equal values and with nothing else."""
    assert compare(ONE, ONE, 0 * ONE).accepted
    assert not compare(ONE + 1e-300, ONE * 0, 0 * ONE).accepted


def test_special_values_must_sit_alike() -> None:
    """NaN for a number, a number for NaN, and infinity of the wrong sign are refused."""
    special = np.array([np.nan, np.inf, -np.inf, 1.0])
    bound = np.full(4, 1e9)
    assert compare(special, special, bound).accepted
    for index, wrong in [(0, 1.0), (1, -np.inf), (2, 3e38), (3, np.nan), (3, np.inf)]:
        changed = special.copy()
        changed[index] = wrong
        assert not compare(changed, special, bound).accepted, (index, wrong)


def test_shapes_must_match_and_empty_passes() -> None:
    """A missing row is a failure; nothing compared with nothing is not."""
    assert not compare(np.ones((1, 3)), ONE, ONE).accepted
    assert compare(np.ones((0, 3)), np.ones((0, 3)), np.ones((0, 3))).accepted


def test_the_message_names_the_worst_element() -> None:
    """Where, got, expected and by how much."""
    actual = ONE.copy()
    actual[1, 2] = 5
    assert "(1, 2): got 5, expected 1" in compare(actual, ONE, ONE).message


def test_a_sum_counts_a_rounding_for_each_product_and_each_addition() -> None:
    """Seven deviations of terms + 1 roundings, and a flushed product for each term."""
    bound = accumulated(8, np.array([2.0]), roundoff=2.0**-10)[0]
    assert bound == pytest.approx(7 * 3 * 2.0**-10 * 2)
    assert accumulated(8, np.array([0.0]))[0] == 8 * 2.0**-126


@pytest.mark.parametrize(("sign", "used"), [(-1, 1e-3), (0, 0.02)])
def test_fp32_sums_stay_inside_the_accumulation_bound(sign: int, used: float) -> None:
    """Sequential fp32 sums of 4,096 products stay inside the bound and use a part of it."""
    rng = np.random.default_rng(3)
    a = rng.uniform(sign, 1, (200, 4096)).astype(np.float32)
    b = rng.uniform(sign, 1, (200, 4096)).astype(np.float32)
    naive = np.cumsum(a * b, axis=1, dtype=np.float32)[:, -1].astype(np.float64)
    exact = (a.astype(np.float64) * b).sum(axis=1)
    limit = accumulated(4096, np.abs(a.astype(np.float64) * b).sum(axis=1))
    ratio = np.abs(naive - exact) / limit
    assert used < ratio.max() <= 1


def test_bf16_storage_adds_half_an_ulp() -> None:
    """The stored bound covers rounding to bf16 and integers have none."""
    assert stored(ONE, 0 * ONE, "bf16")[0, 0] == pytest.approx(2**-8)
    with pytest.raises(DtypeError, match="i32"):
        stored(ONE, ONE, "i32")
