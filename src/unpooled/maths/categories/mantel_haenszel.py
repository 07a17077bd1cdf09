"""Groups compared within strata: centers, or centers by further strata.

Every table is stratum × group × level. In 2×2 tables the first group is compared with the second
in the chances of the first level: a·d/(b·c) is above 1 where the first group has more of it.
Strata with one group only, or one level only, say nothing about an association: they add 0 to the
sums of tests and odds ratios, and where a test counts strata they are left out. Where both groups
are wholly at one level their risks are equal, which the risk difference counts.

References
----------
.. [1] Mantel, Haenszel (1959), Journal of the National Cancer Institute 22, 719-748.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unpooled.maths.arrays import FloatArray
from unpooled.maths.categories.contingency import Chi2Test, score_sum
from unpooled.maths.categories.mahalanobis import squared_distance
from unpooled.maths.ranks.effect import Heterogeneity, Interval, normal_quantile
from unpooled.maths.ranks.mann_whitney import (
    Alternative,
    TestResult,
    log_chi2_survival,
    normal_test,
)


def check_strata(counts: npt.ArrayLike) -> FloatArray:
    """Tables of counts as an array of strata × groups × levels; counts need not be whole.

    Examples
    --------
    >>> check_strata([[[1, 2], [3, 4]]]).shape
    (1, 2, 2)
    """
    tables = np.asarray(counts, dtype=np.float64)
    if tables.ndim != 3 or 0 in tables.shape:
        raise ValueError(
            f"counts must be strata × groups × levels, at least one each, got {tables.shape}"
        )
    if not ((tables >= 0) & (tables < np.inf)).all():
        raise ValueError("counts must be finite and not negative")
    return tables


@dataclass(frozen=True, slots=True)
class _FourCells:
    """The cells of 2×2 tables, one entry per stratum with people; n1 and n0 are the groups'."""

    a: FloatArray
    b: FloatArray
    c: FloatArray
    d: FloatArray

    @classmethod
    def of(cls, counts: npt.ArrayLike) -> "_FourCells":
        tables = check_strata(counts)
        if tables.shape[1:] != (2, 2):
            raise ValueError(f"counts must be 2×2 tables, got shape {tables.shape}")
        tables = tables[tables.any(axis=(1, 2))]
        return cls(*tables.reshape(-1, 4).T)

    @classmethod
    def informative(cls, counts: npt.ArrayLike) -> "_FourCells":
        """Only strata where both groups and both levels have people."""
        cells = cls.of(counts)
        kept = (cells.n1 > 0) & (cells.n0 > 0) & (cells.m1 > 0) & (cells.m0 > 0)
        return cls(cells.a[kept], cells.b[kept], cells.c[kept], cells.d[kept])

    @property
    def n1(self) -> FloatArray:
        return self.a + self.b

    @property
    def n0(self) -> FloatArray:
        return self.c + self.d

    @property
    def m1(self) -> FloatArray:
        return self.a + self.c

    @property
    def m0(self) -> FloatArray:
        return self.b + self.d

    @property
    def n(self) -> FloatArray:
        return self.a + self.b + self.c + self.d


def cochran_mantel_haenszel(counts: npt.ArrayLike, *, correction: bool = False) -> Chi2Test:
    """The test that groups do not differ in any stratum of 2×2 tables [1]_ [2]_.

    Parameters
    ----------
    counts
        People, strata × 2 × 2; need not be whole.
    correction
        Less ½ for continuity, where the sum is off by ½ or more, as in R's `mantelhaen.test`.

    References
    ----------
    .. [1] Mantel, Haenszel (1959), Journal of the National Cancer Institute 22, 719-748.
    .. [2] Cochran (1954), Biometrics 10, 417-451.

    Examples
    --------
    >>> cochran_mantel_haenszel([[[20, 10], [10, 20]], [[15, 15], [10, 20]]]).p_value
    0.00624...
    """
    cells = _FourCells.of(counts)
    n = cells.n
    off = abs(float((cells.a - cells.n1 * cells.m1 / n).sum()))
    pairs = np.maximum(n - 1, 1.0)  # a stratum of one person has an empty margin
    variance = float((cells.n1 / n * cells.n0 * cells.m1 / n * cells.m0 / pairs).sum())
    if correction and off >= 0.5:
        off -= 0.5
    method = "cochran-mantel-haenszel"
    return Chi2Test.of(method, off**2 / variance, 1) if variance else Chi2Test.of(method, 0.0, 0)


