"""How large a difference is: P(Y > X) + ½P(Y = X) over centers, and the shift from a table.

The intervals of the probability are of the score type: a value is inside when the estimate lies
within its own standard error. How that error depends on the value is Hanley and McNeil's
exponential model [1]_ in Newcombe's form [2]_; how large it is, the centers' own variances say,
steadied by as much of the model as `_STEADYING` people carry. Hence an interval stays in [0, 1],
and complete separation, where the estimated variance is 0, has an honest one.

References
----------
.. [1] Hanley, McNeil (1982), Radiology 143, 29-36.
.. [2] Newcombe (2006), Statistics in Medicine 25, 559-573.
.. [3] Hodges, Lehmann (1963), Annals of Mathematical Statistics 34, 598-611.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from unpooled.maths.arrays import FloatArray
from unpooled.maths.mann_whitney import RankStatistics, check_counts, log_chi2_survival

_STEADYING = 20.0  # 10 against 10 people then cover .93-.97, with unequal spreads and ties too
_TAILS = (0.5, 1.0, 2.0)  # scales of the open outer bins that the shift's interval allows for

_Number = TypeVar("_Number", float, FloatArray)


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and its confidence limits."""

    estimate: float
    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low <= self.estimate <= self.high:
            raise ValueError(f"low, estimate, high must ascend, got {self}")


@dataclass(frozen=True, slots=True)
class Heterogeneity:
    """Cochran's Q over centers, the logarithm of its p-value, and I² as a share in [0, 1]."""

    q: float
    df: int
    log_p: float
    i2: float

    @property
    def p_value(self) -> float:
        """The p-value; 0 where it is smaller than any float."""
        return math.exp(self.log_p)


@dataclass(frozen=True, slots=True)
class _Effects:
    """One entry per center; `single` and `shared` are the constants of the model's variance."""

    people: FloatArray
    effect: FloatArray
    variance: FloatArray
    single: FloatArray
    shared: FloatArray
    weight: FloatArray  # n·m/(N+1), van Elteren's: it depends on the design, not on the estimates

    @classmethod
    def of(cls, centers: Sequence[RankStatistics]) -> "_Effects":
        if not centers:
            raise ValueError("centers must hold at least one center, got none")
        n = np.array([center.n_x for center in centers], dtype=np.float64)
        m = np.array([center.n_y for center in centers], dtype=np.float64)
        return cls(
            people=n + m,
            effect=np.array([center.effect for center in centers]),
            variance=np.array([center.effect_variance for center in centers]),
            single=1 / (n * m),
            shared=((n + m) / 2 - 1) / (n * m),
            weight=n * m / (n + m + 1),
        )

    def averaged(self) -> "_Effects":
        """The weighted mean of the centers, as if they were one."""
        share = self.weight / self.weight.sum()
        squares = share**2
        return _Effects(
            people=self.people.sum(keepdims=True),
            effect=np.clip(np.array([share @ self.effect]), 0.0, 1.0),
            variance=np.array([squares @ self.variance]),
            single=np.array([squares @ self.single]),
            shared=np.array([squares @ self.shared]),
            weight=self.weight.sum(keepdims=True),
        )

    def inside(self) -> FloatArray:
        """The effects drawn away from 0 and 1, as if one more pair lay on either side."""
        return (self.effect * self.people + 1) / (self.people + 2)

    def ratio(self, prior: FloatArray) -> FloatArray:
        """The estimated variances over the model's, drawn towards `prior`."""
        steadying = _STEADYING / self.people * self.model(self.inside())
        return (self.variance + prior * steadying) / (self.model(self.effect) + steadying)

    def model(self, effect: FloatArray) -> FloatArray:
        return _model_variance(effect, self.single, self.shared)


def _model_variance(effect: _Number, single: _Number, shared: _Number) -> _Number:
    """The effect's variance if both groups were exponential (Hanley, McNeil; Newcombe)."""
    agreement = (1 - effect) / (2 - effect) + effect / (1 + effect)
    return effect * (1 - effect) * (single + shared * agreement)


