"""Several groups over centers: SciPy's tests, Friedman's as a special case, and raw ranks."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from unpooled.maths.ranks.group_ranks import (
    GroupRankStatistics,
    kruskal_fisher,
    kruskal_sum,
    kruskal_table,
    kruskal_weighted,
    linked_groups,
)
from unpooled.maths.ranks.mann_whitney import rank_statistics, sum_test, weighted_test

Groups = list[Any]


def counts(groups: Groups) -> Any:
    """A bin for every value."""
    values = np.unique(np.concatenate(groups))
    return np.array(
        [[np.count_nonzero(part == v) for v in values] for part in map(np.array, groups)]
    )


def ranks(groups: Groups) -> GroupRankStatistics:
    return GroupRankStatistics.of_table(counts(groups))


def draw(random: np.random.Generator, sizes: tuple[int, ...], ties: bool) -> Groups:
    part = [random.normal(0.2 * i, 1, n) for i, n in enumerate(sizes)]
    return [np.round(values * 3) for values in part] if ties else part


def stratified(centers: list[Groups], weighted: bool) -> tuple[float, float]:
    """The statistic and its p-value from everybody's raw rank; a group may have nobody."""
    total, covariance = 0.0, 0.0
    for groups in centers:
        ranked = stats.rankdata(np.concatenate(groups))
        labels = np.repeat(np.arange(len(groups)), [len(part) for part in groups])
        indicator = (labels[:, None] == np.arange(len(groups))).astype(float)
        spread = ranked.var(ddof=1)
        weight = len(ranked) / spread if weighted else 1.0
        centered = indicator - indicator.mean(axis=0)
        total = total + weight * (ranked - ranked.mean()) @ indicator
        covariance = covariance + weight**2 * spread * centered.T @ centered
    inverse = np.linalg.pinv(covariance, rcond=1e-9)
    statistic = float(total @ inverse @ total)
    df = np.linalg.matrix_rank(covariance, tol=1e-9 * np.max(covariance))
    return statistic, float(stats.chi2.sf(statistic, df))


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("sizes", [(12, 15, 20), (10, 11, 12, 13), (30, 10, 10, 50, 12)])
def test_one_center_is_scipys_test(sizes: tuple[int, ...], ties: bool) -> None:
    groups = draw(np.random.default_rng(3), sizes, ties)
    expected = stats.kruskal(*groups)
    for test in (
        kruskal_weighted([ranks(groups)]),
        kruskal_sum([ranks(groups)]),
        kruskal_table(counts(groups)),
    ):
        assert test.statistic == pytest.approx(expected.statistic, rel=1e-10)
        assert test.p_value == pytest.approx(expected.pvalue, rel=1e-10)
        assert test.df == len(sizes) - 1


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_over_centers_it_is_that_of_the_raw_ranks(weighted: bool, ties: bool) -> None:
    random = np.random.default_rng(5)
    sizes = [(12, 15, 20, 10), (30, 10, 11, 0), (0, 14, 0, 22), (40, 33, 21, 10)]
    centers = [draw(random, part, ties) for part in sizes]
    test = (kruskal_weighted if weighted else kruskal_sum)([ranks(part) for part in centers])
    statistic, p_value = stratified(centers, weighted)
    assert test.statistic == pytest.approx(statistic, rel=1e-9)
    assert test.p_value == pytest.approx(p_value, rel=1e-9)
    assert test.df == 3


@pytest.mark.parametrize("ties", [False, True])
def test_with_one_person_a_cell_the_sum_is_friedmans_test(ties: bool) -> None:
    blocks = np.random.default_rng(8).normal(size=(25, 4)) + np.arange(4) * 0.3
    blocks = np.round(blocks * 2) if ties else blocks
    test = kruskal_sum([ranks([[value] for value in block]) for block in blocks])
    expected = stats.friedmanchisquare(*blocks.T)
    assert test.statistic == pytest.approx(expected.statistic, rel=1e-10)
    assert test.p_value == pytest.approx(expected.pvalue, rel=1e-10)


def test_fisher_combines_the_centers_own_tests() -> None:
    random = np.random.default_rng(6)
    centers = [draw(random, (12, 15, 20), True) for _ in range(4)]
    part = [stats.kruskal(*groups).pvalue for groups in centers]
    test = kruskal_fisher([ranks(groups) for groups in centers])
    assert test.p_value == pytest.approx(stats.combine_pvalues(part).pvalue, rel=1e-9)
    assert test.df == 8


@pytest.mark.parametrize("ties", [False, True])
def test_two_groups_give_the_square_of_the_mann_whitney_test(ties: bool) -> None:
    random = np.random.default_rng(7)
    centers = [draw(random, sizes, ties) for sizes in ((12, 20), (35, 11), (10, 60))]
    pairs = [rank_statistics(np.sort(x), np.sort(y)) for x, y in centers]
    several = [ranks(groups) for groups in centers]
    for test, pair in ((kruskal_weighted, weighted_test), (kruskal_sum, sum_test)):
        result, expected = test(several), pair(pairs, "two-sided")
        assert result.statistic == pytest.approx(expected.statistic**2, rel=1e-10)
        assert result.log_p == pytest.approx(expected.log_p, rel=1e-10)


