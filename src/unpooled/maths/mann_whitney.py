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

Alternative = Literal["two-sided", "greater", "less"]
"""What is asked: `greater` means that Y is larger than X."""


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
        for name, value in (
            ("variance", self.variance),
            ("effect_variance", self.effect_variance),
        ):
            if not 0 <= value < math.inf:
                raise ValueError(f"{name} must be finite and not negative, got {value}")

    @property
    def effect(self) -> float:
        """P(Y > X) + ½P(Y = X) in the center's own people."""
        return (self.u / (self.n_x * self.n_y) + 1) / 2


@dataclass(frozen=True, slots=True)
class TestResult:
    """A test statistic and the natural logarithm of its p-value; `note` says what is unusual."""

    __test__: ClassVar[bool] = False  # not a test case, whatever its name

    method: str
    statistic: float
    log_p: float
    note: str | None

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


def rank_statistics(x: FloatArray, y: FloatArray) -> RankStatistics:
    """U of one center, its null variance and the variance of its effect.

    The variance of the effect is DeLong's [1]_: the spread of the placements of either group in
    the other. Where a group is a single person it is bounded by that of a yes-or-no value.

    Parameters
    ----------
    x, y
        The groups' values, ascending.

    References
    ----------
    .. [1] DeLong, DeLong, Clarke-Pearson (1988), Biometrics 44, 837-845.

    Examples
    --------
    >>> rank_statistics(np.array([1.0, 2.0, 4.0]), np.array([2.0, 3.0, 5.0, 6.0]))
    RankStatistics(n_x=3, n_y=4, u=7.0, variance=31.428..., effect_variance=0.0381...)
    """
    for name, values in (("x", x), ("y", y)):
        if len(values) == 0:
            raise ValueError(f"{name} must hold at least one value, got none")
        if not (np.all(values[1:] >= values[:-1]) and np.isfinite(values[[0, -1]]).all()):
            raise ValueError(f"{name} must be finite and ascending")
    counts_x, counts_y = _count_distinct(x, y)
    placed_x = (np.cumsum(counts_y) - counts_y / 2) / len(y)
    placed_y = (np.cumsum(counts_x) - counts_x / 2) / len(x)
    return RankStatistics(
        n_x=len(x),
        n_y=len(y),
        u=float(_u(counts_x, counts_y)),
        variance=_null_variance(counts_x, counts_y),
        effect_variance=_mean_variance(placed_x, counts_x) + _mean_variance(placed_y, counts_y),
    )


def _count_distinct(x: FloatArray, y: FloatArray) -> tuple[IntArray, IntArray]:
    """How often each distinct value occurs in either sorted group."""
    pooled = np.concatenate((x, y))
    pooled.sort(kind="stable")  # merges the two runs in linear time
    ends = np.flatnonzero(np.append(pooled[1:] != pooled[:-1], True))
    counts_x = np.bincount(np.searchsorted(pooled[ends], x), minlength=len(ends))
    return counts_x, np.diff(ends, prepend=-1) - counts_x


def _u(counts_x: npt.NDArray[np.number], counts_y: npt.NDArray[np.number]) -> float:
    """Equation fedstatistic in O(B): whole counts give a whole U."""
    reached = np.cumsum(counts_x)
    below_minus_above = 2 * reached - counts_x - reached[-1]
    return float(np.sum(counts_y * below_minus_above))


def _null_variance(counts_x: npt.NDArray[np.number], counts_y: npt.NDArray[np.number]) -> float:
    """V of the paper's section "The Mann-Whitney U test", with its correction for ties."""
    tied = (counts_x + counts_y).astype(np.float64)
    if np.count_nonzero(tied) == 1:
        return 0.0
    n, m = float(counts_x.sum()), float(counts_y.sum())
    total = n + m
    ties = float(np.sum(tied * (tied**2 - 1))) / (total * (total**2 - 1))
    return max(n * m * (total + 1) / 3 * (1 - ties), 0.0)