def general_association(counts: npt.ArrayLike) -> Chi2Test:
    """The generalised Cochran-Mantel-Haenszel test of any groups and levels [1]_.

    The covariance of counts, given all margins, may be singular beyond what the margins fix, for
    instance where two groups never share a stratum. Its rank is then the degrees of freedom. For
    2×2 tables it is `cochran_mantel_haenszel` without correction.

    Parameters
    ----------
    counts
        People, strata × groups × levels; need not be whole.

    References
    ----------
    .. [1] Landis, Heyman, Koch (1978), International Statistical Review 46, 237-254.

    Examples
    --------
    >>> test = general_association([[[20, 10, 5], [10, 20, 5]], [[15, 10, 9], [10, 20, 8]]])
    >>> test.df, round(test.statistic, 3)
    (2, 10.498)
    """
    tables = check_strata(counts)
    off = np.zeros(tables[0].size)
    covariance = np.zeros((off.size, off.size))
    for table in tables:
        groups, levels, n = table.sum(axis=1), table.sum(axis=0), float(table.sum())
        if n > 1:
            off += (table - np.outer(groups, levels) / n).ravel()
            covariance += np.kron(_spread(groups, n), _spread(levels, n)) * (n / (n - 1)) * n
    distance, df, _ = squared_distance(off, covariance)
    return Chi2Test.of("general-association", distance, df)


def _spread(people: FloatArray, n: float) -> FloatArray:
    """The covariance of one draw from these people; exactly 0 where all are alike."""
    if np.count_nonzero(people) < 2:
        return np.zeros((len(people), len(people)))
    return np.diag(people / n) - np.outer(people / n, people / n)


def stratified_trend(
    counts: npt.ArrayLike,
    level_scores: Sequence[float] | None = None,
    group_scores: Sequence[float] | None = None,
    alternative: Alternative = "two-sided",
) -> TestResult:
    """Mantel's test of a trend of ordered groups over ordered levels within strata [1]_.

    A normal deviate: the strata's sums of products of scores, less their expectations. In one
    stratum it is `linear_by_linear`; for 2×2 tables its square is `cochran_mantel_haenszel`.

    Parameters
    ----------
    counts
        People, strata × groups × levels, either in order.
    level_scores, group_scores
        Where levels and groups lie; 0, 1, 2, … if not given.

    References
    ----------
    .. [1] Mantel (1963), Journal of the American Statistical Association 58, 690-700.

    Examples
    --------
    >>> stratified_trend([[[20, 10, 5], [10, 10, 15]], [[20, 9, 5], [10, 10, 10]]]).statistic
    3.5...
    """
    sums = [score_sum(table, level_scores, group_scores) for table in check_strata(counts)]
    trend, variance = sum(of for of, _ in sums), sum(of for _, of in sums)
    note = None if variance else "fewer than two groups or levels: nothing to test, p = 1"
    return normal_test("stratified-trend", trend, variance, alternative, note)


