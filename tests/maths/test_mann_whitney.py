"""The federated Mann-Whitney tests, against SciPy on pooled data, permutations and golden cases."""

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.golden import cases
from unpooled.maths.arrays import FloatArray
from unpooled.maths.ranks.mann_whitney import (
    Alternative,
    RankStatistics,
    fisher_test,
    log_chi2_survival,
    rank_statistics,
    rank_statistics_by_row,
    sum_test,
    table_test,
    weighted_test,
)

ALTERNATIVES: tuple[Alternative, ...] = ("two-sided", "greater", "less")
CENTER_TESTS = (sum_test, weighted_test, fisher_test)
GROUPS = st.lists(st.integers(-4, 30), min_size=2, max_size=60)
TIED = RankStatistics(n_x=12, n_y=15, u=0.0, variance=0.0, effect_variance=0.0)

tied_values = st.lists(st.integers(-4, 4), min_size=1, max_size=12)


def ascending(values: Any) -> FloatArray:
    return np.sort(np.asarray(values, dtype=np.float64))


def statistics(x: Any, y: Any) -> RankStatistics:
    return rank_statistics(ascending(x), ascending(y))


def scipy_p(x: Any, y: Any, alternative: Alternative) -> float:
    """SciPy's asymptotic test; its `greater` compares its first sample with its second."""
    answer = stats.mannwhitneyu(
        y, x, use_continuity=False, alternative=alternative, method="asymptotic"
    )
    return float(answer.pvalue)


def signs(x: Any, y: Any) -> list[list[int]]:
    return [[int(b > a) - int(b < a) for b in y] for a in x]


