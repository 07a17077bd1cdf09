"""The log-rank test of any number of arms, pooled or stratified by center.

References
----------
.. [1] Mantel (1966), Cancer Chemotherapy Reports 50, 163-170.
.. [2] Peto, Peto (1972), Journal of the Royal Statistical Society A 135, 185-207.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unpooled.maths.arrays import FloatArray, read_only
from unpooled.maths.ranks.mann_whitney import log_chi2_survival
from unpooled.maths.survival.follow_up import (
    FollowUp,
    draw_covariance,
    draw_sums,
    event_times,
    strata,
)


@dataclass(frozen=True, slots=True)
class LogRank:
    """χ², and events observed and expected per arm. `p_value` is 1 where nothing can differ."""

    statistic: float
    df: int
    log_p: float
    observed: FloatArray
    expected: FloatArray
    variance: FloatArray  # of observed − expected, a row per arm

    def __post_init__(self) -> None:
        for name in ("observed", "expected", "variance"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def p_value(self) -> float:
        """The p-value; 0 where it is smaller than any float."""
        return math.exp(self.log_p)

    @property
    def z(self) -> float:
        """Of two arms: positive where the second has more events than expected."""
        spread = math.sqrt(float(self.variance[1, 1]))
        return float(self.observed[1] - self.expected[1]) / spread if spread else 0.0


def log_rank(arms: Sequence[FollowUp], stratified: bool = False) -> LogRank:
    """Do the arms differ? Stratified, each arm is compared within centers alone.

    Examples
    --------
    >>> x = FollowUp.of(np.array([1.0, 2.0, 4.0, 6.0]), np.array([1, 1, 1, 0]))
    >>> y = FollowUp.of(np.array([3.0, 5.0, 7.0, 8.0]), np.array([1, 1, 1, 1]))
    >>> found = log_rank([x, y])
    >>> round(found.statistic, 4), found.df, round(found.p_value, 4)
    (1.0344, 1, 0.3091)
    """
    if len(arms) < 2:
        raise ValueError(f"arms must be two or more, got {len(arms)}")
    sides = [part for _, part in strata(arms)] if stratified else [list(arms)]
    parts = [_observed_expected(side) for side in sides]
    observed, expected, variance = (sum(part) for part in zip(*parts, strict=True))
    unknown = draw_covariance(np.asarray(sum(_draws(side) for side in sides)))
    return _test(np.asarray(observed), np.asarray(expected), np.asarray(variance) + unknown)


def _draws(arms: Sequence[FollowUp | None]) -> FloatArray:
    """How far draws of observed − expected differ, a row per arm: what unknown statuses add."""
    there = [arm for arm in arms if arm is not None]
    if all(arm.exact for arm in there):
        return np.zeros((len(arms), 1))
    is_arm = [np.array([other is arm for other in arms], dtype=np.float64) for arm in there]
    weights = [arm_is - _shares(arms, arm.times) for arm_is, arm in zip(is_arm, there, strict=True)]
    return draw_sums(there, weights)


def _shares(arms: Sequence[FollowUp | None], times: FloatArray) -> FloatArray:
    """Each arm's share of the people at risk, a row per time."""
    nobody = np.zeros(len(times))
    at_risk = np.array([nobody if arm is None else arm.at_risk(times) for arm in arms])
    return np.asarray((at_risk / at_risk.sum(axis=0)).T)


def _observed_expected(
    arms: Sequence[FollowUp | None],
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Observed, expected and the hypergeometric variance within one stratum."""
    there = [arm for arm in arms if arm is not None]
    times = event_times(there)
    nothing = np.zeros(len(times))
    at_risk = np.array([nothing if arm is None else arm.at_risk(times) for arm in arms])
    observed = np.array([nothing if arm is None else arm.events_at(times) for arm in arms])
    events, people = observed.sum(axis=0), at_risk.sum(axis=0)
    share = at_risk / people
    rest = np.maximum(people - events, 0.0) / np.maximum(people - 1, 1e-9)
    spread = events * np.where(people > 1, rest, 0.0)
    variance = np.diag(share @ spread) - (share * spread) @ share.T
    return observed.sum(axis=1), share @ events, variance


def _test(observed: FloatArray, expected: FloatArray, variance: FloatArray) -> LogRank:
    """χ² of observed − expected; arms that never meet another do not count."""
    values, vectors = np.linalg.eigh(variance)
    real = values > 1e-9 * max(float(values.max()), 1e-300)
    df = int(real.sum())
    along = vectors[:, real].T @ (observed - expected)
    statistic = float(np.sum(along**2 / values[real]))
    log_p = log_chi2_survival(statistic, df) if df else 0.0
    return LogRank(statistic, df, log_p, observed, expected, variance)
