"""One table of counts: its tests and shares against SciPy, statsmodels, R and plain enumeration."""

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats import contingency_tables, proportion

from unpooled.maths.arrays import IntArray
from unpooled.maths.categories.contingency import (
    chi2_test,
    cochran_armitage,
    cramers_v,
    exact_test,
    expected_counts,
    fisher_exact,
    linear_by_linear,
    percentages,
)

# Job satisfaction by income (Agresti 2002, p. 57), R's example of fisher.test
JOB = np.array([[1, 3, 10, 6], [2, 3, 10, 7], [1, 6, 14, 12], [0, 1, 9, 11]])


@st.composite
def tables(draw: st.DrawFn, most: int = 200, groups: int = 5, levels: int = 6) -> IntArray:
    """A table of counts with some zeros, at least 2×2."""
    r, c = draw(st.integers(2, groups)), draw(st.integers(2, levels))
    counts = st.one_of(st.just(0), st.integers(0, 3), st.integers(0, most))
    return np.array(draw(st.lists(counts, min_size=r * c, max_size=r * c))).reshape(r, c)


def full(table: IntArray) -> bool:
    return bool((table.sum(axis=0) > 0).all() and (table.sum(axis=1) > 0).all())


@given(tables(), st.booleans())
def test_chi2_is_scipys(table: IntArray, correction: bool) -> None:
    assume(full(table))
    ours = chi2_test(table, correction=correction)
    theirs = stats.chi2_contingency(table, correction=correction)
    assert ours.statistic == pytest.approx(theirs.statistic, rel=1e-10, abs=1e-12)
    assert ours.df == theirs.dof
    assert ours.p_value == pytest.approx(theirs.pvalue, rel=1e-10)
    np.testing.assert_allclose(expected_counts(table), theirs.expected_freq, rtol=1e-12)


@given(tables(most=30, groups=2, levels=2))
def test_yates_correction_is_scipys(table: IntArray) -> None:
    assume(full(table))
    theirs = stats.chi2_contingency(table, correction=True)
    statistic = chi2_test(table, correction=True).statistic
    assert statistic == pytest.approx(theirs.statistic, rel=1e-10, abs=1e-12)


@given(tables())
def test_empty_groups_and_levels_change_nothing(table: IntArray) -> None:
    assume(full(table))
    wider = np.pad(table, ((0, 1), (1, 2)))
    plain, padded = chi2_test(table), chi2_test(wider)
    assert (padded.statistic, padded.df) == (plain.statistic, plain.df)
    assert padded.note == "without people, left out: 1 group and 3 levels"
    assert cramers_v(wider) == cramers_v(table)


def test_a_p_value_below_any_float_has_a_logarithm() -> None:
    test = chi2_test(np.diag([10_000, 10_000]))
    assert test.p_value == 0.0
    log_p = math.log(2) + stats.norm.logsf(math.sqrt(20_000))
    assert test.log10_p == pytest.approx(log_p / math.log(10), rel=1e-10)


@given(tables())
def test_cramers_v_is_scipys(table: IntArray) -> None:
    assume(full(table))
    v = cramers_v(table)
    assert v == pytest.approx(stats.contingency.association(table, "cramer"), abs=1e-10)


@given(tables(), st.floats(0.5, 0.999))
def test_wilsons_limits_are_those_of_statsmodels(table: IntArray, level: float) -> None:
    people = table.sum(axis=1, keepdims=True)
    assume((people > 0).all())
    ours = percentages(table, level)
    low, high = proportion.proportion_confint(
        table, np.broadcast_to(people, table.shape), alpha=1 - level, method="wilson"
    )
    np.testing.assert_allclose(ours.percent, 100 * table / people, rtol=1e-12)
    np.testing.assert_allclose(ours.low, 100 * np.asarray(low), atol=1e-10)
    np.testing.assert_allclose(ours.high, 100 * np.asarray(high), atol=1e-10)
    assert (ours.low <= ours.percent).all()
    assert (ours.percent <= ours.high).all()


def test_a_group_of_nobody_may_have_any_percentage() -> None:
    shares = percentages([[0, 0], [1, 1]])
    assert np.isnan(shares.percent[0]).all()
    assert (shares.low[0].tolist(), shares.high[0].tolist()) == ([0, 0], [100, 100])


@given(tables(most=60, groups=2, levels=2), st.sampled_from(["two-sided", "greater", "less"]))
def test_fishers_test_is_scipys(table: IntArray, alternative: str) -> None:
    ours = fisher_exact(table, alternative)  # type: ignore[arg-type]
    assert ours.p_value == pytest.approx(stats.fisher_exact(table, alternative).pvalue, rel=1e-10)


def test_fishers_test_of_many_people() -> None:
    table = [[40_300, 59_700], [40_000, 60_000]]
    theirs = stats.fisher_exact(table).pvalue
    assert fisher_exact(table).p_value == pytest.approx(theirs, rel=1e-8)  # SciPy's own digits
    assert fisher_exact([[3000, 0], [0, 3000]]).log10_p == pytest.approx(
        math.log10(2) - math.log10(math.comb(6000, 3000)), rel=1e-10
    )