def center_effect(stats: RankStatistics, level: float = 0.95) -> Interval:
    """P(Y > X) + ½P(Y = X) in one center, with its confidence interval.

    Examples
    --------
    >>> center_effect(RankStatistics(10, 10, 100.0, 700.0, 0.0))  # complete separation
    Interval(estimate=1.0, low=0.80..., high=1.0)
    """
    return overall_effect((stats,), level)


def overall_effect(centers: Sequence[RankStatistics], level: float = 0.95) -> Interval:
    """P(Y > X) + ½P(Y = X) within centers, averaged by design weights, with its interval.

    Examples
    --------
    >>> overall_effect([RankStatistics(50, 50, 500.0, 84166.0, 0.0032)] * 4)
    Interval(estimate=0.6, low=0.54..., high=0.65...)
    """
    quantile = _normal_quantile(level)
    average = _Effects.of(centers).averaged()
    estimate, ratio = float(average.effect[0]), float(average.ratio(np.ones(1))[0])
    single, shared = float(average.single[0]), float(average.shared[0])

    def inside(value: float) -> bool:
        variance = ratio * _model_variance(value, single, shared)
        return abs(estimate - value) <= quantile * math.sqrt(variance)

    return Interval(estimate, _limit(inside, estimate, 0.0), _limit(inside, estimate, 1.0))


def _limit(inside: Callable[[float], bool], start: float, end: float) -> float:
    """How far from `start`, which is inside, towards `end` one stays inside."""
    for _ in range(60):
        middle = (start + end) / 2
        start, end = (middle, end) if inside(middle) else (start, middle)
    return start


def _normal_quantile(level: float) -> float:
    from scipy.special import ndtri

    if not 0 < level < 1:
        raise ValueError(f"level must lie in (0, 1), got {level}. Hint: for 95 % use 0.95.")
    return float(ndtri((1 + level) / 2))


def heterogeneity(centers: Sequence[RankStatistics]) -> Heterogeneity:
    """Whether P(Y > X) + ½P(Y = X) differs between centers: Cochran's Q and I².

    A center's variance is the model's at the common effect, times its own ratio to the model
    drawn towards the common ratio. A plain estimate goes along with the center's own effect, and
    Q would then find differences too often.

    Examples
    --------
    >>> alike, other = [RankStatistics(50, 50, u, 84166.0, 0.0032) for u in (500.0, -900.0)]
    >>> heterogeneity([alike, alike, other])
    Heterogeneity(q=14.6..., df=2, log_p=-7.3..., i2=0.86...)
    """
    effects = _Effects.of(centers)
    df = len(centers) - 1
    if df == 0:
        return Heterogeneity(0.0, 0, 0.0, 0.0)
    average = effects.averaged()
    ratio = effects.ratio(average.ratio(np.ones(1)))
    precision = 1 / (ratio * effects.model(average.inside()))
    mean = precision @ effects.effect / precision.sum()
    q = float(precision @ (effects.effect - mean) ** 2)
    return Heterogeneity(q, df, log_chi2_survival(q, df), max(0.0, 1 - df / q) if q else 0.0)


def shift(
    edges: npt.ArrayLike, counts_x: npt.ArrayLike, counts_y: npt.ArrayLike, level: float = 0.95
) -> Interval:
    """The shift of Y against X from a federated table (Hodges, Lehmann [3]_).

    The shift s balances U(Y − s, X), people being spread evenly over their bins; its interval
    holds the shifts that the Mann-Whitney test does not reject. An outer bin falls off like an
    exponential tail that goes on from its neighbour, up to its limit if it has one; the interval
    allows for tails of half to twice that scale.

    Parameters
    ----------
    edges
        Ascending, one more than bins, at least 3 of them interior; the outer ones may be infinite.
    counts_x, counts_y
        People per bin; need not be whole.

    Examples
    --------
    >>> shift([0, 1, 2, 3, 4, 5, 6], [10, 20, 40, 20, 10, 0], [0, 10, 20, 40, 20, 10])
    Interval(estimate=0.99..., low=0.66..., high=1.31...)
    """
    quantile = _normal_quantile(level)
    limits, x, y = _check_table(edges, counts_x, counts_y)
    n, m = float(x.sum()), float(y.sum())
    margin = quantile * math.sqrt((n + m + 1) / (12 * n * m))
    targets = 0.5 + np.array([margin, 1e-12, -1e-12, -margin])
    found = [_balance(*_bound(limits, x, y, scale), targets) for scale in _TAILS]
    estimate = float(found[1][1:3].mean())
    if margin >= 0.5:  # too few people for any shift to be rejected
        return Interval(estimate, -math.inf, math.inf)
    low, high = min(float(row[0]) for row in found), max(float(row[3]) for row in found)
    return Interval(estimate, low, high)