def odds_ratio(counts: npt.ArrayLike, level: float = 0.95) -> Interval | None:
    """The Mantel-Haenszel odds ratio, with Robins, Breslow and Greenland's interval [1]_.

    It is 0 or infinite where one diagonal is empty in all strata; its interval is then [0, ∞],
    as nothing bounds it. None where both are empty.

    References
    ----------
    .. [1] Robins, Breslow, Greenland (1986), Biometrics 42, 311-323.

    Examples
    --------
    >>> odds_ratio([[[20, 10], [10, 20]], [[15, 15], [10, 20]]])
    Interval(estimate=2.8..., low=1.33..., high=5.88...)
    """
    cells = _FourCells.of(counts)
    n = cells.n
    more, less = cells.a * cells.d / n, cells.b * cells.c / n
    p, q = (cells.a + cells.d) / n, (cells.b + cells.c) / n
    up, down = float(more.sum()), float(less.sum())
    if not (up and down):
        return _unbounded(up, down, level)
    variance = p @ more / up**2 + (p @ less + q @ more) / (up * down) + q @ less / down**2
    return _log_interval(up / down, float(variance) / 2, level)


def risk_ratio(counts: npt.ArrayLike, level: float = 0.95) -> Interval | None:
    """The Mantel-Haenszel risk ratio of the first level, with Greenland and Robins's interval [1]_.

    It is 0 or infinite where one group never has the first level; its interval is then [0, ∞].
    None where neither has.

    References
    ----------
    .. [1] Greenland, Robins (1985), Biometrics 41, 55-68.

    Examples
    --------
    >>> risk_ratio([[[20, 10], [10, 20]], [[15, 15], [10, 20]]])
    Interval(estimate=1.75, low=1.1..., high=2.6...)
    """
    cells = _FourCells.of(counts)
    n = cells.n
    up, down = float((cells.a * cells.n0 / n).sum()), float((cells.c * cells.n1 / n).sum())
    if not (up and down):
        return _unbounded(up, down, level)
    terms = cells.n1 / n * cells.n0 / n * cells.m1 - cells.a / n * cells.c / n * n
    return _log_interval(up / down, float(terms.sum()) / (up * down), level)


def risk_difference(counts: npt.ArrayLike, level: float = 0.95) -> Interval | None:
    """The Mantel-Haenszel difference in the share at the first level, with Sato's interval [1]_.

    Sato's variance holds for few large strata and for many small ones. It is 0, and the interval
    has no width, where every group is wholly at one level. None where no stratum has people of
    both groups.

    References
    ----------
    .. [1] Sato, Greenland, Robins (1989), Biometrics 45, 1323-1324.

    Examples
    --------
    >>> risk_difference([[[20, 10], [10, 20]], [[15, 15], [10, 20]]])
    Interval(estimate=0.25, low=0.07..., high=0.42...)
    """
    cells = _FourCells.of(counts)
    n = cells.n
    one, zero = cells.n1 / n, cells.n0 / n
    weight = float((cells.n1 * zero).sum())
    quantile = normal_quantile(level)
    if not weight:
        return None
    estimate = float((cells.a * zero - cells.c * one).sum()) / weight
    p = one**2 * cells.c - zero**2 * cells.a + one * zero * (cells.n0 - cells.n1) / 2
    q = (cells.a * (cells.n0 - cells.c) + cells.c * (cells.n1 - cells.a)) / (2 * n)
    variance = max(estimate * float(p.sum()) + float(q.sum()), 0.0) / weight**2
    margin = quantile * math.sqrt(variance)
    return Interval(estimate, estimate - margin, estimate + margin)


def _unbounded(up: float, down: float, level: float) -> Interval | None:
    normal_quantile(level)  # refuses a level that is none
    if not (up or down):
        return None
    return Interval(math.inf if up else 0.0, 0.0, math.inf)


def _log_interval(ratio: float, variance: float, level: float) -> Interval:
    margin = normal_quantile(level) * math.sqrt(max(variance, 0.0))
    return Interval(ratio, ratio * math.exp(-margin), ratio * math.exp(margin))


