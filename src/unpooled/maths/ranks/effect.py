"""How large a difference is: P(Y > X) + ½P(Y = X), at each center and over centers.

The intervals of the probability are of the score type: a value is inside when the estimate lies
within its own standard error. How that error depends on the value is Hanley and McNeil's
exponential model [1]_ in Newcombe's form [2]_; how large it is, the centers' own variances say,
steadied by as much of the model as `_STEADYING` people carry. Hence an interval stays in [0, 1],
and complete separation, where the estimated variance is 0, has an honest one.

References
----------
.. [1] Hanley, McNeil (1982), Radiology 143, 29-36.
.. [2] Newcombe (2006), Statistics in Medicine 25, 559-573.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from unpooled.maths.arrays import FloatArray
from unpooled.maths.ranks.mann_whitney import RankStatistics, log_chi2_survival

_STEADYING = 20.0  # 10 against 10 people then cover .93-.97, with unequal spreads and ties too

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
    quantile = normal_quantile(level)
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


def normal_quantile(level: float) -> float:
    """How many standard errors a two-sided interval of this level reaches."""
    from scipy.special import ndtri

    if not 0 < level < 1:
        raise ValueError(f"level must lie in (0, 1), got {level}. Hint: for 95 % use 0.95.")
    return float(ndtri((1 + level) / 2))


def center_variances(centers: Sequence[RankStatistics]) -> tuple[FloatArray, FloatArray]:
    """Each center's effect, and its variance if all had the same.

    A center where all values are tied has no such variance and is left out: its effect is ½
    whatever the effect elsewhere.

    That is the model's at the common effect, times the center's own ratio to the model drawn
    towards the common ratio. A plain estimate goes along with the center's own effect, and Q
    would then find differences too often.
    """
    varying = [center for center in centers if center.variance > 0]
    if centers and not varying:
        return np.zeros(0), np.zeros(0)
    effects = _Effects.of(varying)
    average = effects.averaged()
    ratio = effects.ratio(average.ratio(np.ones(1)))
    return effects.effect, ratio * effects.model(average.inside())


def heterogeneity(centers: Sequence[RankStatistics]) -> Heterogeneity:
    """Whether P(Y > X) + ½P(Y = X) differs between centers: Cochran's Q and I².

    Centers where all values are tied say nothing about it and do not count.

    Examples
    --------
    >>> alike, other = [RankStatistics(50, 50, u, 84166.0, 0.0032) for u in (500.0, -900.0)]
    >>> heterogeneity([alike, alike, other])
    Heterogeneity(q=14.6..., df=2, log_p=-7.3..., i2=0.86...)
    """
    effect, variance = center_variances(centers)
    df = len(effect) - 1
    if df < 1:
        return Heterogeneity(0.0, 0, 0.0, 0.0)
    precision = 1 / variance
    mean = precision @ effect / precision.sum()
    q = float(precision @ (effect - mean) ** 2)
    return Heterogeneity(q, df, log_chi2_survival(q, df), max(0.0, 1 - df / q) if q else 0.0)