def samples(seed: int) -> list[tuple[FloatArray, FloatArray]]:
    """Continuous, rounded and heavily tied groups, of unequal sizes."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=70), rng.normal(0.3, 1.5, size=45)
    return [
        (x, y),
        (x.round(1), y.round(1)),
        (x.round(), y.round()),
        (np.sign(x - 1), np.sign(y - 1)),
    ]


@given(tied_values, tied_values)
def test_u_counts_every_pair(x: list[int], y: list[int]) -> None:
    assert statistics(x, y).u == sum(map(sum, signs(x, y)))


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([1, 2, 3, 4], [1.5, 5, 6, 7]),
        ([1, 1, 2, 5], [1, 2, 2, 9, 9]),
        ([0, 0, 0], [0, 0, 1]),
        ([3], [1, 3, 3, 3]),
    ],
)
def test_null_variance_is_that_of_u_over_all_relabellings(x: list[float], y: list[float]) -> None:
    pooled = x + y
    everyone = set(range(len(pooled)))
    u = [
        sum(map(sum, signs([pooled[i] for i in chosen], [pooled[i] for i in everyone - {*chosen}])))
        for chosen in combinations(everyone, len(x))
    ]
    assert np.mean(u) == pytest.approx(0)
    assert statistics(x, y).variance == pytest.approx(np.var(u), rel=1e-12)


@given(tied_values, tied_values)
def test_effect_and_its_variance_come_from_the_placements(x: list[int], y: list[int]) -> None:
    result = statistics(x, y)
    wins = (np.array(signs(x, y)) + 1) / 2
    assert result.effect == pytest.approx(wins.mean(), abs=1e-15)
    parts = [
        np.var(placed, ddof=1) / len(placed)
        if len(placed) > 1
        else wins.mean() * (1 - wins.mean())  # one person: at most the variance of a coin
        for placed in (wins.mean(axis=1), wins.mean(axis=0))
    ]
    assert result.effect_variance == pytest.approx(sum(parts), abs=1e-14)


def test_u_of_a_million_people_is_exact() -> None:
    x = np.arange(1e6)
    result = rank_statistics(x, x + 0.5)
    assert result.u == 1_000_000
    assert result.variance == 1e12 * (2e6 + 1) / 3


def test_many_centers_at_once_are_as_one_by_one() -> None:
    random = np.random.default_rng(1)
    x = np.sort(random.normal(0.0, 2.0, (50, 400)).round(1))
    y = np.sort(random.normal(0.3, 2.0, (50, 301)).round(1))
    one_by_one = [rank_statistics(*pair) for pair in zip(x, y, strict=True)]
    assert rank_statistics_by_row(x, y) == one_by_one


@given(tied_values, tied_values)
def test_swapping_the_groups_turns_u_around(x: list[int], y: list[int]) -> None:
    one, other = statistics(x, y), statistics(y, x)
    assert (other.n_x, other.n_y, other.u) == (one.n_y, one.n_x, -one.u)
    assert other.variance == pytest.approx(one.variance, rel=1e-14)
    assert other.effect_variance == pytest.approx(one.effect_variance, abs=1e-15)
    for test in CENTER_TESTS:
        assert test([other], "less").log_p == pytest.approx(test([one], "greater").log_p)
        assert test([other], "two-sided").log_p == pytest.approx(test([one], "two-sided").log_p)


@given(tied_values, tied_values)
def test_only_the_order_of_the_values_counts(x: list[int], y: list[int]) -> None:
    assert statistics(x, y) == statistics(np.exp(x), np.exp(y))


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize(("x", "y"), samples(seed=1))
def test_with_one_center_every_test_is_scipys_on_pooled_data(
    x: FloatArray, y: FloatArray, alternative: Alternative
) -> None:
    center = statistics(x, y)
    expected = pytest.approx(scipy_p(x, y, alternative), rel=1e-10)
    assert [test([center], alternative).p_value for test in CENTER_TESTS] == [expected] * 3


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize(("x", "y"), samples(seed=2))
def test_a_table_with_one_value_per_bin_is_scipys_on_pooled_data(
    x: FloatArray, y: FloatArray, alternative: Alternative
) -> None:
    values = np.unique(np.concatenate((x, y)))
    counts_x, counts_y = ([int((group == v).sum()) for v in values] for group in (x, y))
    result = table_test(counts_x, counts_y, alternative)
    assert result.p_value == pytest.approx(scipy_p(x, y, alternative), rel=1e-10)
    assert result.note is None


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("decimals", [0, 6])
def test_several_centers_combine_as_the_paper_says(alternative: Alternative, decimals: int) -> None:
    rng = np.random.default_rng(3)
    groups = [
        (rng.normal(size=n).round(decimals), rng.normal(0.2, 1, size=m).round(decimals))
        for n, m in [(40, 50), (25, 12), (10, 10), (13, 60)]
    ]
    centers = [statistics(x, y) for x, y in groups]
    u = [sum(map(sum, signs(x, y))) for x, y in groups]
    v = []
    for x, y in groups:
        n, m, total = len(x), len(y), len(x) + len(y)
        ties = stats.tiecorrect(stats.rankdata(np.concatenate((x, y))))
        v.append(n * m * (total + 1) / 3 * ties)
    a = [len(x) * len(y) / math.sqrt(variance) for (x, y), variance in zip(groups, v, strict=True)]
    z = [one / math.sqrt(variance) for one, variance in zip(u, v, strict=True)]
    assert sum_test(centers, alternative).statistic == pytest.approx(sum(u) / math.sqrt(sum(v)))
    assert weighted_test(centers, alternative).statistic == pytest.approx(
        np.dot(a, z) / math.sqrt(np.dot(a, a))
    )
    fisher = stats.combine_pvalues([scipy_p(x, y, alternative) for x, y in groups], "fisher")
    result = fisher_test(centers, alternative)
    assert result.statistic == pytest.approx(fisher.statistic, rel=1e-10)
    assert result.p_value == pytest.approx(fisher.pvalue, rel=1e-10)


@pytest.mark.parametrize("case", cases("pvalues"), ids=lambda case: case["id"])
def test_golden_p_values_come_out(case: dict[str, Any]) -> None:
    reference = case["reference"]
    groups = [(center["x"], center["y"]) for center in case["inputs"]["centers"]]
    centers = [statistics(x, y) for x, y in groups]
    assert [center.u for center in centers] == [row["U_paper"] for row in reference["centers"]]
    if "TIES_IGNORED_IN_CENTER_TESTS" not in case["flags"]:
        for center, row in zip(centers, reference["centers"], strict=True):
            assert math.sqrt(center.variance) == pytest.approx(row["sd_no_ties"], rel=1e-9)
        for test, name in zip(CENTER_TESTS, ("sum", "weighted", "fisher"), strict=True):
            # Fisher's p-value is 1 − cdf in the reference, which keeps 15 decimals
            expected = pytest.approx(reference[f"{name}_pval"], rel=1e-9, abs=1e-16)
            assert test(centers, "greater").p_value == expected
    pooled = statistics(*(np.concatenate(group) for group in zip(*groups, strict=True)))
    combined = case["recommended"]["combined_tie_corrected"]
    assert sum_test([pooled], "greater").p_value == pytest.approx(combined, rel=1e-9)


@pytest.mark.parametrize("case", cases("pvalues"), ids=lambda case: case["id"])
def test_golden_tables_are_tested_alike(case: dict[str, Any]) -> None:
    reference = case["reference"]
    result = table_test(reference["table"]["fx"], reference["table"]["fy"], "greater")
    if "COLLAPSE" in case["flags"]:  # one cell: the reference divides 0 by 0
        assert (result.statistic, result.p_value) == (0, 1)
        assert result.note is not None
    else:
        assert result.p_value == pytest.approx(reference["tabular_pval"], rel=1e-9)


def test_the_table_statistic_follows_the_double_sum_with_fractional_counts() -> None:
    x, y = [5.4545, 4.5455, 10, 0, 12.5], [7, 7.25, 0, 10, 10.75]
    u = sum(x[i] * y[j] * ((j > i) - (j < i)) for i in range(5) for j in range(5))
    n, m = sum(x), sum(y)
    t = [a + b for a, b in zip(x, y, strict=True)]
    ties = sum(r**3 - r for r in t) / ((n + m) ** 3 - (n + m))
    z = u / math.sqrt(n * m * (n + m + 1) / 3 * (1 - ties))
    result = table_test(x, y, "less")
    assert result.statistic == pytest.approx(z, rel=1e-12)
    assert result.p_value == pytest.approx(stats.norm.cdf(z), rel=1e-12)


@given(tied_values, tied_values)
def test_one_and_two_sided_p_values_agree(x: list[int], y: list[int]) -> None:
    center = statistics(x, y)
    for test in (sum_test, weighted_test):
        two, greater, less = (test([center], alternative) for alternative in ALTERNATIVES)
        if center.variance == 0:
            assert {two.p_value, greater.p_value, less.p_value} == {1}
        else:
            assert greater.p_value + less.p_value == pytest.approx(1)
            assert two.p_value == pytest.approx(2 * min(greater.p_value, less.p_value))


def test_tiny_p_values_stay_finite_and_ordered() -> None:
    for test in CENTER_TESTS:
        result = []
        for u in np.linspace(0.05e12, 1e12, 40):
            center = RankStatistics(10**6, 10**6, float(u), 1e12 * (2e6 + 1) / 3, 0.0)
            result.append(test([center, center], "two-sided").log10_p)
        assert np.all(np.isfinite(result))
        assert np.all(np.diff(result) < 0)
        assert result[-1] < -500_000
        assert test([center], "two-sided").p_value == 0
        assert test([center], "less").p_value == 1


@pytest.mark.parametrize("z", [5.0, 40.0, 700.0])
def test_tiny_p_values_are_right(z: float) -> None:
    log_p = sum_test([RankStatistics(1000, 1000, z * 1000, 1e6, 0.0)], "greater").log_p
    mills = sum((-1) ** k * math.prod(range(1, 2 * k, 2)) / z ** (2 * k) for k in range(8))
    expected = -(z**2) / 2 - math.log(z * math.sqrt(2 * math.pi)) + math.log(mills)
    assert log_p == pytest.approx(expected, rel=1e-6 if z < 10 else 1e-14)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_all_ties_give_p_one_and_a_note(alternative: Alternative) -> None:
    center = statistics([7] * 12, [7] * 15)
    assert center == TIED
    for test in CENTER_TESTS:
        result = test([center, center], alternative)
        assert (result.statistic, result.p_value) == (0, 1)
        assert result.note is not None


def test_one_cell_is_nothing_to_test_whatever_the_rounding() -> None:
    for people in np.random.default_rng(4).uniform(1, 1e6, size=3000):
        result = table_test([0, people, 0], [0, people, 0], "greater")
        assert (result.statistic, result.p_value) == (0, 1)
        assert result.note is not None


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_a_center_without_variation_adds_nothing(alternative: Alternative) -> None:
    center = statistics(np.arange(20), np.arange(5, 22))
    for test in (sum_test, weighted_test, fisher_test):
        alone, with_tied = test([center], alternative), test([center, TIED], alternative)
        assert with_tied.statistic == alone.statistic
        assert with_tied.log_p == alone.log_p
        assert with_tied.note == "all values are tied in 1 of 2 centers"


@pytest.mark.parametrize("df", [1, 2, 3, 6, 9, 40, 201])
def test_chi2_survival_is_scipys(df: int) -> None:
    for statistic in (0.0, 1e-8, 0.3, df * 0.5, float(df), df * 3.0, df + 300.0):
        expected = stats.chi2.logsf(statistic, df)
        result = log_chi2_survival(statistic, df)
        assert result == pytest.approx(expected, rel=1e-10, abs=1e-13)
        assert result <= 0


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ([], [1.0], "x must hold at least one value"),
        ([1.0], [], "y must hold at least one value"),
        ([2.0, 1.0], [1.0], "x must be finite and ascending"),
        ([1.0], [1.0, math.nan], "y must be finite and ascending"),
        ([1.0, math.inf], [1.0], "x must be finite and ascending"),
    ],
)
def test_bad_groups_are_named(x: list[float], y: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rank_statistics(np.array(x), np.array(y))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ((0, 3, 0.0, 0.0, 0.0), "n_x and n_y must be at least 1"),
        ((2, 3, 7.0, 1.0, 0.0), "u must lie in"),
        ((2, 3, math.nan, 1.0, 0.0), "u must lie in"),
        ((2, 3, 1.0, -1.0, 0.0), "variance must be finite"),
        ((2, 3, 1.0, 1.0, math.nan), "effect_variance must be finite"),
    ],
)
def test_impossible_statistics_are_refused(fields: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RankStatistics(*fields)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ([1, 2], [1], "equal length"),
        ([[1, 2]], [[1, 2]], "equal length"),
        ([1, -2], [1, 3], "counts_x must be finite and not negative"),
        ([1, 2], [math.nan, 3], "counts_y must be finite and not negative"),
        ([1, 2], [0, 0], "counts_y must sum to at least 1 person"),
    ],
)
def test_bad_tables_are_named(x: Any, y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        table_test(x, y, "two-sided")


def test_unknown_alternatives_and_no_centers_are_refused() -> None:
    sideways: Any = "sideways"
    for test in CENTER_TESTS:
        with pytest.raises(ValueError, match=r"alternative must be one of .*, got 'sideways'"):
            test([TIED], sideways)
        with pytest.raises(ValueError, match="at least one center"):
            test([], "two-sided")
    with pytest.raises(ValueError, match="alternative must be one of"):
        table_test([10], [10], sideways)


@given(GROUPS, GROUPS, st.integers(2, 20))
def test_without_small_ties_variances_are_at_least_those_with_them(
    x: list[int], y: list[int], k: int
) -> None:
    all_ties, large = (rank_statistics(ascending(x), ascending(y), k=part) for part in (1, k))
    assert all_ties == rank_statistics(ascending(x), ascending(y))
    assert large.u == all_ties.u
    assert large.variance >= all_ties.variance
    assert large.effect_variance >= all_ties.effect_variance
    people = len(x) + len(y)
    untied = rank_statistics(ascending(x), ascending(y), k=people + 1).variance
    assert untied == pytest.approx(len(x) * len(y) * (people + 1) / 3)
    most = ((k - 1) ** 2 - 1) / (people**2 - 1)
    assert large.variance <= all_ties.variance + (most + 1e-12) * untied


@given(GROUPS, GROUPS)
def test_a_tie_of_two_counts_for_k_2(x: list[int], y: list[int]) -> None:
    assert rank_statistics(ascending(x), ascending(y), k=2) == statistics(x, y)


@given(GROUPS, GROUPS, st.integers(2, 20))
def test_how_many_share_a_value_does_not_show_below_k(x: list[int], y: list[int], k: int) -> None:
    times, total = np.unique(x + y, return_counts=True)[1], len(x) + len(y)
    ties = float(np.sum((times**3 - times)[times >= k])) / (total**3 - total)
    expected = len(x) * len(y) * (total + 1) / 3 * (1 - ties)
    result = rank_statistics(ascending(x), ascending(y), k=k).variance
    assert result == pytest.approx(expected, abs=1e-9)


def test_the_effect_variance_without_small_ties_is_that_of_a_random_order() -> None:
    random = np.random.default_rng(8)
    x, y = random.integers(0, 12, 30), random.integers(2, 14, 40)
    mean_of = np.mean(
        [
            statistics(x + 0.5 * random.random(30), y + 0.5 * random.random(40)).effect_variance
            for _ in range(4000)
        ]
    )
    result = rank_statistics(ascending(x), ascending(y), k=100).effect_variance
    assert result > statistics(x, y).effect_variance
    assert result == pytest.approx(mean_of, rel=0.01)
