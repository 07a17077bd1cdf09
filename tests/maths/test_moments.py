"""Moments and Welch's test, against SciPy on pooled data."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from unpooled.maths.moments import MeanSD, pool, telling_values, welch

parts = st.lists(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30), min_size=1, max_size=6)


@settings(max_examples=300)
@given(parts)
def test_pooled_moments_are_those_of_all_people(centers: list[list[float]]) -> None:
    everybody = np.concatenate(centers)
    pooled = pool([MeanSD.of(np.sort(center)) for center in centers])
    assert pooled.n == len(everybody)
    assert pooled.mean == pytest.approx(everybody.mean(), rel=1e-9, abs=1e-6)
    assert pooled.sd == pytest.approx(everybody.std(ddof=1), rel=1e-7, abs=1e-6)


@pytest.mark.parametrize(("n", "m", "shift"), [(12, 40, 0.2), (500, 300, 1.0), (30, 30, 30.0)])
def test_welch_equals_scipy(n: int, m: int, shift: float) -> None:
    random = np.random.default_rng(3)
    x, y = random.normal(0, 1, n), random.normal(shift, 2, m)
    ours = welch(MeanSD.of(x), MeanSD.of(y))
    theirs = stats.ttest_ind(y, x, equal_var=False)
    assert ours is not None
    assert ours.statistic == pytest.approx(theirs.statistic, rel=1e-12)
    assert ours.df == pytest.approx(theirs.df, rel=1e-12)
    assert ours.p_value == pytest.approx(theirs.pvalue, rel=1e-10)
    low, high = theirs.confidence_interval()
    assert (ours.low, ours.high) == pytest.approx((low, high), rel=1e-10)


def test_tiny_p_values_stay_finite_and_ordered() -> None:
    x = MeanSD(2000, 0.0, 1.0)
    logs = []
    for difference in (1.0, 2.0, 4.0, 8.0, 16.0):
        test = welch(x, MeanSD(2000, difference, 1.0))
        assert test is not None
        logs.append(test.log10_p)
    assert np.all(np.isfinite(logs))
    assert logs == sorted(logs, reverse=True)
    assert logs[-1] < -1000


def test_the_logarithm_is_continuous_where_the_p_value_runs_out() -> None:
    """Around p = 1e-280 the formula changes; the logarithm must not jump."""
    x = MeanSD(1000, 0.0, 1.0)
    logs = []
    for difference in np.linspace(1.8, 2.0, 41):
        test = welch(x, MeanSD(1000, float(difference), 1.0))
        assert test is not None
        logs.append(test.log10_p)
    steps = np.diff(logs)
    assert min(logs) < -280 < max(logs)
    assert np.all(np.abs(np.diff(steps)) < 0.02)


def test_constant_groups_have_no_test() -> None:
    assert welch(MeanSD(10, 1.0, 0.0), MeanSD(10, 2.0, 0.0)) is None


@pytest.mark.parametrize(
    ("people", "expected"),
    [
        ([50], 0),
        ([10, 10], 0),
        ([9, 41], 1),
        ([1, 2, 47], 1),
        ([6, 7], 2),
        ([5, 6, 40], 3),
        ([9] * 7, 7),
        ([1] * 30, 8),
    ],
)
def test_telling_values(people: list[int], expected: int) -> None:
    values = np.repeat(np.arange(float(len(people))), people)
    assert telling_values(values, 10) == expected
