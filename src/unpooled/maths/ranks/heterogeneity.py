"""An effect that differs between centers: the random-effects mean and its interval.

Centers' effects are taken as θ_l = μ + u_l, with variance τ² between centers. τ² is Paule and
Mandel's [1]_: the value at which Cochran's Q, with weights 1/(v_l + τ²), is its expectation L − 1.
The interval is Hartung and Knapp's [2]_, with Student's t on L − 1 degrees of freedom; their scale
factor is kept at 1 or more, as Röver, Knapp and Friede [3]_ advise for centers of unequal size.

References
----------
.. [1] Paule, Mandel (1982), Journal of Research of the National Bureau of Standards 87, 377-385.
.. [2] Hartung, Knapp (2001), Statistics in Medicine 20, 3875-3889.
.. [3] Röver, Knapp, Friede (2015), BMC Medical Research Methodology 15, 99.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unpooled.maths.arrays import FloatArray
from unpooled.maths.ranks.effect import Interval, center_variances
from unpooled.maths.ranks.mann_whitney import RankStatistics


@dataclass(frozen=True, slots=True)
class RandomEffects:
    """The mean of centers' effects with its interval, and their standard deviation τ."""

    mean: Interval
    tau: float


def random_effects(
    effects: FloatArray, variances: FloatArray, level: float = 0.95
) -> RandomEffects | None:
    """The random-effects mean; None with a single center, where nothing tells how they differ.

    Examples
    --------
    >>> random_effects(np.array([0.5, 0.6, 0.8]), np.array([0.002, 0.002, 0.002])).mean
    Interval(estimate=0.633..., low=0.25..., high=1.01...)
    """
    from scipy.special import stdtrit

    if not 0 < level < 1:
        raise ValueError(f"level must lie in (0, 1), got {level}. Hint: for 95 % use 0.95.")
    if len(effects) != len(variances) or np.min(variances, initial=1.0) <= 0:
        raise ValueError("every effect needs a variance, and variances must be positive")
    df = len(effects) - 1
    if df < 1:
        return None
    between = _between(effects, variances)
    weights = 1 / (variances + between)
    mean = float(weights @ effects / weights.sum())
    factor = max(float(weights @ (effects - mean) ** 2) / df, 1.0)
    margin = float(stdtrit(df, (1 + level) / 2)) * math.sqrt(factor / float(weights.sum()))
    return RandomEffects(Interval(mean, mean - margin, mean + margin), math.sqrt(between))


def random_effect(centers: Sequence[RankStatistics], level: float = 0.95) -> RandomEffects | None:
    """The random-effects mean of P(Y > X) + ½P(Y = X), with the variances of Cochran's Q.

    Examples
    --------
    >>> alike, other = [RankStatistics(50, 50, u, 84166.0, 0.0032) for u in (500.0, -900.0)]
    >>> random_effect([alike, alike, other]).mean
    Interval(estimate=0.507..., low=0.106..., high=0.908...)
    """
    estimated = random_effects(*center_variances(centers), level)
    if estimated is None:
        return None
    ends = min(max(estimated.mean.low, 0.0), 1.0), min(max(estimated.mean.high, 0.0), 1.0)
    return RandomEffects(Interval(estimated.mean.estimate, *ends), estimated.tau)


def _between(effects: FloatArray, variances: FloatArray) -> float:
    """Paule and Mandel's τ²: Q falls with it, from Q(0) towards 0."""

    def excess(between: float) -> float:
        weights = 1 / (variances + between)
        mean = weights @ effects / weights.sum()
        return float(weights @ (effects - mean) ** 2) - (len(effects) - 1)

    if excess(0.0) <= 0:
        return 0.0
    high = float(np.ptp(effects)) ** 2 * len(effects)  # Q < Σ(θ − mean)²/τ² is below L − 1 there
    low = 0.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return (low + high) / 2
