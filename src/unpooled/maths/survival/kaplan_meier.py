"""Kaplan-Meier curves with log-log bands, their quantiles and restricted means.

References
----------
.. [1] Kaplan, Meier (1958), Journal of the American Statistical Association 53, 457-481.
.. [2] Kalbfleisch, Prentice (1980), The Statistical Analysis of Failure Time Data, section 1.3.
.. [3] Brookmeyer, Crowley (1982), Biometrics 38, 29-41.
.. [4] Royston, Parmar (2013), BMC Medical Research Methodology 13, 152.
"""

import math
from dataclasses import dataclass

import numpy as np

from unpooled.maths.arrays import FloatArray
from unpooled.maths.survival.follow_up import FollowUp, event_times

_NOBODY = 1e-9  # people


@dataclass(frozen=True, slots=True)
class SurvivalCurve:
    """S(t) with its band; it steps at `times`, is 1 before the first and ends at `end`."""

    times: FloatArray
    survival: FloatArray
    low: FloatArray
    high: FloatArray
    at_risk: FloatArray
    variance: FloatArray  # Greenwood's sum Σ d/(n(n−d)) up to each time
    end: float  # the last time that anybody is followed up

    def at(self, times: FloatArray) -> FloatArray:
        """S at these times.

        Examples
        --------
        >>> curve = kaplan_meier(FollowUp.of(np.array([1.0, 2.0, 3.0]), np.array([1, 0, 1])))
        >>> curve.at(np.array([0.5, 1.0, 3.0])).round(4)
        array([1.    , 0.6667, 0.    ])
        """
        return _step(self.times, self.survival, times)

    def band_at(self, times: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The band's limits at these times."""
        return _step(self.times, self.low, times), _step(self.times, self.high, times)

    def quantile(self, p: float) -> tuple[float | None, float | None, float | None]:
        """The time that a share p does not outlive, with its interval [3]_; None: not reached."""
        if not 0 < p < 1:
            raise ValueError(f"p must lie in (0, 1), got {p:g}. Hint: for the median use 0.5.")
        return (
            self._reaches(self.survival, 1 - p),
            self._reaches(self.low, 1 - p),
            self._reaches(self.high, 1 - p),
        )

    def _reaches(self, curve: FloatArray, level: float) -> float | None:
        below = np.flatnonzero(curve <= level + 1e-12)
        return float(self.times[below[0]]) if len(below) else None

    def restricted_mean(self, until: float) -> tuple[float, float]:
        """The mean time within `until`, and its standard error [4]_."""
        if not until > 0:
            raise ValueError(f"until must be positive, got {until:g}")
        inside = self.times < until
        times = np.concatenate(([0.0], self.times[inside], [until]))
        survival = np.concatenate(([1.0], self.survival[inside]))
        areas = np.diff(times) * survival
        beyond = np.cumsum(areas[::-1])[::-1][1:]  # ∫ S from each event time to `until`
        terms = np.diff(self.variance[inside], prepend=0.0)
        used = beyond > 0  # where nobody is left, the term is 0 · ∞
        return float(areas.sum()), math.sqrt(float(beyond[used] ** 2 @ terms[used]))


def _step(times: FloatArray, values: FloatArray, wanted: FloatArray) -> FloatArray:
    return np.concatenate(([1.0], values))[np.searchsorted(times, wanted, "right")]


def kaplan_meier(arm: FollowUp, level: float = 0.95) -> SurvivalCurve:
    """The curve [1]_ of one arm; the band is that of log(−log S) [2]_.

    Examples
    --------
    >>> curve = kaplan_meier(FollowUp.of(np.array([1.0, 2.0, 3.0, 4.0]), np.array([1, 1, 0, 1])))
    >>> curve.survival, curve.low.round(3), curve.quantile(0.5)
    (array([0.75, 0.5 , 0.  ]), array([0.128, 0.058, 0.   ]), (2.0, 1.0, None))
    """
    from scipy.special import ndtri

    times = event_times([arm])
    events, at_risk = arm.events_at(times), arm.at_risk(times)
    left = at_risk - events
    left[left < _NOBODY] = 0.0
    survival = np.asarray(np.cumprod(left / at_risk), dtype=np.float64)
    with np.errstate(divide="ignore"):
        variance = np.asarray(np.cumsum(events / (at_risk * left)), dtype=np.float64)
    low, high = _log_log_band(survival, variance, float(ndtri((1 + level) / 2)))
    return SurvivalCurve(times, survival, low, high, at_risk, variance, float(arm.times[-1]))


def _log_log_band(
    survival: FloatArray, variance: FloatArray, quantile: float
) -> tuple[FloatArray, FloatArray]:
    """S^exp(±z·se/log S); where nobody is left it has no width of its own: 0 to the last limit."""
    inside = survival > 0
    log = np.log(survival[inside])
    with np.errstate(over="ignore"):
        factor = np.exp(quantile * np.sqrt(variance[inside]) / -log)
    low, high = np.zeros(len(survival)), np.ones(len(survival))
    low[inside], high[inside] = np.exp(log * factor), np.exp(log / factor)
    if not inside.all() and inside.any():
        high[~inside] = high[inside][-1]
    return low, high