def _check_table(
    edges: npt.ArrayLike, counts_x: npt.ArrayLike, counts_y: npt.ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    limits = np.asarray(edges, dtype=np.float64)
    x, y = check_counts(counts_x, counts_y)
    if limits.shape != (len(x) + 1,) or not np.all(limits[1:] > limits[:-1]):
        raise ValueError(f"edges must ascend strictly, one more than the {len(x)} bins")
    if len(limits) < 5:
        raise ValueError(f"edges must have at least 3 interior ones, got {len(limits) - 2}")
    for name, counts in (("counts_x", x), ("counts_y", y)):
        share = float(max(counts[[0, -1]][np.isinf(limits[[0, -1]])], default=0.0) / counts.sum())
        if share > 0.5:
            raise ValueError(
                f"{name} must have its median in a bounded bin, got {share:.0%} outside"
            )
    return limits, x, y


def _bound(
    limits: FloatArray, x: FloatArray, y: FloatArray, scale: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The table with either outer bin cut into bounded ones that hold equal shares of its tail."""
    people, widths = x + y, np.diff(limits)
    left = _tail(widths[1:-1], people[1:-1], people[0], widths[0], scale)
    right = _tail(widths[-2:0:-1], people[-2:0:-1], people[-1], widths[-1], scale)
    edges = np.concatenate((limits[1] - left[::-1], limits[2:-2], limits[-2] + right))
    parts = np.ones(len(people), dtype=np.int64)
    parts[[0, -1]] = len(left) - 1
    return edges, np.repeat(x / parts, parts), np.repeat(y / parts, parts)


def _tail(
    widths: FloatArray, people: FloatArray, beyond: float, room: float, scale: float
) -> FloatArray:
    """Where an outer bin is cut, as distances from its inner edge; neighbours come nearest first.

    Of an exponential tail and its neighbours of width w, exp(−w/scale) lies in the tail; as many
    neighbours are taken as hold a tenth of the people beyond them.
    """
    reached = np.cumsum(people)
    near = min(int(np.searchsorted(reached, beyond / 10)), len(people) - 1)
    total = float(reached[near] + beyond)
    share = min(max(beyond / total, 1e-9), 1 / 1.1) if total else 1 / 1.1
    scale *= float(widths[: near + 1].sum()) / -math.log(share)
    reach = min(room, 5 * scale)
    return -scale * np.log1p(np.linspace(0, 1, 9) * math.expm1(-reach / scale))


def _balance(edges: FloatArray, x: FloatArray, y: FloatArray, targets: FloatArray) -> FloatArray:
    """The shifts s at which P(Y − s > X) falls below each target."""
    reached = np.concatenate(([0.0], np.cumsum(x))) / x.sum()
    widths = np.diff(edges)
    area = np.concatenate(([0.0], np.cumsum(widths * (reached[1:] + reached[:-1]) / 2)))
    span = float(edges[-1] - edges[0])
    wide = widths > 1e-6 * span  # a narrower bin is a point: its difference of areas would cancel
    middles, shares = (edges[1:] + edges[:-1]) / 2, y / y.sum()

    def area_below(values: FloatArray) -> FloatArray:
        at = np.maximum(np.searchsorted(edges, values, side="right") - 1, 0)
        heights: FloatArray = (reached[at] + np.interp(values, edges, reached)) / 2
        return area[at] + (values - edges[at]) * heights

    low, high = np.full(len(targets), -span), np.full(len(targets), span)
    for _ in range(50):
        tried = (low + high) / 2
        mean = np.interp(middles - tried[:, None], edges, reached)
        np.divide(np.diff(area_below(edges - tried[:, None])), widths, out=mean, where=wide)
        above = mean @ shares > targets
        low, high = np.where(above, tried, low), np.where(above, high, tried)
    middle: FloatArray = (low + high) / 2
    return middle