def test_tiny_p_values_stay_finite() -> None:
    groups = [np.arange(2000.0) + 3000 * i for i in range(3)]
    test = kruskal_table(np.kron(np.eye(3), np.ones(2000)))
    statistic = stats.kruskal(*groups).statistic
    assert test.statistic == pytest.approx(statistic, rel=1e-10)
    assert test.log_p == pytest.approx(-statistic / 2, rel=1e-10)  # exact for two degrees
    assert test.p_value == 0.0 or test.p_value < 1e-300
    assert test.log10_p < -1000


def test_everybody_alike_gives_one_with_a_note() -> None:
    tied = ranks([np.ones(10), np.ones(12), np.ones(14)])
    for test in (kruskal_weighted([tied]), kruskal_sum([tied]), kruskal_fisher([tied])):
        assert (test.statistic, test.p_value) == (0.0, 1.0)
        assert test.note == "all values are tied: nothing to test, p = 1"
    assert kruskal_table([[10], [12], [14]]).note is not None


def test_groups_that_no_center_links_cost_a_degree_of_freedom() -> None:
    random = np.random.default_rng(1)
    one = draw(random, (12, 15, 0, 0), False)
    two = draw(random, (0, 0, 20, 13), False)
    centers = [ranks(one), ranks(two)]
    assert linked_groups(centers) == [[0, 1], [2, 3]]
    test = kruskal_weighted(centers)
    parts = [stats.kruskal(*one[:2]).statistic, stats.kruskal(*two[2:]).statistic]
    assert test.df == 2
    assert test.statistic == pytest.approx(sum(parts), rel=1e-10)


def test_the_statistic_has_its_distribution_under_permutation_within_centers() -> None:
    """By chance alone a p-value below .05 comes about 5 % of the time, ties and gaps included."""
    random = np.random.default_rng(20)
    sizes = [(10, 12, 11), (15, 0, 10), (20, 10, 10)]
    values = [np.round(random.normal(0, 2, sum(part))) for part in sizes]
    result = []
    for _ in range(1500):
        centers = [
            ranks(np.split(random.permutation(v), np.cumsum(part)[:-1]))
            for v, part in zip(values, sizes, strict=True)
        ]
        result.append(kruskal_weighted(centers).p_value)
    assert np.mean(np.array(result) < 0.05) == pytest.approx(0.05, abs=0.02)
    assert np.mean(result) == pytest.approx(0.5, abs=0.03)


people = st.lists(st.integers(-20, 20).map(float), min_size=3, max_size=12)
center = st.lists(people, min_size=3, max_size=3)


@settings(max_examples=60)
@given(st.lists(center, min_size=1, max_size=3), st.permutations([0, 1, 2]))
def test_the_order_of_groups_and_of_centers_does_not_matter(
    centers: list[Groups], order: list[int]
) -> None:
    one = kruskal_weighted([ranks(groups) for groups in centers])
    other = [ranks([groups[i] for i in order]) for groups in reversed(centers)]
    assert kruskal_weighted(other).statistic == pytest.approx(one.statistic, rel=1e-7, abs=1e-9)


@settings(max_examples=60)
@given(st.lists(center, min_size=1, max_size=3))
def test_a_rising_transformation_changes_nothing(centers: list[Groups]) -> None:
    bent = [[np.exp(np.array(part) / 7) - 3 for part in groups] for groups in centers]
    assert kruskal_weighted([ranks(part) for part in bent]) == kruskal_weighted(
        [ranks(part) for part in centers]
    )


def test_what_makes_no_sense_is_an_error() -> None:
    with pytest.raises(ValueError, match="two groups must have people"):
        GroupRankStatistics.of_table([[3, 4], [0, 0]])
    with pytest.raises(ValueError, match="a row per group"):
        GroupRankStatistics.of_table([3, 4])
    with pytest.raises(ValueError, match="number of pairs"):
        GroupRankStatistics.of_pairs([2, 2], {(0, 1): 5.0}, 1.0)
    with pytest.raises(ValueError, match="rank_variance must be finite"):
        GroupRankStatistics.of_pairs([2, 2], {(0, 1): 4.0}, float("nan"))
    with pytest.raises(ValueError, match="a column per group"):
        GroupRankStatistics(np.ones(3), np.zeros((2, 2)), 1.0)
    with pytest.raises(ValueError, match="at least one center"):
        kruskal_weighted([])


def test_a_center_without_variation_adds_nothing() -> None:
    random = np.random.default_rng(1)
    center = ranks([random.normal(shift, 1, 12) for shift in (0, 0.5, 1)])
    tied = ranks([np.ones(10), np.ones(12), np.ones(14)])
    for test in (kruskal_weighted, kruskal_sum, kruskal_fisher):
        alone, with_tied = test([center]), test([center, tied])
        assert with_tied.statistic == pytest.approx(alone.statistic, rel=1e-12)
        assert with_tied.df == alone.df == 2
        assert with_tied.log_p == pytest.approx(alone.log_p, rel=1e-12)
        assert with_tied.note == "all values are tied in 1 of 2 centers"
