"""Trends: SciPy's Kendall test, a published example, and every permutation."""

from itertools import permutations
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from tests.maths.test_kruskal_wallis import Groups, counts, draw, people, ranks
from unpooled.maths.ranks.group_ranks import (
    GroupRankStatistics,
    rank_variance,
    tied_people,
    trend_fisher,
    trend_sum,
    trend_table,
    trend_variance,
    trend_weighted,
)
from unpooled.maths.ranks.mann_whitney import (
    Alternative,
    fisher_test,
    rank_statistics,
    sum_test,
    weighted_test,
)

ALTERNATIVES = get_args(Alternative)


def j_of(groups: Groups) -> float:
    """J, pair by pair of people."""
    return float(
        sum(
            np.sign(b - a)
            for i, part in enumerate(groups)
            for later in groups[i + 1 :]
            for a in part
            for b in later
        )
    )


def kendall_p(groups: Groups) -> float:
    """Kendall's test of values against the place of their group is the same test."""
    place = np.repeat(np.arange(len(groups)), [len(part) for part in groups])
    result = stats.kendalltau(place, np.concatenate(groups), method="asymptotic")
    return float(result.pvalue)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("sizes", [(12, 20), (12, 15, 20), (30, 10, 10, 50, 12)])
def test_one_center_is_kendalls_test_of_scipy(sizes: tuple[int, ...], ties: bool) -> None:
    groups = draw(np.random.default_rng(4), sizes, ties)
    for test in (
        trend_weighted([ranks(groups)], "two-sided"),
        trend_sum([ranks(groups)], "two-sided"),
        trend_table(counts(groups), "two-sided"),
    ):
        assert test.p_value == pytest.approx(kendall_p(groups), rel=1e-10)
        assert test.df is None


def test_the_published_example() -> None:
    """Hollander, Wolfe, Chicken, example 6.2: J = 79 and its variance 150.29, with ties."""
    groups = [[40, 35, 38, 43, 44, 41], [38, 40, 47, 44, 40, 42], [48, 40, 45, 43, 46, 44]]
    part = ranks(groups)
    assert part.trend_variance is not None
    assert (j_of(groups) + 108) / 2 == 79
    assert part.trend_variance / 4 == pytest.approx(150.29, abs=0.005)
    assert trend_table(counts(groups), "greater").statistic == pytest.approx(2.04, abs=0.005)


@pytest.mark.parametrize(
    ("values", "sizes"),
    [
        ([1, 2, 3, 4, 5, 6, 7], (3, 2, 2)),
        ([1, 2, 2, 3, 3, 3, 4], (3, 2, 2)),
        ([1, 1, 1, 2, 2, 2, 2], (2, 2, 3)),
        ([1, 1, 2, 3, 3, 5], (1, 2, 1, 2)),
    ],
)
def test_mean_and_variance_are_those_of_every_permutation(
    values: list[int], sizes: tuple[int, ...]
) -> None:
    labels = np.repeat(np.arange(len(sizes)), sizes)
    result = [
        j_of([np.array(values)[np.array(order) == g] for g in range(len(sizes))])
        for order in set(permutations(labels.tolist()))
    ]
    _, tied = np.unique(values, return_counts=True)
    assert np.mean(result) == pytest.approx(0, abs=1e-12)
    expected = trend_variance(np.array(sizes, dtype=float), tied.astype(float))
    assert np.var(result) == pytest.approx(expected, rel=1e-12)


def test_p_values_agree_with_permutations_within_centers() -> None:
    random = np.random.default_rng(11)
    sizes = [(10, 12, 11), (15, 0, 10), (12, 10, 10)]
    centers = [draw(random, part, True) for part in sizes]
    observed = trend_sum([ranks(groups) for groups in centers], "greater")
    at_least = 0
    for _ in range(2000):
        j = 0.0
        for groups, part in zip(centers, sizes, strict=True):
            mixed = np.split(random.permutation(np.concatenate(groups)), np.cumsum(part)[:-1])
            j += np.triu(ranks(mixed).u, 1).sum()
        at_least += j >= sum(j_of(groups) for groups in centers)
    assert observed.p_value == pytest.approx(at_least / 2000, abs=0.02)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("ties", [False, True])
