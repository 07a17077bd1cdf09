"""Effects, heterogeneity and shift, against textbooks, brute force and small simulations."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import brentq

from unpooled.maths.ranks.effect import Interval, center_effect, heterogeneity, overall_effect
from unpooled.maths.ranks.mann_whitney import RankStatistics, rank_statistics

INF = math.inf


@st.composite
def some_center(draw: st.DrawFn) -> RankStatistics:
    values = st.lists(st.integers(0, 9), min_size=2, max_size=25)
    moved = draw(st.sampled_from([0, 0, 2, 20]))
    x, y = draw(values), [value + moved for value in draw(values)]
    return rank_statistics(np.sort(np.array(x, dtype=float)), np.sort(np.array(y, dtype=float)))


def swapped(center: RankStatistics) -> RankStatistics:
    return RankStatistics(
        center.n_y, center.n_x, -center.u, center.variance, center.effect_variance
    )


def drawn_centers(
    rng: np.random.Generator, sizes: list[int], effect: float
) -> list[RankStatistics]:
    """Normal groups that differ by the same effect in every center; centers differ in level."""
    moved = math.sqrt(2) * stats.norm.ppf(effect)
    return [
        rank_statistics(np.sort(rng.normal(level, 1, n)), np.sort(rng.normal(level + moved, 1, n)))
        for n, level in zip(sizes, rng.normal(size=len(sizes)), strict=True)
    ]


def newcombe_variance(effect: float, n: int, m: int) -> float:
    """Method 5 of Newcombe (2006), in Hanley and McNeil's letters."""
    q1, q2 = effect / (2 - effect), 2 * effect**2 / (1 + effect)
    others = (n + m) / 2 - 1
    spread = effect * (1 - effect) + others * (q1 - effect**2) + others * (q2 - effect**2)
    return spread / (n * m)


@pytest.mark.parametrize(("n", "m"), [(10, 10), (10, 40), (300, 200)])
def test_complete_separation_has_newcombes_interval(n: int, m: int) -> None:
    result = center_effect(RankStatistics(n, m, float(n * m), 1.0, 0.0))
    z = stats.norm.ppf(0.975)
    low = brentq(
        lambda t: 1 - t - z * math.sqrt(newcombe_variance(t, n, m)), 0.1, 1 - 1e-9, xtol=1e-14
    )
    assert (result.estimate, result.high) == (1, 1)
    assert result.low == pytest.approx(low, rel=1e-9)
    assert result.low < 1 - 1 / max(n, m)


def test_limits_lie_one_margin_away_by_their_own_variance() -> None:
    center = RankStatistics(18, 25, 180.0, 6600.0, 0.0061)
    result = center_effect(center, level=0.9)
    people = 43
    inside = (result.estimate * people + 1) / (people + 2)
    steadying = 20 / people * newcombe_variance(inside, 18, 25)
    ratio = (0.0061 + steadying) / (newcombe_variance(result.estimate, 18, 25) + steadying)
    for limit in (result.low, result.high):
        error = math.sqrt(ratio * newcombe_variance(limit, 18, 25))
        assert abs(limit - result.estimate) == pytest.approx(stats.norm.ppf(0.95) * error)


def test_with_many_people_the_interval_is_walds() -> None:
    rng = np.random.default_rng(4)
    x, y = np.sort(rng.normal(size=20_000)), np.sort(rng.normal(0.4, 2, size=9_000))
    center = rank_statistics(x, y)
    result = center_effect(center)
    margin = 1.959964 * math.sqrt(center.effect_variance)
    assert result.low == pytest.approx(center.effect - margin, abs=0.02 * margin)
    assert result.high == pytest.approx(center.effect + margin, abs=0.02 * margin)


@given(some_center(), st.floats(0.5, 0.99))
def test_intervals_stay_in_range_with_a_width_and_mirror_when_groups_swap(
    center: RankStatistics, level: float
) -> None:
    result = center_effect(center, level)
    assert 0 <= result.low <= result.estimate == center.effect <= result.high <= 1
    assert result.high - result.low > 0.01
    mirrored = center_effect(swapped(center), level)
    assert mirrored.estimate == pytest.approx(1 - result.estimate)
    assert (mirrored.low, mirrored.high) == pytest.approx((1 - result.high, 1 - result.low))
    wider = center_effect(center, (level + 1) / 2)
    assert wider.low <= result.low
    assert wider.high >= result.high


