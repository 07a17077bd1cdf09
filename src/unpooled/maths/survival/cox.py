"""Hazard ratios by Cox's partial likelihood: of two arms, or of groups with a design; by strata.

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

from unpooled.maths.arrays import BoolArray, FloatArray
from unpooled.maths.ranks.effect import Heterogeneity, Interval
from unpooled.maths.ranks.mann_whitney import log_chi2_survival
from unpooled.maths.survival.follow_up import (
    FollowUp,
    draw_covariance,
    draw_sums,
    event_times,
    strata,
)

_FAR = 15.0  # a log hazard ratio beyond this has no maximum: all events are on one side
_STEPS = 100


@dataclass(frozen=True, slots=True)
class HazardRatio:
    """A ratio of hazards, by its logarithm and the standard error of that."""

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
    return proportional_hazards([x, y], np.array([[0.0], [1.0]]), stratified)[0]


def proportional_hazards(
    groups: Sequence[FollowUp], design: FloatArray, stratified: bool = False
) -> list[HazardRatio | None]:
    """Cox's model of groups of people who are alike; `design` has a row per group [1]_.

    A hazard ratio per column; None where the data do not bound it, or other columns say the same.
    Ties are Efron's. Statuses that are estimates widen the errors: see `statuses`.

    Examples
    --------
    >>> arm = FollowUp.of(np.arange(1.0, 9.0), np.ones(8))
    >>> slow = FollowUp.of(2 * np.arange(1.0, 9.0), np.ones(8))
    >>> [round(ratio.log, 2) for ratio in proportional_hazards([arm, slow], np.eye(2)[:, 1:])]
    [-1.38]
    """
    sides = [part for _, part in strata(groups)] if stratified else [list(groups)]
    terms = [_terms(side) for side in sides if sum(arm is not None for arm in side) > 1]
    if not terms:
        return [None] * design.shape[1]
    risk, weight, events = (np.concatenate(part) for part in zip(*terms, strict=True))
    usable = _independent(risk, design)
    fitted = _maximum(risk, weight, events.sum(axis=0), design[:, usable])
    if fitted is None:
        return [None] * design.shape[1]
    beta, covariance = fitted
    moved = np.asarray(sum(_score_draws(side, design[:, usable], beta) for side in sides))
    covariance = covariance + covariance @ draw_covariance(moved) @ covariance
    ratios = iter(zip(beta, np.sqrt(np.diag(covariance)), strict=True))
    results = [HazardRatio(*map(float, next(ratios))) if use else None for use in usable]
    return [None if ratio is None or abs(ratio.log) > _FAR else ratio for ratio in results]


def _terms(arms: Sequence[FollowUp | None]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A row per tied event: who is at risk in each group, by Efron [2]_, and the event's weight.

    Of m tied events the l-th sees the tied ones at risk with weight 1 − l/m. Also each group's
    events, a row.
    """
    times = event_times([arm for arm in arms if arm is not None])
    nobody = np.zeros(len(times))
    had = np.column_stack([nobody if arm is None else arm.events_at(times) for arm in arms])
    at_risk = np.column_stack([nobody if arm is None else arm.at_risk(times) for arm in arms])
    events = had.sum(axis=1)
    tied = np.ceil(events - 1e-9).astype(np.int64)
    row = np.repeat(np.arange(len(times)), tied)
    step = np.arange(len(row)) - np.repeat(np.cumsum(tied) - tied, tied)
    risk = at_risk[row] - (step / tied[row])[:, None] * had[row]
    return risk, (events / np.maximum(tied, 1))[row], had.sum(axis=0)[None]


def _independent(risk: FloatArray, design: FloatArray) -> BoolArray:
    """The columns that vary among people at risk, and not as those before them do."""
    share = risk / risk.sum(axis=1, keepdims=True)
    centred = share @ design
    spread = np.einsum("tg,gi,gj->ij", share, design, design) - centred.T @ centred
    usable = np.zeros(design.shape[1], dtype=np.bool_)
    for column in range(design.shape[1]):
        usable[column] = True
        part = spread[np.ix_(usable, usable)]
        usable[column] = bool(np.linalg.eigvalsh(part)[0] > 1e-9 * len(risk))
    return usable


def _maximum(
    risk: FloatArray, weight: FloatArray, events: FloatArray, design: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    """Newton's method on the concave Σ d·zβ − Σ w log Σ r e^{zβ}: β and its covariance."""
    beta = np.zeros(design.shape[1])
    if not len(beta):
        return None
    for _ in range(_STEPS):
        hazard = np.exp(design @ beta - (design @ beta).max())
        share = risk * hazard
        share = share / share.sum(axis=1, keepdims=True)
        mean = share @ design
        slope = events @ design - weight @ mean
        second = design.T @ ((weight @ share)[:, None] * design)
        information = second - mean.T @ (weight[:, None] * mean)
        if not np.linalg.eigvalsh(information)[0] > 1e-12:
            return None
        step = np.linalg.solve(information, slope)
        beta = beta + np.clip(step, -1.0, 1.0)
        if np.abs(beta).max() > 2 * _FAR:
            return None
        if np.abs(step).max() < 1e-12:
            break
    return beta, np.linalg.inv(information)


def _score_draws(
    arms: Sequence[FollowUp | None], design: FloatArray, beta: FloatArray
) -> FloatArray:
    """How far draws of the slope at β differ from what is expected: a row per column of it."""
    there = [i for i, arm in enumerate(arms) if arm is not None]
    groups = [arm for arm in arms if arm is not None]
    if all(arm.exact for arm in groups):
        return np.zeros((design.shape[1], 1))
    hazard = np.exp(design[there] @ beta)
    weights = []
    for place, arm in zip(there, groups, strict=True):
        share = np.column_stack([other.at_risk(arm.times) for other in groups]) * hazard
        share = share / share.sum(axis=1, keepdims=True)
        weights.append(design[place] - share @ design[there])
    return draw_sums(groups, weights)


def center_ratios(x: FollowUp, y: FollowUp) -> dict[int, HazardRatio]:
    """Each center's own hazard ratio, where it has one."""
    ratios_here = {
        code: hazard_ratio(a, b)
        for code, (a, b) in strata([x, y])
        if a is not None and b is not None
    }
    return {code: ratio for code, ratio in ratios_here.items() if ratio is not None}


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
