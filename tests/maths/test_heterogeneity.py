"""Random effects against a published meta-analysis and an independent computation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from unpooled.maths.arrays import FloatArray
from unpooled.maths.ranks.effect import heterogeneity
from unpooled.maths.ranks.heterogeneity import random_effect, random_effects
from unpooled.maths.ranks.mann_whitney import RankStatistics

# Thirteen trials of the BCG vaccine (Colditz et al. 1994, JAMA 271, 698-702): tuberculosis and
# people, vaccinated and not.
BCG = np.array(
    [
        (4, 123, 11, 139),
        (6, 306, 29, 303),
        (3, 231, 11, 220),
        (62, 13598, 248, 12867),
        (33, 5069, 47, 5808),
        (180, 1541, 372, 1451),
        (8, 2545, 10, 629),
        (505, 88391, 499, 88391),
        (29, 7499, 45, 7277),
        (17, 1716, 65, 1665),
        (186, 50634, 141, 27338),
        (5, 2498, 3, 2341),
        (27, 16913, 29, 17854),
    ],
    dtype=float,
)


def log_risk_ratios() -> tuple[FloatArray, FloatArray]:
    a, n, c, m = BCG.T
    return np.log(a / n / (c / m)), 1 / a - 1 / n + 1 / c - 1 / m


def independent(effects: FloatArray, variances: FloatArray) -> tuple[float, float, float, float]:
    """τ² by SciPy's root finder, the mean by weighted least squares, Student's t by SciPy."""
    df = len(effects) - 1

    def fit(between: float) -> tuple[float, float, float]:
        root = np.sqrt(variances + between)
        design, target = (1 / root)[:, None], effects / root
        (mean,), *_ = np.linalg.lstsq(design, target, rcond=None)
        return float(mean), float(((target - design[:, 0] * mean) ** 2).sum()), float(root @ root)

    above = fit(0.0)[1] > df
    between = optimize.brentq(lambda t: fit(t)[1] - df, 0, 1e3, xtol=1e-14) if above else 0.0
    mean, q, _ = fit(between)
    error = np.sqrt(max(q / df, 1) / np.sum(1 / (variances + between)))
    margin = stats.t.ppf(0.975, df) * error
    return between, mean, mean - margin, mean + margin


def test_the_bcg_trials() -> None:
    """τ² = .3181 by the empirical Bayes (Paule-Mandel) estimator, as R's metafor gives it."""
    effects, variances = log_risk_ratios()
    result = random_effects(effects, variances)
    assert result is not None
    assert result.tau**2 == pytest.approx(0.3181, abs=5e-4)
    assert result.mean.estimate == pytest.approx(-0.7150, abs=5e-4)
    _, mean, low, high = independent(effects, variances)
    assert (result.mean.estimate, result.mean.low, result.mean.high) == pytest.approx(
        (mean, low, high), rel=1e-6
    )


@given(
    st.lists(
        st.tuples(st.floats(-2, 2), st.floats(0.001, 0.5)),
        min_size=2,
        max_size=12,
    )
)
def test_it_agrees_with_an_independent_computation(centers: list[tuple[float, float]]) -> None:
    effects, variances = np.array(centers).T
    result = random_effects(effects, variances)
    assert result is not None
    between, mean, low, high = independent(effects, variances)
    assert result.tau**2 == pytest.approx(between, rel=1e-5, abs=1e-9)
    assert (result.mean.estimate, result.mean.low, result.mean.high) == pytest.approx(
        (mean, low, high), rel=1e-5, abs=1e-7
    )


def test_centers_alike_have_no_variance_between_them_and_one_center_no_answer() -> None:
    alike = [RankStatistics(50, 50, 500.0, 84166.0, 0.0032)] * 4
    result = random_effect(alike)
    assert result is not None
    assert result.tau == 0.0
    assert result.mean.estimate == pytest.approx(0.6)
    assert random_effect(alike[:1]) is None


def test_the_interval_of_a_probability_stays_one() -> None:
    apart = [RankStatistics(50, 50, u, 84166.0, 0.0032) for u in (2400.0, -2400.0)]
    result = random_effect(apart)
    assert result is not None
    assert (result.mean.low, result.mean.high) == (0.0, 1.0)
    assert heterogeneity(apart).i2 > 0.9


def test_wrong_input_is_told() -> None:
    with pytest.raises(ValueError, match="variances must be positive"):
        random_effects(np.array([1.0, 2.0]), np.array([1.0, 0.0]))
    with pytest.raises(ValueError, match="level must lie in"):
        random_effects(np.array([1.0, 2.0]), np.array([1.0, 1.0]), level=95)


def test_centers_where_all_values_are_tied_do_not_count() -> None:
    """Their ½ is no measurement: it would make centers that agree look different."""
    alike = [RankStatistics(50, 50, u, 84166.0, 0.0032) for u in (900.0, 950.0)]
    tied = RankStatistics(40, 60, 0.0, 0.0, 0.0)
    assert heterogeneity([*alike, tied, tied]) == heterogeneity(alike)
    assert random_effect([*alike, tied, tied]) == random_effect(alike)
    assert heterogeneity([alike[0], tied]).df == 0
    assert random_effect([alike[0], tied]) is None
    assert heterogeneity([tied, tied]).i2 == 0
    assert random_effect([tied, tied]) is None