@given(st.lists(some_center(), min_size=1, max_size=5))
def test_the_overall_effect_is_van_elterens_average(centers: list[RankStatistics]) -> None:
    weights = [c.n_x * c.n_y / (c.n_x + c.n_y + 1) for c in centers]
    result = overall_effect(centers)
    expected = sum(w * c.effect for w, c in zip(weights, centers, strict=True)) / sum(weights)
    assert result.estimate == pytest.approx(expected)
    assert 0 <= result.low <= result.high <= 1
    if len(centers) == 1:
        assert result == center_effect(centers[0])


def test_more_centers_narrow_the_overall_interval_by_the_square_root() -> None:
    center = RankStatistics(80, 90, 1500.0, 80 * 90 * 171 / 3, 0.0019)
    one, sixteen = overall_effect([center]), overall_effect([center] * 16)
    ratio = (one.high - one.low) / (sixteen.high - sixteen.low)
    assert ratio == pytest.approx(4, rel=0.02)


@pytest.mark.parametrize("effect", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("sizes", [[10], [10, 12, 15, 30]])
def test_intervals_cover_in_small_centers(sizes: list[int], effect: float) -> None:
    rng = np.random.default_rng(5)
    intervals = [overall_effect(drawn_centers(rng, sizes, effect)) for _ in range(500)]
    covered = np.mean([each.low <= effect <= each.high for each in intervals])
    assert 0.925 <= covered <= 0.985  # .95 ± 2.5 standard errors


def test_q_is_cochrans_in_large_centers() -> None:
    rng = np.random.default_rng(6)
    centers = [
        rank_statistics(np.sort(rng.normal(size=n)), np.sort(rng.normal(0.1, spread, size=m)))
        for n, m, spread in [(3000, 3000, 1), (2000, 8000, 5), (9000, 1500, 5), (5000, 2000, 0.2)]
    ]
    effects = np.array([c.effect for c in centers])
    precision = np.array([1 / c.effect_variance for c in centers])
    q = np.sum(precision * (effects - np.average(effects, weights=precision)) ** 2)
    result = heterogeneity(centers)
    assert result.df == 3
    assert result.q == pytest.approx(q, rel=0.02)
    assert result.p_value == pytest.approx(stats.chi2.sf(result.q, 3))
    assert result.i2 == pytest.approx(1 - 3 / result.q)


@pytest.mark.parametrize("effect", [0.5, 0.8])
def test_q_keeps_its_level_in_the_papers_centers(effect: float) -> None:
    rng = np.random.default_rng(8)
    sizes = [307, 250, 208, 172, 143, 118, 98, 81, 67, 56]
    rejected = [heterogeneity(drawn_centers(rng, sizes, effect)).p_value < 0.05 for _ in range(400)]
    assert 0.02 <= np.mean(rejected) <= 0.08


def test_one_center_and_equal_centers_are_homogeneous() -> None:
    center = RankStatistics(30, 40, 100.0, 28400.0, 0.005)
    one = heterogeneity([center])
    assert (one.q, one.df, one.p_value, one.i2) == (0, 0, 1, 0)
    same = heterogeneity([center] * 4)
    assert (same.df, same.i2) == (3, 0)
    assert (same.q, same.p_value) == pytest.approx((0, 1))


@given(st.lists(some_center(), min_size=2, max_size=6))
def test_heterogeneity_is_finite_and_blind_to_the_groups_order(
    centers: list[RankStatistics],
) -> None:
    result = heterogeneity(centers)
    assert 0 <= result.q < INF
    assert -INF < result.log_p <= 0
    assert 0 <= result.i2 < 1
    assert heterogeneity([swapped(c) for c in centers]).q == pytest.approx(result.q, abs=1e-9)


def test_opposite_separated_centers_differ_beyond_the_smallest_float() -> None:
    up, down = (RankStatistics(900, 900, u, 4.8e8, 0.0) for u in (810_000.0, -810_000.0))
    result = heterogeneity([up, up, down, down])
    assert result.p_value == 0
    assert -INF < result.log_p < -1000
    alike = heterogeneity([up, up, up])
    assert (alike.q, alike.p_value) == (0, 1)


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0, math.nan])
def test_levels_outside_the_unit_interval_are_refused(level: float) -> None:
    center = RankStatistics(10, 10, 0.0, 700.0, 0.02)
    calls: list[Any] = [
        lambda: center_effect(center, level),
        lambda: overall_effect([center], level),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"level must lie in \(0, 1\)"):
            call()


def test_no_centers_and_disordered_limits_are_refused() -> None:
    for call in (overall_effect, heterogeneity):
        with pytest.raises(ValueError, match="at least one center"):
            call([])
    with pytest.raises(ValueError, match="must ascend"):
        Interval(0.5, 0.6, 0.7)
