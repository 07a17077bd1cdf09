"""The Mann-Whitney test across centers (the paper's section "Testing").

Each center says five numbers (`rank_statistics`), or the federated table speaks for all of them.
U > 0 means that Y is larger. All variances are corrected for ties, and so are the weights.
P-values are natural logarithms throughout, so that none of them underflows.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np
import numpy.typing as npt

from unpooled.maths.arrays import FloatArray, IntArray

_AT_ONCE = 15_000  # people whose ranks are taken at once: their arrays stay in the caches

Alternative = Literal["two-sided", "greater", "less"]
"""What is asked: `greater` means that Y is larger than X."""
_ALTERNATIVES = get_args(Alternative)


@dataclass(frozen=True, slots=True)
class RankStatistics:
    """What one center knows about the order of its two groups.

    `u` counts the pairs with Y > X minus those with Y < X; `variance` is its variance if the
    groups do not differ; `effect_variance` is that of `effect`, whether they differ or not.
    """

    n_x: int
    n_y: int
    u: float
    variance: float
    effect_variance: float

    def __post_init__(self) -> None:
        if self.n_x < 1 or self.n_y < 1:
            raise ValueError(f"n_x and n_y must be at least 1, got {self.n_x} and {self.n_y}")
        pairs = self.n_x * self.n_y
        if not abs(self.u) <= pairs:
            raise ValueError(f"u must lie in [-n_x·n_y, n_x·n_y] = ±{pairs}, got {self.u}")
        if not 0 <= self.variance < math.inf:
            raise ValueError(f"variance must be finite and not negative, got {self.variance}")
        if not 0 <= self.effect_variance < math.inf:
            raise ValueError(
                f"effect_variance must be finite and not negative, got {self.effect_variance}"
            )

    @property
    def effect(self) -> float:
        """P(Y > X) + ½P(Y = X) in the center's own people."""
        return (self.u / (self.n_x * self.n_y) + 1) / 2


@dataclass(frozen=True, slots=True)
class TestResult:
    """A test statistic and the natural logarithm of its p-value; `note` says what is unusual.

    `df` is of tests of several groups by χ²; None where the statistic is a normal one.
    """

    __test__: ClassVar[bool] = False  # not a test case, whatever its name

    method: str
    statistic: float
    log_p: float
    note: str | None
    df: int | None = None

    def __post_init__(self) -> None:
        if not self.log_p <= 0:
            raise ValueError(f"log_p must be at most 0, got {self.log_p}")

    @property
    def p_value(self) -> float:
        """The p-value; 0 where it is smaller than any float."""
        return math.exp(self.log_p)

    @property
    def log10_p(self) -> float:
        """The decimal logarithm of the p-value."""
        return self.log_p / math.log(10)


def rank_statistics(x: FloatArray, y: FloatArray, *, k: int = 1) -> RankStatistics:
    """U of one center, its null variance and the variance of its effect.

    The variance of the effect is DeLong's [1]_: the spread of the placements of either group in
    the other. Where a group is a single person it is bounded by that of a yes-or-no value.

    The correction for ties would tell how many people share a value: with Σ(t³ − t) alone all of
    300 small counts at a detection limit were found. Hence a tie of fewer than `k` people, both
    groups together, counts as none: its people are taken to differ, in any order. That only makes
    variances larger, so tests are conservative [2]_: the null variance by at most the share
    ((k − 1)² − 1)/(N² − 1), 0.55 % for k = 10 of 120 people; U itself is as ever.

    Parameters
    ----------
    x, y
        The groups' values, ascending.
    k
        The fewest people of a tie that counts.

    References
    ----------
    .. [1] DeLong, DeLong, Clarke-Pearson (1988), Biometrics 44, 837-845.
    .. [2] Lehmann (2006), Nonparametrics, section 1.4: ties broken at random, and their variance.

    Examples
    --------
    >>> rank_statistics(np.array([1.0, 2.0, 4.0]), np.array([2.0, 3.0, 5.0, 6.0]))
    RankStatistics(n_x=3, n_y=4, u=7.0, variance=31.428..., effect_variance=0.0381...)
    """
    return rank_statistics_by_row(x[None, :], y[None, :], k=k)[0]


