"""Adjusted p-values, against SciPy and the definition."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from unpooled.maths.arrays import FloatArray
from unpooled.maths.multiplicity import benjamini_hochberg, holm

METHODS = (holm, benjamini_hochberg)

p_values = st.lists(st.floats(1e-12, 1.0), min_size=1, max_size=20)


def holm_by_definition(p: list[float]) -> list[float]:
    """The largest of (m − rank + 1)·p over the p-values no larger than one's own."""
    ranked = sorted(p)
    scaled = [(len(p) - rank) * value for rank, value in enumerate(ranked)]
    return [
        min(1.0, max(s for s, other in zip(scaled, ranked, strict=True) if other <= value))
        for value in p
    ]


@given(p_values)
def test_holm_is_its_definition(p: list[float]) -> None:
    assert np.exp(holm(np.log(p))) == pytest.approx(holm_by_definition(p), rel=1e-10)


@given(p_values)
def test_benjamini_hochberg_is_scipys(p: list[float]) -> None:
    expected = stats.false_discovery_control(p, method="bh")
    assert np.exp(benjamini_hochberg(np.log(p))) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("method", METHODS)
@given(p=p_values, seed=st.integers(0, 2**32 - 1))
def test_the_order_of_the_variables_does_not_matter(
    method: Callable[[FloatArray], FloatArray], p: list[float], seed: int
) -> None:
    log_p = np.log(p)
    order = np.random.default_rng(seed).permutation(len(p))
    assert method(log_p[order]).tolist() == method(log_p)[order].tolist()


@pytest.mark.parametrize("method", METHODS)
def test_p_values_too_small_for_a_float_keep_their_order(
    method: Callable[[list[float]], FloatArray],
) -> None:
    adjusted = method([-3e5, -2e5, -1e5, -math.inf])
    assert np.all(np.diff(adjusted[[3, 0, 1, 2]]) > 0)
    assert adjusted[2] == pytest.approx(-1e5)
    assert np.all(adjusted[:3] >= [-3e5, -2e5, -1e5])


@pytest.mark.parametrize("method", METHODS)
def test_one_p_value_stays_and_none_is_no_error(
    method: Callable[[list[float]], FloatArray],
) -> None:
    assert method([math.log(0.03)]).tolist() == [math.log(0.03)]
    assert method([]).tolist() == []


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("log_p", "message"),
    [
        ([-1.0, 0.05], "at most 0, got 0.05"),
        ([-1.0, math.nan], "at most 0, got nan"),
        ([[-1.0, -2.0]], "one row"),
    ],
)
def test_bad_p_values_are_named(
    method: Callable[[list[float]], FloatArray], log_p: list[float], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        method(log_p)
