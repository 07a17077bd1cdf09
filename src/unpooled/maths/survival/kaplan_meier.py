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
    drawn: FloatArray  # how far draws of unknown statuses move log S, a row per time

    @property
    def error(self) -> FloatArray:
        """The standard error of log S at each time, that of unknown statuses included."""
        return np.asarray(np.sqrt(self.variance + _variances(self.drawn)))

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
        mean, variance, drawn = self._area(until)
        return mean, math.sqrt(variance + float(_variances(drawn[None])[0]))

    def restricted_mean_minus(self, other: "SurvivalCurve", until: float) -> tuple[float, float]:
        """How much longer the mean time within `until` is than another arm's; and its error."""
        (mean, variance, drawn), (versus, more, against) = (c._area(until) for c in (self, other))
        moved = drawn - against if len(drawn) == len(against) else np.append(drawn, against)
        return mean - versus, math.sqrt(variance + more + float(_variances(moved[None])[0]))

    def _area(self, until: float) -> tuple[float, float, FloatArray]:
        """∫ S up to `until`, its variance, and how far draws of unknown statuses move it."""
        if not until > 0:
            raise ValueError(f"until must be positive, got {until:g}")
        inside = self.times < until
        times = np.concatenate(([0.0], self.times[inside], [until]))
        survival = np.concatenate(([1.0], self.survival[inside]))
        areas = np.diff(times) * survival
        beyond = np.cumsum(areas[::-1])[::-1][1:]  # ∫ S from each event time to `until`
        terms = np.diff(self.variance[inside], prepend=0.0)
        used = beyond > 0  # where nobody is left, the term is 0 · ∞
        drawn = areas[1:] @ self.drawn[inside]
        return float(areas.sum()), float(beyond[used] ** 2 @ terms[used]), drawn


def _variances(drawn: FloatArray) -> FloatArray:
    """Of each row over its draws; 0 without draws."""
    return drawn.var(axis=1, ddof=1) if drawn.shape[1] > 1 else np.zeros(len(drawn))


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
    drawn = _log_draws(arm, times, left)
    error = _relative_error(survival, variance, np.cumsum(events), at_risk, _variances(drawn))
    low, high = _log_log_band(survival, error, float(ndtri((1 + level) / 2)))
    end = float(arm.times[-1])
    return SurvivalCurve(times, survival, low, high, at_risk, variance, end, drawn)


def _log_draws(arm: FollowUp, times: FloatArray, left: FloatArray) -> FloatArray:
    """How far draws of events move log S = Σ log(1 − d/n), to first order: −Σ Δd/(n − d)."""
    if arm.exact or not len(times):
        return np.zeros((len(times), 0))
    step = np.searchsorted(times, arm.times)
    there = step < len(times)
    rest = left[np.minimum(step, len(times) - 1)]
    weight = np.where(there & (rest > 0), 1 / np.where(rest > 0, rest, 1.0), 0.0)
    moved = np.cumsum(-weight[:, None] * arm.drawn, axis=0)
    return np.asarray(moved[np.searchsorted(arm.times, times, "right") - 1])


def _relative_error(
    survival: FloatArray,
    variance: FloatArray,
    events: FloatArray,
    at_risk: FloatArray,
    unknown: FloatArray,
) -> FloatArray:
    """The standard error of log S over −log S, as if at least one whole event had happened.

    That of d events is near 1/√d. A tenth of an event, which only stands for a chance, would give
    a band from 0 to 1, as no whole number of events does.
    """
    from scipy.special import xlog1py

    part = np.minimum(events, 1.0)
    log = -np.log(np.where(survival > 0, survival, 0.5))
    whole = np.maximum(at_risk, 2.0)
    first = 1 / (whole * (whole - 1)) / xlog1py(1, -1 / whole) ** 2  # one event of all at risk
    with np.errstate(invalid="ignore"):
        square = np.where(events < 1 - _NOBODY, first, variance / log**2)
    return np.asarray(np.sqrt(square + unknown * (part / log) ** 2))


def _log_log_band(
    survival: FloatArray, error: FloatArray, quantile: float
) -> tuple[FloatArray, FloatArray]:
    """S^exp(±z·error); where nobody is left it has no width of its own: 0 to the last limit."""
    inside = survival > 0
    log = np.log(survival[inside])
    with np.errstate(over="ignore"):
        factor = np.exp(quantile * error[inside])
    low, high = np.zeros(len(survival)), np.ones(len(survival))
    low[inside], high[inside] = np.exp(log * factor), np.exp(log / factor)
    if not inside.all() and inside.any():
        high[~inside] = high[inside][-1]
    return low, high