def rank_statistics_by_row(x: FloatArray, y: FloatArray, *, k: int = 1) -> list[RankStatistics]:
    """`rank_statistics` of many pairs of groups of the same sizes, a pair in each row.

    Examples
    --------
    >>> pairs = rank_statistics_by_row(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[2.0], [9.0]]))
    >>> [center.u for center in pairs]
    [1.0, 2.0]
    """
    for name, values in (("x", x), ("y", y)):
        if values.shape[1] == 0:
            raise ValueError(f"{name} must hold at least one value, got none")
        if not ((values[:, 1:] >= values[:, :-1]).all() and np.isfinite(values[:, [0, -1]]).all()):
            raise ValueError(f"{name} must be finite and ascending")
    n_x, n_y = x.shape[1], y.shape[1]
    rows = max(_AT_ONCE // (n_x + n_y), 1)
    statistics = []
    for row in range(0, len(x), rows):
        runs = _Runs.of_people(x[row : row + rows], y[row : row + rows])
        figures = runs.u(), runs.null_variance(k), runs.effect_variance(k)
        statistics += [
            RankStatistics(n_x, n_y, *fields) for fields in np.transpose(figures).tolist()
        ]
    return statistics


@dataclass(frozen=True, slots=True)
class _Runs:
    """People of either group at each distinct value (or in each bin), and up to it.

    Several pairs of groups of the same sizes n and m may follow each other in a line.
    """

    n: float
    m: float
    counts_x: FloatArray
    counts_y: FloatArray
    reached_x: FloatArray
    reached_y: FloatArray
    starts: IntArray  # where each pair begins

    @classmethod
    def of_people(cls, x: FloatArray, y: FloatArray) -> "_Runs":
        """A pair of sorted groups in each row."""
        n, total = x.shape[1], x.shape[1] + y.shape[1]
        pooled = np.concatenate((x, y), axis=1)
        order = pooled.argsort(axis=1, kind="stable")  # merges the two runs in linear time
        before = np.arange(len(x))[:, None] * total  # people of the rows before
        pooled = pooled.take(order + before)
        last = np.ones(pooled.shape, dtype=bool)
        np.not_equal(pooled[:, 1:], pooled[:, :-1], out=last[:, :-1])
        runs = np.count_nonzero(last, axis=1)
        starts = runs.cumsum() - runs
        reached = (order < n).cumsum(axis=1)
        reached_x = reached[last].astype(np.float64)
        reached_y = (np.arange(1, total + 1) - reached)[last].astype(np.float64)
        counts = _steps(reached_x, starts), _steps(reached_y, starts)
        return cls(float(n), float(total - n), *counts, reached_x, reached_y, starts)

    @classmethod
    def of_table(cls, x: FloatArray, y: FloatArray) -> "_Runs":
        """The two rows of a table."""
        return cls(float(x.sum()), float(y.sum()), x, y, x.cumsum(), y.cumsum(), np.array([0]))

    def u(self) -> FloatArray:
        """Equation fedstatistic in O(B): whole counts give a whole U."""
        return self._sums(self.counts_y * (2 * self.reached_x - self.counts_x - self.n))

    def null_variance(self, k: int = 1) -> FloatArray:
        """V of the paper's section "The Mann-Whitney U test", with its correction for ties."""
        tied, total = large_ties(self.counts_x + self.counts_y, k), self.n + self.m
        ties = self._sums(tied * (tied * tied - 1)) / (total * (total * total - 1))
        return np.maximum(self.n * self.m * (total + 1) / 3 * (1 - ties), 0.0)

    def effect_variance(self, k: int = 1) -> FloatArray:
        """That of both groups' mean placement in the other."""
        placed_x = (self.reached_y - self.counts_y / 2) / self.m
        placed_y = (self.reached_x - self.counts_x / 2) / self.n
        of_x = self._mean_variance(placed_x, self.counts_x, self.n)
        of_y = self._mean_variance(placed_y, self.counts_y, self.m)
        return of_x + of_y if k == 1 else of_x + of_y + self._untied(k)

    def _mean_variance(self, placed: FloatArray, counts: FloatArray, people: float) -> FloatArray:
        weighted = placed * counts
        mean = self._sums(weighted) / people
        if people == 1:
            return mean * (1 - mean)
        return np.maximum(self._sums(weighted * placed) / people - mean**2, 0.0) / (people - 1)

    def _untied(self, k: int) -> FloatArray:
        """What the effect's variance grows by if ties of fewer than k people had a random order.

        Of b people in such a tie, each number from 0 to b is then as likely to be placed below
        somebody of the other group: a variance of b(b + 2)/12.
        """
        x, y = (self._small_ties(counts, k) for counts in (self.counts_x, self.counts_y))
        of_x = 0.0 if self.n == 1 else self._sums(x * y * (y + 2)) / (self.n * (self.n - 1))
        of_y = 0.0 if self.m == 1 else self._sums(x * y * (x + 2)) / (self.m * (self.m - 1))
        return np.asarray(of_x / self.m**2 + of_y / self.n**2) / 12

    def _small_ties(self, counts: FloatArray, k: int) -> FloatArray:
        return np.where(self.counts_x + self.counts_y < k, counts, 0.0)

    def _sums(self, values: FloatArray) -> FloatArray:
        return np.add.reduceat(values, self.starts)


def large_ties(tied: FloatArray, k: int) -> FloatArray:
    """How many people share each value, where ties of fewer than k people count as one person.

    So they do in corrections for ties only, where one person counts as nothing.

    Examples
    --------
    >>> large_ties(np.array([1.0, 9.0, 10.0]), 10)
    array([ 1.,  1., 10.])
    """
    return tied if k == 1 else np.where(tied < k, 1.0, tied)


def _steps(reached: FloatArray, starts: IntArray) -> FloatArray:
    """What running totals grow by; they begin anew at each start."""
    steps = reached.copy()
    steps[1:] -= reached[:-1]
    steps[starts] = reached[starts]
    return steps


def sum_test(centers: Sequence[RankStatistics], alternative: Alternative) -> TestResult:
    """The sum of the centers' U over its standard deviation (equation sumstatistic).

    Examples
    --------
    >>> center = RankStatistics(10, 10, 60.0, 700.0, 0.01)
    >>> sum_test([center, center], "two-sided").p_value
    0.001340...
    """
    note = tied_note([center.variance for center in centers])
    u = sum(center.u for center in centers)
    variance = sum(center.variance for center in centers)
    return normal_test("sum", u, variance, alternative, note)


def weighted_test(centers: Sequence[RankStatistics], alternative: Alternative) -> TestResult:
    """Van Elteren's test: the weighted sum of the centers' Z = U/√V (equation weightedsum).

    The weights are a = n·m/√V.

    These weights have the greatest power when the effect is the same in all centers (the
    paper's appendix); V carries the ties. A center with one value only adds nothing.

    Examples
    --------
    >>> centers = RankStatistics(10, 10, 60.0, 700.0, 0.01), RankStatistics(20, 10, 50.0, 2e3, 0.01)
    >>> weighted_test(centers, "greater").statistic
    2.317...
    """
    note = tied_note([center.variance for center in centers])
    varying = [(c.n_x * c.n_y, c.u, c.variance) for c in centers if c.variance > 0]
    weighted = sum(pairs * u / variance for pairs, u, variance in varying)  # Σ a Z
    squares = sum(pairs**2 / variance for pairs, _, variance in varying)  # Σ a²
    return normal_test("weighted", weighted, squares, alternative, note)


def fisher_test(centers: Sequence[RankStatistics], alternative: Alternative) -> TestResult:
    """Fisher's −2 Σ log p over the centers' own p-values (the paper's "Fisher's method").

    A center with one value only tests nothing: it adds no degrees of freedom.

    Examples
    --------
    >>> center = RankStatistics(10, 10, 60.0, 700.0, 0.01)
    >>> fisher_test([center, center], "two-sided").p_value
    0.00463...
    """
    note = tied_note([center.variance for center in centers])
    logs = [log_normal_p(center.u, center.variance, alternative) for center in centers]
    varying = [log_p for log_p, center in zip(logs, centers, strict=True) if center.variance > 0]
    statistic, _, log_p = fisher_chi2(varying)
    return TestResult("fisher", statistic, log_p, note)


def fisher_chi2(logs: Sequence[float]) -> tuple[float, int, float]:
    """Fisher's statistic of the logarithms of p-values, its degrees of freedom, and log p.

    Examples
    --------
    >>> fisher_chi2([math.log(0.05)])
    (5.99..., 2, -2.99...)
    >>> fisher_chi2([])
    (0.0, 0, 0.0)
    """
    statistic, df = sum((-2 * log_p for log_p in logs), 0.0), 2 * len(logs)
    return statistic, df, log_chi2_survival(statistic, df) if df else 0.0


def table_test(
    counts_x: npt.ArrayLike, counts_y: npt.ArrayLike, alternative: Alternative
) -> TestResult:
    """U of a federated table over its standard deviation (equation fedstatistic).

    Parameters
    ----------
    counts_x, counts_y
        People per bin, from the lowest bin to the highest; need not be whole.

    Examples
    --------
    >>> table_test([12.0, 10.0, 5.5], [10.0, 10.0, 17.5], "greater").p_value
    0.018...
    """
    x, y = check_counts(counts_x, counts_y)
    runs = _Runs.of_table(x, y)
    u, variance = float(runs.u()[0]), float(runs.null_variance()[0])
    note = None if variance else "everyone is in the same bin: nothing to test, p = 1"
    return normal_test("table", u, variance, alternative, note)


def check_counts(counts_x: npt.ArrayLike, counts_y: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """The two rows of a table as arrays, if they can be compared.

    Examples
    --------
    >>> check_counts([10, 12], [0, 11])
    (array([10., 12.]), array([ 0., 11.]))
    """
    x, y = np.asarray(counts_x, dtype=np.float64), np.asarray(counts_y, dtype=np.float64)
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(
            f"counts_x and counts_y must be rows of equal length, got {x.shape} and {y.shape}"
        )
    for name, counts in (("counts_x", x), ("counts_y", y)):
        if np.count_nonzero((counts >= 0) & (counts < np.inf)) < len(counts):
            raise ValueError(f"{name} must be finite and not negative")
        if (people := counts.sum()) < 1:
            raise ValueError(f"{name} must sum to at least 1 person, got {people}")
    return x, y


def log_chi2_survival(statistic: float, df: int) -> float:
    """log P(χ² > statistic) in closed form, finite far beyond the smallest float.

    Examples
    --------
    >>> log_chi2_survival(5.991464547, 2)
    -2.99573227...
    """
    from scipy.special import gammaln, log_ndtr

    if df < 1 or not 0 <= statistic < math.inf:
        raise ValueError(f"df must be at least 1 and statistic finite, got {df}, {statistic}")
    if statistic == 0:
        return 0.0
    half = statistic / 2
    powers = np.arange(df % 2 / 2, df / 2)
    terms = powers * math.log(half) - half - gammaln(powers + 1)
    if df % 2:  # Γ(½, h)/Γ(½) = erfc(√h), then the same recurrence in steps of one
        terms = np.append(terms, math.log(2) + log_ndtr(-math.sqrt(statistic)))
    return min(float(np.logaddexp.reduce(terms)), 0.0)


def normal_test(
    method: str, u: float, variance: float, alternative: Alternative, note: str | None
) -> TestResult:
    """The test of a normal u with mean 0; p = 1 where its variance is 0.

    Examples
    --------
    >>> normal_test("sum", 196.0, 1e4, "two-sided", None).p_value
    0.0499...
    """
    statistic = u / math.sqrt(variance) if variance else 0.0
    return TestResult(method, statistic, log_normal_p(u, variance, alternative), note)


def log_normal_p(u: float, variance: float, alternative: Alternative) -> float:
    """The logarithm of that test's p-value, finite far beyond the smallest float."""
    from scipy.special import log_ndtr

    if alternative not in _ALTERNATIVES:
        raise ValueError(f"alternative must be one of {_ALTERNATIVES}, got {alternative!r}")
    if variance == 0:
        return 0.0
    z = u / math.sqrt(variance)
    if alternative == "two-sided":
        return min(math.log(2) + float(log_ndtr(-abs(z))), 0.0)
    return float(log_ndtr(-z if alternative == "greater" else z))


def tied_note(variances: Sequence[float]) -> str | None:
    """What is unusual: centers in which nobody differs, by the variance of each center's ranks."""
    if not variances:
        raise ValueError("centers must hold at least one center, got none")
    tied = sum(variance == 0 for variance in variances)
    if tied == len(variances):
        return "all values are tied: nothing to test, p = 1"
    return f"all values are tied in {tied} of {len(variances)} centers" if tied else None
