"""Pareto tails against SciPy's distributions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from unpooled.maths.tails import tail_quantiles

P = np.array([0.005, 0.02, 0.05, 0.95, 0.98, 0.995])


@pytest.mark.parametrize(
    ("distribution", "off"),
    [
        (stats.uniform(), 0.001),
        (stats.expon(), 0.02),
        (stats.genpareto(0.2), 0.02),
        (stats.norm(), 0.05),
        (stats.gamma(4), 0.05),
    ],
)
def test_tails_of_many_people_are_those_of_the_distribution(
    distribution: "stats.rv_frozen", off: float
) -> None:
    x = distribution.ppf((np.arange(200_000) + 0.5) / 200_000)
    found = tail_quantiles(P, x, np.ones(len(x)))
    assert np.abs(found - distribution.ppf(P)).max() / distribution.std() < off


def test_between_the_tails_and_without_spread_nothing_is_said() -> None:
    x = np.arange(100.0)
    assert np.isnan(tail_quantiles(np.array([0.1, 0.5, 0.9]), x, np.ones(100))).all()
    assert np.isnan(tail_quantiles(P, np.ones(100), np.ones(100))).all()


@given(st.integers(0, 10**6), st.floats(0.1, 10), st.floats(-5, 5))
def test_tails_move_with_the_people(seed: int, scale: float, shift: float) -> None:
    random = np.random.default_rng(seed)
    x, weights = np.sort(random.gumbel(size=300)), random.random(300) + 0.1
    found = tail_quantiles(P, x, weights)
    assert np.all(np.diff(found) > 0)
    assert np.allclose(tail_quantiles(P, shift + scale * x, weights), shift + scale * found)
    mirrored = tail_quantiles(1 - P[::-1], -x[::-1], weights[::-1])
    assert np.allclose(mirrored, -found[::-1])