def breslow_day(counts: npt.ArrayLike, *, tarone: bool = True) -> Chi2Test:
    """Whether the odds ratio is the same in all strata: Breslow and Day's test [1]_.

    Parameters
    ----------
    counts
        People, strata × 2 × 2; need not be whole.
    tarone
        With Tarone's correction [2]_, which makes it efficient with the Mantel-Haenszel ratio.

    References
    ----------
    .. [1] Breslow, Day (1980), Statistical Methods in Cancer Research 1, IARC, section 4.4.
    .. [2] Tarone (1985), Biometrika 72, 91-95.

    Examples
    --------
    >>> breslow_day([[[20, 10], [10, 20]], [[10, 15], [10, 20]]]).p_value
    0.160...
    """
    method = "breslow-day-tarone" if tarone else "breslow-day"
    cells, common = _FourCells.informative(counts), odds_ratio(counts)
    df = len(cells.a) - 1
    if common is None or not 0 < common.estimate < math.inf or df < 1:
        return Chi2Test.of(method, 0.0, 0)
    expected = _first_cell(cells, common.estimate)
    parts = np.array([expected, cells.n1 - expected, cells.m1 - expected])
    parts = np.maximum(np.vstack((parts, cells.n0 - parts[2])), np.finfo(np.float64).tiny)
    precision = (1 / parts).sum(axis=0)
    off = cells.a - expected
    statistic = float(off**2 @ precision)
    if tarone:
        statistic -= float(off.sum()) ** 2 / float((1 / precision).sum())
    return Chi2Test.of(method, max(statistic, 0.0), df)


def _first_cell(cells: _FourCells, ratio: float) -> FloatArray:
    """The first cell which gives a table with these margins this odds ratio.

    It solves (1 − ψ)A² + sA − ψ·n1·m1 = 0, s = n0 − m1 + ψ(n1 + m1), by the root that loses no
    digits.
    """
    linear = cells.n0 - cells.m1 + ratio * (cells.n1 + cells.m1)
    product = ratio * cells.n1 * cells.m1
    root = np.sqrt(np.maximum(linear**2 + 4 * (1 - ratio) * product, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        small = 2 * product / (linear + root)
        large = (root - linear) / (2 * (1 - ratio))
    return np.asarray(np.where(linear > 0, small, large))


def log_odds_ratios(counts: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Log odds ratios and their variances, of strata where both groups and levels have people.

    In a stratum with an empty cell all four get ½ more [1]_.

    References
    ----------
    .. [1] Haldane (1956), Annals of Human Genetics 20, 309-311.

    Examples
    --------
    >>> log_odds_ratios([[[20, 10], [10, 20]], [[10, 0], [5, 5]]])
    (array([1.386..., 3.04...]), array([0.3       , 2.45...]))
    """
    cells = _FourCells.informative(counts)
    four = np.array([cells.a, cells.b, cells.c, cells.d])
    four += np.where((four == 0).any(axis=0), 0.5, 0.0)
    return np.log(four[0]) - np.log(four[1]) - np.log(four[2]) + np.log(four[3]), (1 / four).sum(0)


def odds_ratio_heterogeneity(counts: npt.ArrayLike) -> Heterogeneity:
    """Whether odds ratios differ between strata: Cochran's Q by inverse variance [1]_, and I².

    Unlike `breslow_day` it says how much they differ; with small strata it is the less accurate.

    References
    ----------
    .. [1] Cochran (1954), Biometrics 10, 101-129.

    Examples
    --------
    >>> odds_ratio_heterogeneity([[[20, 10], [10, 20]], [[10, 20], [20, 10]]])
    Heterogeneity(q=12.8..., df=1, log_p=-7.9..., i2=0.92...)
    """
    effects, variances = log_odds_ratios(counts)
    df = len(effects) - 1
    if df < 1:
        return Heterogeneity(0.0, 0, 0.0, 0.0)
    weights = 1 / variances
    q = float(weights @ (effects - weights @ effects / weights.sum()) ** 2)
    return Heterogeneity(q, df, log_chi2_survival(q, df), max(0.0, 1 - df / q) if q else 0.0)