def test_two_groups_give_the_mann_whitney_tests(alternative: Any, ties: bool) -> None:
    random = np.random.default_rng(7)
    centers = [draw(random, sizes, ties) for sizes in ((12, 20), (35, 11), (10, 60))]
    pairs = [rank_statistics(np.sort(x), np.sort(y)) for x, y in centers]
    several = [ranks(groups) for groups in centers]
    for test, pair in (
        (trend_weighted, weighted_test),
        (trend_sum, sum_test),
        (trend_fisher, fisher_test),
    ):
        result, expected = test(several, alternative), pair(pairs, alternative)
        assert result.statistic == pytest.approx(expected.statistic, rel=1e-10)
        assert result.log_p == pytest.approx(expected.log_p, rel=1e-10)


@settings(max_examples=60)
@given(st.lists(st.lists(people, min_size=3, max_size=3), min_size=1, max_size=3))
def test_the_order_turned_round_turns_the_sign(centers: list[Groups]) -> None:
    one = trend_weighted([ranks(groups) for groups in centers], "greater")
    other = trend_weighted([ranks(groups[::-1]) for groups in centers], "less")
    assert other.statistic == pytest.approx(-one.statistic, rel=1e-9, abs=1e-12)
    assert other.log_p == pytest.approx(one.log_p, rel=1e-9, abs=1e-12)
    bent = [[np.array(part) ** 3 for part in groups] for groups in centers]
    assert trend_weighted([ranks(groups) for groups in bent], "greater") == one


def test_everybody_alike_gives_one_with_a_note_and_tiny_p_values_stay_finite() -> None:
    tied = ranks([np.ones(10), np.ones(12), np.ones(14)])
    for test in (trend_weighted, trend_sum, trend_fisher):
        assert test([tied], "greater").p_value == 1.0
        assert test([tied], "greater").note == "all values are tied: nothing to test, p = 1"
    apart = trend_table(np.kron(np.eye(4), np.full(5, 1000.0)), "greater")
    assert -1e5 < apart.log10_p < -300


def test_a_trend_needs_its_variance() -> None:
    part = GroupRankStatistics.of_pairs([10, 10], {(0, 1): 5.0}, 1.0)
    with pytest.raises(ValueError, match="trend_variance"):
        trend_sum([part], "greater")


@settings(max_examples=200)
@given(st.lists(st.lists(st.integers(0, 25), min_size=2, max_size=40), min_size=3, max_size=4))
@example([[0] * 12, [0] * 12, [1] * 12])
def test_without_small_ties_variances_are_at_least_those_with_them(groups: list[list[int]]) -> None:
    sizes = np.array([float(len(group)) for group in groups])
    tied = tied_people([np.sort(np.array(group, dtype=float)) for group in groups])
    for k in (2, 5, 10):
        assert rank_variance(tied, k=k) >= rank_variance(tied, k=1) == rank_variance(tied)
        assert trend_variance(sizes, tied, k=k) >= trend_variance(sizes, tied, k=1)
        assert trend_variance(sizes, tied, k=1) == trend_variance(sizes, tied)
    untied = np.ones(int(tied.sum()))
    if len(tied) > 1:
        assert rank_variance(tied, k=1000) == rank_variance(untied)
        assert trend_variance(sizes, tied, k=1000) == trend_variance(sizes, untied)


def test_a_center_without_variation_adds_nothing() -> None:
    random = np.random.default_rng(1)
    center = ranks([random.normal(shift, 1, 12) for shift in (0, 0.5, 1)])
    tied = ranks([np.ones(10), np.ones(12), np.ones(14)])
    for test in (trend_weighted, trend_sum, trend_fisher):
        alone, with_tied = test([center], "greater"), test([center, tied], "greater")
        assert (with_tied.statistic, with_tied.df) == (alone.statistic, alone.df)
        assert with_tied.log_p == alone.log_p
        assert with_tied.note == "all values are tied in 1 of 2 centers"
