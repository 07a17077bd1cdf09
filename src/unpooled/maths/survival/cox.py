"""The hazard ratio of two arms by Cox's partial likelihood, ties as Efron does, by strata.

References
----------
.. [1] Cox (1972), Journal of the Royal Statistical Society B 34, 187-220.
.. [2] Efron (1977), Journal of the American Statistical Association 72, 557-565.
.. [3] Cochran (1954), Biometrics 10, 101-129.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unpooled.maths.arrays import FloatArray
from unpooled.maths.ranks.effect import Heterogeneity, Interval
from unpooled.maths.ranks.mann_whitney import log_chi2_survival
from unpooled.maths.survival.follow_up import FollowUp, event_times, strata

_FAR = 15.0  # a log hazard ratio beyond this has no maximum: all events are on one side
_STEPS = 60


@dataclass(frozen=True, slots=True)
class HazardRatio:
    """The hazard of y over that of x, by its logarithm and the standard error of that."""

    log: float
    error: float

    def interval(self, level: float = 0.95) -> Interval:
        """The ratio with its confidence limits.

        Examples
        --------
        >>> HazardRatio(0.0, 0.1).interval()
        Interval(estimate=1.0, low=0.82..., high=1.21...)
        """
        from scipy.special import ndtri

        margin = float(ndtri((1 + level) / 2)) * self.error
        return Interval(*(math.exp(self.log + sign * margin) for sign in (0, -1, 1)))


def hazard_ratio(x: FollowUp, y: FollowUp, stratified: bool = False) -> HazardRatio | None:
    """Cox's estimate [1]_; None where events or people of one arm never meet the other's.

    Examples
    --------
    >>> x = FollowUp.of(np.array([1.0, 2.0, 4.0, 6.0]), np.array([1, 1, 1, 0]))
    >>> y = FollowUp.of(np.array([3.0, 5.0, 7.0, 8.0]), np.array([1, 1, 1, 1]))
    >>> found = hazard_ratio(x, y)
    >>> round(found.log, 4), round(found.error, 4)
    (-0.9149, 0.9283)
    """
    sides = [part for _, part in strata([x, y])] if stratified else [[x, y]]
    terms = [_terms(a, b) for a, b in sides if a is not None and b is not None]
    if not terms:
        return None
    risk_x, risk_y, weight, events_y = zip(*terms, strict=True)
    return _maximum(
        np.concatenate(risk_x), np.concatenate(risk_y), np.concatenate(weight), sum(events_y)
    )


def _terms(x: FollowUp, y: FollowUp) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """A row per tied event: who is at risk in either arm, by Efron [2]_, and the event's weight.

    Of m tied events the l-th sees the tied ones at risk with weight 1 − l/m.
    """
    times = event_times([x, y])
    own_x, own_y = x.events_at(times), y.events_at(times)
    events = own_x + own_y
    tied = np.ceil(events - 1e-9).astype(np.int64)
    row = np.repeat(np.arange(len(times)), tied)
    step = np.arange(len(row)) - np.repeat(np.cumsum(tied) - tied, tied)
    gone = step / tied[row]
    risk_x = x.at_risk(times)[row] - gone * own_x[row]
    risk_y = y.at_risk(times)[row] - gone * own_y[row]
    return risk_x, risk_y, (events / np.maximum(tied, 1))[row], float(own_y.sum())


def _maximum(
    risk_x: FloatArray, risk_y: FloatArray, weight: FloatArray, events_y: float
) -> HazardRatio | None:
    """Newton's method on β·d_y − Σ w log(r_x + r_y e^β), which is concave."""
    beta = 0.0
    for _ in range(_STEPS):
        share = risk_y / (risk_y + risk_x * math.exp(-beta))
        slope = events_y - float(weight @ share)
        information = float(weight @ (share * (1 - share)))
        if not information > 1e-12:
            return None
        step = slope / information
        beta += max(-1.0, min(1.0, step))
        if abs(beta) > _FAR:
            return None
        if abs(step) < 1e-12:
            break
    return HazardRatio(beta, 1 / math.sqrt(information))


def center_ratios(x: FollowUp, y: FollowUp) -> dict[int, HazardRatio]:
    """Each center's own hazard ratio, where it has one."""
    found = {
        code: hazard_ratio(a, b)
        for code, (a, b) in strata([x, y])
        if a is not None and b is not None
    }
    return {code: ratio for code, ratio in found.items() if ratio is not None}


def ratio_heterogeneity(ratios: Sequence[HazardRatio]) -> Heterogeneity:
    """Whether the log hazard ratio differs between centers: Cochran's Q [3]_ and I².

    Examples
    --------
    >>> ratio_heterogeneity([HazardRatio(0.0, 0.1), HazardRatio(0.4, 0.1)])
    Heterogeneity(q=8.0..., df=1, log_p=-5.3..., i2=0.875)
    """
    if len(ratios) < 2:
        return Heterogeneity(0.0, 0, 0.0, 0.0)
    precision = np.array([1 / ratio.error**2 for ratio in ratios])
    logs = np.array([ratio.log for ratio in ratios])
    q = float(precision @ (logs - precision @ logs / precision.sum()) ** 2)
    df = len(ratios) - 1
    return Heterogeneity(q, df, log_chi2_survival(q, df), max(0.0, 1 - df / q) if q else 0.0)