def _mean_variance(placed: FloatArray, counts: IntArray) -> float:
    """The variance of the mean of placements that occur `counts` times."""
    people = int(counts.sum())
    mean = float(placed @ counts) / people
    if people == 1:
        return mean * (1 - mean)
    return float((placed - mean) ** 2 @ counts) / (people - 1) / people


def sum_test(centers: Sequence[RankStatistics], alternative: Alternative) -> TestResult:
    """The sum of the centers' U over its standard deviation (equation sumstatistic).

    Examples
    --------
    >>> center = RankStatistics(10, 10, 60.0, 700.0, 0.01)
    >>> sum_test([center, center], "two-sided").p_value
    0.001340...
    """
    note = _note(centers)
    u = sum(center.u for center in centers)
    variance = sum(center.variance for center in centers)
    return _result("sum", u, variance, alternative, note)


def weighted_test(centers: Sequence[RankStatistics], alternative: Alternative) -> TestResult:
    """The weighted sum of the centers' Z = U/√V with a = n·m/√V (equation weightedsum).

    These weights have the greatest power when the effect is the same in all centers (the
    paper's appendix); V carries the ties. A center with one value only adds nothing.

    Examples
    --------
    >>> centers = RankStatistics(10, 10, 60.0, 700.0, 0.01), RankStatistics(20, 10, 50.0, 2e3, 0.01)
    >>> weighted_test(centers, "greater").statistic
    2.317...
    """
    note = _note(centers)
    varying = [(c.n_x * c.n_y, c.u, c.variance) for c in centers if c.variance > 0]
    weighted = sum(pairs * u / variance for pairs, u, variance in varying)  # Σ a Z
    squares = sum(pairs**2 / variance for pairs, _, variance in varying)  # Σ a²
    return _result("weighted", weighted, squares, alternative, note)


def fisher_test(centers: Sequence[RankStatistics], alternative: Alternative) -> TestResult:
    """Fisher's −2 Σ log p over the centers' own p-values (the paper's "Fisher's method").

    A center with one value only has p = 1.

    Examples
    --------
    >>> center = RankStatistics(10, 10, 60.0, 700.0, 0.01)
    >>> fisher_test([center, center], "two-sided").p_value
    0.00463...
    """
    note = _note(centers)
    statistic = -2 * sum(_log_p(center.u, center.variance, alternative) for center in centers)
    log_p = log_chi2_survival(statistic, 2 * len(centers))
    return TestResult("fisher", statistic, log_p, note)


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
    variance = _null_variance(x, y)
    note = None if variance else "everyone is in the same bin: nothing to test, p = 1"
    return _result("table", _u(x, y), variance, alternative, note)


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
        if not (np.all(np.isfinite(counts)) and np.all(counts >= 0)):
            raise ValueError(f"{name} must be finite and not negative")
        if counts.sum() < 1:
            raise ValueError(f"{name} must sum to at least 1 person, got {counts.sum()}")
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


def _result(
    method: str, u: float, variance: float, alternative: Alternative, note: str | None
) -> TestResult:
    statistic = u / math.sqrt(variance) if variance else 0.0
    return TestResult(method, statistic, _log_p(u, variance, alternative), note)


def _log_p(u: float, variance: float, alternative: Alternative) -> float:
    from scipy.special import log_ndtr

    if alternative not in get_args(Alternative):
        raise ValueError(f"alternative must be one of {get_args(Alternative)}, got {alternative!r}")
    if variance == 0:
        return 0.0
    z = u / math.sqrt(variance)
    if alternative == "two-sided":
        return min(math.log(2) + float(log_ndtr(-abs(z))), 0.0)
    return float(log_ndtr(-z if alternative == "greater" else z))


def _note(centers: Sequence[RankStatistics]) -> str | None:
    if not centers:
        raise ValueError("centers must hold at least one center, got none")
    tied = sum(center.variance == 0 for center in centers)
    if tied == len(centers):
        return "all values are tied: nothing to test, p = 1"
    return f"all values are tied in {tied} of {len(centers)} centers" if tied else None