def ways(row: list[int], column: list[int]) -> Iterator[list[list[int]]]:
    """All tables with these margins, one by one."""
    if len(row) == 1:
        yield [column]
        return

    def fill(left: int, room: list[int]) -> Iterator[list[int]]:
        if len(room) == 1:
            if left <= room[0]:
                yield [left]
            return
        for first in range(min(left, room[0]) + 1):
            for rest in fill(left - first, room[1:]):
                yield [first, *rest]

    for first in fill(row[0], column):
        left = [c - f for c, f in zip(column, first, strict=True)]
        for rest in ways(row[1:], left):
            yield [first, *rest]


def by_enumeration(table: IntArray) -> Fraction:
    """The Freeman-Halton p-value in whole numbers."""

    def chance(of: list[list[int]]) -> Fraction:
        return Fraction(1, math.prod(math.factorial(x) for line in of for x in line))

    observed = chance(table.tolist())
    margins = table.sum(axis=1).tolist(), table.sum(axis=0).tolist()
    chances = [chance(other) for other in ways(*margins)]
    return Fraction(sum(c for c in chances if c <= observed), sum(chances))


@given(tables(most=4, groups=3, levels=4))
def test_the_exact_test_of_small_tables_is_the_sum_over_all_tables(table: IntArray) -> None:
    assume(full(table) and table.sum() <= 14)
    test = exact_test(table)
    assert test is not None
    assert test.p_value == pytest.approx(float(by_enumeration(table)), rel=1e-10)


def test_the_exact_test_of_rs_example() -> None:
    """R: fisher.test(Job), p = .7827."""
    test = exact_test(JOB)
    assert test is not None
    assert test.p_value == pytest.approx(0.7827, abs=5e-5)


def test_too_much_work_is_declined() -> None:
    assert exact_test(JOB, most_work=10_000) is None
    assert exact_test(100 * JOB) is None


@given(tables(most=30, groups=2, levels=5))
def test_cochran_armitage_is_the_trend_in_a_regression(table: IntArray) -> None:
    """z² = N·r², as in R's prop.trend.test; its sign is that of the second group's levels."""
    table = table[:2]
    assume(full(table))
    z = cochran_armitage(table).statistic
    n = table.sum()
    assert z**2 * (n - 1) / n == pytest.approx(linear_by_linear(table).statistic ** 2, abs=1e-9)
    group, level = (np.repeat(places.ravel(), table.ravel()) for places in np.indices(table.shape))
    r = np.corrcoef(group, level)[0, 1]
    assert z == pytest.approx(math.sqrt(n) * r, abs=1e-9)


@given(tables(most=40))
def test_linear_by_linear_is_that_of_statsmodels(table: IntArray) -> None:
    assume(full(table))
    theirs = contingency_tables.Table(table, shift_zeros=False).test_ordinal_association()
    ours = linear_by_linear(table)
    assert ours.statistic == pytest.approx(theirs.zscore, abs=1e-9)
    assert ours.p_value == pytest.approx(theirs.pvalue, rel=1e-8)


def test_cochran_armitage_equals_a_published_value() -> None:
    """R: prop.trend.test(c(83, 90, 129, 70), c(86, 93, 136, 82)): X² = 8.2249, p = .004132."""
    smokers, patients = np.array([83, 90, 129, 70]), np.array([86, 93, 136, 82])
    test = cochran_armitage([smokers, patients - smokers])
    assert test.statistic**2 == pytest.approx(8.2249, abs=5e-5)
    assert test.p_value == pytest.approx(0.004132, abs=5e-7)


def test_trends_have_a_direction() -> None:
    table = [[20, 10, 5], [10, 10, 15]]
    assert cochran_armitage(table, alternative="greater").p_value < 0.01
    assert cochran_armitage(table, alternative="less").p_value > 0.99
    assert cochran_armitage(table[::-1]).statistic == -cochran_armitage(table).statistic


@pytest.mark.parametrize("table", [[[0, 0], [0, 0]], [[5, 0], [7, 0]], [[0, 0], [3, 4]]])
def test_nothing_to_test(table: list[list[int]]) -> None:
    exact = exact_test(table)
    assert exact is not None
    for test in (chi2_test(table), cochran_armitage(table), linear_by_linear(table), exact):
        assert test.p_value == 1.0
        assert test.note is not None
        assert "nothing to test" in test.note
    assert chi2_test(table).df == 0
    assert fisher_exact(table).p_value == 1.0
    assert cramers_v(table) is None


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(ValueError, match="counts must be finite and not negative"):
        chi2_test([[1, -1], [2, 3]])
    with pytest.raises(ValueError, match=r"groups by levels, got shape \(2,\)"):
        chi2_test([1, 2])
    with pytest.raises(ValueError, match="whole numbers"):
        exact_test([[0.5, 1.0], [2.0, 3.0]])
    with pytest.raises(ValueError, match=r"2×2 table, got shape \(1, 3\)"):
        fisher_exact([[1, 2, 3]])
    with pytest.raises(ValueError, match="two groups, got 3"):
        cochran_armitage([[1, 2], [1, 2], [1, 2]])
    with pytest.raises(ValueError, match="level_scores must be 2 finite numbers"):
        linear_by_linear([[1, 2], [3, 4]], [1, 2, 3])
    with pytest.raises(ValueError, match="alternative must be one of"):
        fisher_exact([[1, 2], [3, 4]], "more")  # type: ignore[arg-type]
