"""Tables within strata: against statsmodels, R's and metafor's published values."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import StratifiedTable
from statsmodels.stats.meta_analysis import combine_effects

from tests.maths.test_heterogeneity import BCG
from unpooled.maths.arrays import FloatArray
from unpooled.maths.categories.contingency import chi2_test, linear_by_linear
from unpooled.maths.categories.mantel_haenszel import (
    breslow_day,
    cochran_mantel_haenszel,
    general_association,
    log_odds_ratios,
    odds_ratio,
    odds_ratio_heterogeneity,
    risk_difference,
    risk_ratio,
    stratified_trend,
)

# Admissions at Berkeley by department: men admitted, rejected; women admitted, rejected (R)
UCB = np.array(
    [
        [[512, 313], [89, 19]],
        [[353, 207], [17, 8]],
        [[120, 205], [202, 391]],
        [[138, 279], [131, 244]],
        [[53, 138], [94, 299]],
        [[22, 351], [24, 317]],
    ]
)
# Penicillin and rabbits (Agresti 1990, R's example), with an empty level in two strata
RABBITS = np.array(
    [
        [[0, 6], [0, 5]],
        [[3, 3], [0, 6]],
        [[6, 0], [2, 4]],
        [[5, 1], [6, 0]],
        [[2, 0], [5, 0]],
    ]
)
# Job satisfaction by income, women and men (Agresti 2002, p. 288; R's example)
SATISFACTION = np.array(
    [
        [[1, 3, 11, 2], [2, 3, 17, 3], [0, 1, 8, 5], [0, 2, 4, 2]],
        [[1, 1, 2, 1], [0, 3, 5, 1], [0, 0, 7, 3], [0, 1, 9, 6]],
    ]
)
TRIALS = np.array([[[a, n - a], [c, m - c]] for a, n, c, m in BCG])


@st.composite
def strata(draw: st.DrawFn, least: int = 1, most: int = 40) -> FloatArray:
    """Some 2×2 tables."""
    many = draw(st.integers(1, 6))
    counts = st.lists(st.integers(least, most), min_size=4 * many, max_size=4 * many)
    return np.array(draw(counts), dtype=float).reshape(many, 2, 2)


@given(strata(), st.booleans())
def test_two_by_two_tables_are_those_of_statsmodels(tables: FloatArray, flag: bool) -> None:
    theirs = StratifiedTable(list(tables))
    cmh, plain = cochran_mantel_haenszel(tables), theirs.test_null_odds()
    assert cmh.statistic == pytest.approx(plain.statistic, rel=1e-10, abs=1e-12)
    assert cmh.p_value == pytest.approx(plain.pvalue, abs=1e-10)
    ratio = odds_ratio(tables)
    assert ratio is not None
    assert ratio.estimate == pytest.approx(theirs.oddsratio_pooled, rel=1e-10)
    np.testing.assert_allclose((ratio.low, ratio.high), theirs.oddsratio_pooled_confint(), 1e-10)
    risks = risk_ratio(tables)
    assert risks is not None
    assert risks.estimate == pytest.approx(theirs.riskratio_pooled, rel=1e-10)
    assume(len(tables) > 1 and abs(math.log(ratio.estimate)) > 1e-3)  # it divides by 1 − OR
    homogeneity, test = theirs.test_equal_odds(adjust=flag), breslow_day(tables, tarone=flag)
    assert test.statistic == pytest.approx(homogeneity.statistic, rel=1e-8, abs=1e-8)
    assert test.p_value == pytest.approx(homogeneity.pvalue, abs=1e-8)


def test_berkeley() -> None:
    """R: mantelhaen.test(UCBAdmissions), with and without correction."""
    corrected, plain = (cochran_mantel_haenszel(UCB, correction=on) for on in (True, False))
    assert corrected.statistic == pytest.approx(1.4269, abs=5e-5)
    assert corrected.p_value == pytest.approx(0.2323, abs=5e-5)
    theirs = StratifiedTable(list(UCB))
    assert plain.statistic == pytest.approx(theirs.test_null_odds().statistic, rel=1e-10)
    assert corrected.statistic == pytest.approx(
        theirs.test_null_odds(correction=True).statistic, rel=1e-10
    )
    ratio = odds_ratio(UCB)
    assert ratio is not None
    assert ratio.estimate == pytest.approx(0.9046968, abs=5e-8)
    assert ratio.low == pytest.approx(0.7719074, abs=5e-8)
    assert ratio.high == pytest.approx(1.0603298, abs=5e-8)
    for tarone in (False, True):
        test, equal = breslow_day(UCB, tarone=tarone), theirs.test_equal_odds(adjust=tarone)
        assert test.statistic == pytest.approx(equal.statistic, rel=1e-10)
        assert test.p_value == pytest.approx(equal.pvalue, rel=1e-10)


def test_rabbits_with_empty_levels() -> None:
    """R: mantelhaen.test(Rabbits)."""
    test, ratio = cochran_mantel_haenszel(RABBITS, correction=True), odds_ratio(RABBITS)
    assert test.statistic == pytest.approx(3.9286, abs=5e-5)
    assert test.p_value == pytest.approx(0.04747, abs=5e-6)
    assert ratio is not None
    assert ratio.estimate == pytest.approx(7, rel=1e-10)
    assert (ratio.low, ratio.high) == pytest.approx((1.026713, 47.725133), rel=1e-6)
    assert breslow_day(RABBITS).df == 2  # two of five strata have one level only


def test_breslow_day_equals_a_published_value() -> None:
    """R: DescTools::BreslowDayTest, without and with Tarone's correction."""
    tables = np.array(
        [
            [[20, 14], [10, 24]],
            [[15, 12], [3, 15]],
            [[3, 2], [3, 2]],
            [[12, 3], [7, 5]],
            [[1, 0], [3, 2]],
        ]
    )
    assert breslow_day(tables, tarone=False).statistic == pytest.approx(1.8438, abs=5e-5)
    assert breslow_day(tables).statistic == pytest.approx(1.8436, abs=5e-5)
    assert breslow_day(tables).p_value == pytest.approx(0.7645, abs=5e-5)


def test_the_bcg_trials() -> None:
    """metafor: rma.mh of the trials' odds ratio, risk ratio and risk difference (Sato)."""
    odds, risks, difference = odds_ratio(TRIALS), risk_ratio(TRIALS), risk_difference(TRIALS)
    assert odds is not None
    assert risks is not None
    assert difference is not None
    result = [odds.estimate, odds.low, odds.high, risks.estimate, risks.low, risks.high]
    published = [0.6229, 0.5748, 0.6750, 0.6353, 0.5881, 0.6862]
    assert result == pytest.approx(published, abs=5e-5)
    limits = [difference.estimate, difference.low, difference.high]
    assert limits == pytest.approx([-0.0033, -0.0039, -0.0027], abs=5e-5)
    error = (difference.high - difference.low) / 2 / stats.norm.ppf(0.975)
    assert difference.estimate / error == pytest.approx(-11.4708, abs=5e-5)
    assert breslow_day(TRIALS).statistic == pytest.approx(171.7567, abs=5e-5)
    assert cochran_mantel_haenszel(TRIALS, correction=True).statistic == pytest.approx(
        135.6889, abs=5e-5
    )


def test_general_association_equals_published_values() -> None:
    """R and Agresti: M² = 10.2001 on 9 degrees of freedom, p = .3345."""
    test = general_association(SATISFACTION)
    assert test.statistic == pytest.approx(10.2001, abs=5e-5)
    assert test.df == 9
    assert test.p_value == pytest.approx(0.3345, abs=5e-5)
    trend = stratified_trend(SATISFACTION, [1, 3, 4, 5], [3, 10, 20, 35])
    assert trend.statistic**2 == pytest.approx(6.1563, abs=5e-5)


def by_all_levels_but_one(tables: FloatArray) -> tuple[float, int]:
    """The statistic with the last group and level left out, as R computes it."""
    off, covariance = 0.0, 0.0
    for table in tables:
        n, rows, columns = table.sum(), table.sum(1)[:-1], table.sum(0)[:-1]
        off = off + (table[:-1, :-1] - np.outer(rows, columns) / n).T.ravel()
        one, two = (np.diag(n * m) - np.outer(m, m) for m in (columns, rows))
        covariance = covariance + np.kron(one, two) / (n**2 * (n - 1))
    solved = np.linalg.solve(np.asarray(covariance), np.asarray(off))
    return float(np.asarray(off) @ solved), np.size(off)


@given(st.integers(2, 4), st.integers(2, 5), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_general_association_leaves_out_any_level(r: int, c: int, many: int, seed: int) -> None:
    tables = np.random.default_rng(seed).integers(1, 30, (many, r, c)).astype(float)
    test, (statistic, df) = general_association(tables), by_all_levels_but_one(tables)
    assert test.statistic == pytest.approx(statistic, rel=1e-9, abs=1e-12)
    assert test.df == df


@given(strata(least=0, most=12))
def test_general_association_of_two_by_two_is_cochran_mantel_haenszel(tables: FloatArray) -> None:
    plain, general = cochran_mantel_haenszel(tables), general_association(tables)
    assert general.df == plain.df
    assert general.statistic == pytest.approx(plain.statistic, rel=1e-10, abs=1e-12)
    trend = stratified_trend(tables)
    assert trend.statistic**2 == pytest.approx(plain.statistic, rel=1e-10, abs=1e-12)
    assert trend.p_value == pytest.approx(plain.p_value, rel=1e-10)


def test_one_stratum_is_one_table() -> None:
    table = SATISFACTION.sum(axis=0)
    n = table.sum()
    assert general_association([table]).statistic == pytest.approx(
        chi2_test(table).statistic * (n - 1) / n, rel=1e-10
    )
    assert stratified_trend([table]).statistic == linear_by_linear(table).statistic


def test_groups_that_never_meet_cost_degrees_of_freedom() -> None:
    """Groups 0 and 1 in one stratum, 2 and 3 in the other: two tables of two groups each."""
    first, second = np.array([[9, 4, 3], [2, 6, 8]]), np.array([[5, 9, 7], [8, 3, 6]])
    tables = np.zeros((2, 4, 3))
    tables[0, :2], tables[1, 2:] = first, second
    apart = [general_association([table]) for table in (first, second)]
    together = general_association(tables)
    assert together.df == 4
    assert together.statistic == pytest.approx(sum(test.statistic for test in apart), rel=1e-10)


@given(strata(least=0, most=6))
def test_strata_that_say_nothing_change_nothing(tables: FloatArray) -> None:
    idle = np.array([[[0, 0], [0, 0]], [[5, 3], [0, 0]], [[0, 4], [0, 7]], [[1, 0], [0, 0]]])
    more = np.concatenate((tables, idle))
    for test in (cochran_mantel_haenszel, general_association, breslow_day):
        plain, wider = test(tables), test(more)
        assert wider.statistic == pytest.approx(plain.statistic, abs=1e-9)
        assert wider.df == plain.df
    one_group = np.concatenate((tables, idle[[0, 1, 3]]))
    for measure, wide in (odds_ratio, more), (risk_ratio, more), (risk_difference, one_group):
        before, after = measure(tables), measure(wide)
        assert (before is None) == (after is None)
        if before and after:
            limits = [after.estimate, after.low, after.high]
            assert limits == pytest.approx([before.estimate, before.low, before.high], rel=1e-9)
    q, same = odds_ratio_heterogeneity(tables), odds_ratio_heterogeneity(more)
    assert (same.q, same.df) == (q.q, q.df)


@given(strata(least=0, most=25))
def test_exchanged_groups_turn_the_effect_round(tables: FloatArray) -> None:
    for measure in (odds_ratio, risk_ratio):
        one, other = measure(tables), measure(tables[:, ::-1])
        assert (one is None) == (other is None)
        if one and other and 0 < one.estimate < math.inf:
            assert 1 / other.estimate == pytest.approx(one.estimate, rel=1e-10)
            assert 1 / other.low == pytest.approx(one.high, rel=1e-8)
    one, other = risk_difference(tables), risk_difference(tables[:, ::-1])
    assert (one is None) == (other is None)
    if one and other:
        assert (-other.estimate, -other.low) == pytest.approx((one.estimate, one.high), abs=1e-10)
    test, turned = breslow_day(tables), breslow_day(tables[:, ::-1])
    assert turned.statistic == pytest.approx(test.statistic, rel=1e-6, abs=1e-6)
    assert turned.df == test.df


def test_an_odds_ratio_without_limit() -> None:
    zero, infinite = odds_ratio([[[0, 5], [5, 5]]]), odds_ratio([[[5, 0], [5, 5]]])
    assert zero is not None
    assert infinite is not None
    assert (zero.estimate, zero.low, zero.high) == (0, 0, math.inf)
    assert (infinite.estimate, infinite.low, infinite.high) == (math.inf, 0, math.inf)
    assert odds_ratio([[[5, 0], [5, 0]]]) is None
    assert risk_ratio([[[0, 5], [0, 5]]]) is None
    assert risk_difference([[[5, 5], [0, 0]]]) is None
    assert breslow_day([[[5, 0], [5, 5]], [[5, 0], [5, 5]]]).p_value == 1


def test_groups_wholly_at_one_level_have_equal_risks() -> None:
    apart, level = [[8, 2], [4, 6]], [[10, 0], [10, 0]]
    difference, halved = risk_difference([apart]), risk_difference([apart, level])
    assert difference is not None
    assert halved is not None
    assert (difference.estimate, halved.estimate) == pytest.approx((0.4, 0.2))


def test_a_continuity_correction_never_enlarges() -> None:
    """Where the sum is off by less than ½, as in R, nothing is taken off."""
    table = [[[5, 5], [5, 6]]]
    plain = cochran_mantel_haenszel(table)
    assert cochran_mantel_haenszel(table, correction=True).statistic == plain.statistic


@given(strata())
def test_heterogeneity_is_that_of_statsmodels(tables: FloatArray) -> None:
    assume(len(tables) > 1)
    effects, variances = log_odds_ratios(tables)
    with np.errstate(all="ignore"):  # its random effects, which are not asked for
        theirs = combine_effects(effects, variances, method_re="dl")
    ours = odds_ratio_heterogeneity(tables)
    assert ours.q == pytest.approx(theirs.q, rel=1e-9, abs=1e-10)
    assert ours.df == theirs.df
    assert ours.i2 == pytest.approx(max(theirs.i2, 0), rel=1e-8, abs=1e-8)


def test_an_empty_cell_gets_a_half() -> None:
    (effect,), (variance,) = log_odds_ratios([[[10, 0], [5, 5]]])
    assert effect == pytest.approx(math.log(10.5 * 5.5 / (0.5 * 5.5)))
    assert variance == pytest.approx(1 / 10.5 + 1 / 0.5 + 2 / 5.5)


def test_the_bcg_trials_differ() -> None:
    """metafor: rma(measure="OR", method="FE") gives Q = 163.1649 on 12 degrees of freedom."""
    assert odds_ratio_heterogeneity(TRIALS).q == pytest.approx(163.1649, abs=5e-5)


def test_what_are_no_strata_is_refused() -> None:
    with pytest.raises(ValueError, match=r"strata × groups × levels, at least one each, got \(2,"):
        general_association([[1, 2], [3, 4]])
    with pytest.raises(ValueError, match=r"2×2 tables, got shape \(1, 2, 3\)"):
        odds_ratio([[[1, 2, 3], [4, 5, 6]]])
    with pytest.raises(ValueError, match="finite and not negative"):
        breslow_day([[[1, 2], [3, -4]]])
    with pytest.raises(ValueError, match=r"level must lie in \(0, 1\), got 95"):
        odds_ratio([[[0, 2], [3, 4]]], level=95)
