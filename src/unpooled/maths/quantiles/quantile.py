"""Quantiles from a federated table (Yeo-Johnson, interpolation) and by the quantile loss.

A table has limits b_0 < ... < b_B, the outer two perhaps infinite, and a count for each bin
(b_{k-1}, b_k], perhaps not whole. What an estimate rests on is flagged for each p.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unpooled.maths.arrays import FloatArray, read_only
from unpooled.maths.quantiles.yeo_johnson import inverse_or_nan, transform

BoolArray = npt.NDArray[np.bool_]


def check_probabilities(p: npt.ArrayLike) -> FloatArray:
    """A vector of probabilities in (0, 1).

    >>> check_probabilities(25)
    Traceback (most recent call last):
    ValueError: quantile must lie in (0, 1), got 25. Hint: for the 25th percentile use 0.25.
    """
    try:
        checked = np.asarray(p, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"quantile must be a number or a list of numbers, got {p!r}") from None
    p = np.atleast_1d(checked)
    for bad in p[~((p > 0) & (p < 1))]:
        digit = 0 if 10 < bad % 100 < 14 else bad % 10
        ordinal = f"{bad:g}" + {1: "st", 2: "nd", 3: "rd"}.get(digit, "th")
        percentile = f"for the {ordinal} percentile use {bad / 100:g}" if 1 < bad < 100 else None
        hint = percentile or "for the median use 0.5"
        raise ValueError(f"quantile must lie in (0, 1), got {bad:g}. Hint: {hint}.")
    if p.ndim != 1 or p.size == 0:
        raise ValueError(f"quantile must be a number or a list of numbers, got shape {p.shape}")
    return p


def interior_cdf(edges: npt.ArrayLike, counts: npt.ArrayLike) -> FloatArray:
    """F̂(b_k) at the interior limits b_1 .. b_{B-1}.

    >>> interior_cdf([-np.inf, 1, 2, np.inf], [10, 20, 10]).tolist()
    [0.25, 0.75]
    """
    upto = np.cumsum(_check_table(edges, counts)[1])
    return np.asarray(upto[:-1] / upto[-1])


def _check_table(edges: npt.ArrayLike, counts: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    edges, counts = np.asarray(edges, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    if edges.ndim != 1 or counts.shape != (edges.size - 1,):
        raise ValueError(f"counts must be one fewer than edges, got {counts.size} and {edges.size}")
    if not (np.isfinite(edges[1:-1]).all() and (edges[:-1] < edges[1:]).all()):
        raise ValueError(f"edges must increase and be finite inside, got {edges.tolist()}")
    if not (np.isfinite(counts).all() and (counts >= 0).all() and counts.sum() > 0):
        raise ValueError(f"counts must be finite, ≥ 0 and not all 0, got {counts.tolist()}")
    return edges, counts


@dataclass(frozen=True, slots=True)
class YeoJohnsonTableResult:
    """h_λ(Q_p) = a0 + a1 Φ⁻¹(p); for each p the estimate and what it rests on.

    `extrapolated`: p lies outside the cdf at the limits used. `clamped`: moved to a finite outer
    limit of the table. `unsupported`: the limits cannot carry an estimate there; it is NaN.
    """

    estimate: FloatArray
    lam: float
    a0: float
    a1: float
    correlation: float
    at_bound: bool
    extrapolated: BoolArray
    clamped: BoolArray
    unsupported: BoolArray


def yj_table_quantiles(
    edges: npt.ArrayLike, counts: npt.ArrayLike, p: npt.ArrayLike
) -> YeoJohnsonTableResult:
    """The paper's YJ table method (eq. density_model, table_lambda), λ in [0, 2].

    Near λ = 2 the left tail of h_λ⁻¹ is exponential, near 0 the right one, and an estimate beyond
    the limits can run away. It is kept only up to s √((1−p)/p) below the lowest limit used, or
    s √(p/(1−p)) above the highest: Cantelli's bound on a quantile, with the steepest slope s of the
    other limits on their normal scores, seen from that limit, in place of the SD.

    >>> table = yj_table_quantiles([-np.inf, 1, 2, 3, np.inf], [10, 10, 10, 10], [0.25, 0.5])
    >>> table.estimate.round(3).tolist(), table.extrapolated.tolist()
    ([1.0, 2.0], [False, False])
    """
    from scipy.special import ndtri

    p = check_probabilities(p)
    edges, counts = _check_table(edges, counts)
    limits, scores = _limits_and_scores(edges, counts)
    lam, correlation = _straightest(limits, scores)
    a1, a0 = (float(value) for value in np.polyfit(scores, transform(limits, lam), 1))
    z = a0 + a1 * ndtri(p)
    raw = inverse_or_nan(z, lam)
    raw = np.where(np.isnan(raw), np.copysign(np.inf, z), raw)
    x = np.clip(raw, edges[0], edges[-1])
    below = np.max((limits[1:] - limits[0]) / (scores[1:] - scores[0])) * np.sqrt((1 - p) / p)
    above = np.max((limits[-1] - limits[:-1]) / (scores[-1] - scores[:-1])) * np.sqrt(p / (1 - p))
    unsupported = (x < limits[0] - below) | (x > limits[-1] + above)
    extrapolated = (ndtri(p) < scores[0]) | (ndtri(p) > scores[-1])
    estimate = read_only(np.where(unsupported, np.nan, x))
    flags = _fixed(extrapolated), _fixed(x != raw), _fixed(unsupported)
    return YeoJohnsonTableResult(estimate, lam, a0, a1, correlation, lam in (0.0, 2.0), *flags)


def _fixed(flags: BoolArray) -> BoolArray:
    flags.setflags(write=False)
    return flags


def _limits_and_scores(edges: FloatArray, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Interior limits with 0 < F̂ < 1 and Φ⁻¹(F̂); those around empty bins become their middle."""
    from scipy.special import ndtri

    cdf = interior_cdf(edges, counts)
    inside = (cdf > 0) & (cdf < 1)
    limits = edges[1:-1][inside]
    distinct, first, times = np.unique(cdf[inside], return_index=True, return_counts=True)
    if distinct.size < 3:
        rule = "the table must have at least 3 interior limits with different cdf values in (0, 1)"
        raise ValueError(f"{rule}, got {distinct.size}. Hint: interpolation needs fewer.")
    return (limits[first] + limits[first + times - 1]) / 2, ndtri(distinct)


def _straightest(limits: FloatArray, scores: FloatArray) -> tuple[float, float]:
    """λ in [0, 2] with the highest correlation of h_λ(b_k) and Φ⁻¹(F̂(b_k)), and the latter."""
    from scipy.optimize import minimize_scalar

    target = _unit(scores)

    def misfit(lam: npt.ArrayLike) -> FloatArray:
        """1 − correlation, exact also where that is near 0."""
        off = _unit(transform(limits, np.asarray(lam, dtype=np.float64)[..., None])) - target
        return np.asarray((off * off).sum(axis=-1) / 2)

    grid = np.arange(41) / 20
    best = float(grid[np.argmin(misfit(grid))])
    around = max(best - 0.05, 0.0), min(best + 0.05, 2.0)
    minimum = minimize_scalar(misfit, bounds=around, method="bounded", options={"xatol": 1e-9})
    lam = min((float(minimum.x), best), key=lambda value: float(misfit(value)))
    return lam, 1.0 - float(misfit(lam))


def _unit(v: FloatArray) -> FloatArray:
    """The rows centred, with length 1."""
    centred = v - v.mean(axis=-1, keepdims=True)
    return np.asarray(centred / np.sqrt((centred * centred).sum(axis=-1, keepdims=True)))


@dataclass(frozen=True, slots=True)
class InterpolationResult:
    """For each p the estimate, and whether it lies in an open outer bin."""

    estimate: FloatArray
    extrapolated: BoolArray


def interpolation_quantiles(
    edges: npt.ArrayLike, counts: npt.ArrayLike, p: npt.ArrayLike
) -> InterpolationResult:
    """Linear interpolation of the cdf over the bins that hold somebody.

    An open outer bin is given the density of the nearest bounded bin, and a flag.

    >>> table = interpolation_quantiles([-np.inf, 1, 2, np.inf], [10, 20, 10], [0.1, 0.5])
    >>> table.estimate.round(3).tolist(), table.extrapolated.tolist()
    ([0.7, 1.5], [True, False])
    """
    p = check_probabilities(p)
    edges, counts = _check_table(edges, counts)
    held = counts > 0
    low, high, count = edges[:-1][held], edges[1:][held], counts[held]
    opened = np.isinf(high - low)
    if opened.all():
        raise ValueError("the table must have a bounded bin that holds somebody, got none")
    per_person = (high - low)[~opened] / count[~opened]
    low = np.where(np.isinf(low), high - count * per_person[0], low)
    high = np.where(np.isinf(high), low + count * per_person[-1], high)
    upto = np.cumsum(count) / count.sum()
    at = np.minimum(np.searchsorted(upto, p), count.size - 1)
    share = (p - np.concatenate([[0.0], upto])[at]) / (count[at] / count.sum())
    return InterpolationResult(read_only(low[at] + share * (high - low)[at]), _fixed(opened[at]))


@dataclass(frozen=True, slots=True)
class PinballLoss:
    """The quantile loss at some q: its value, and how many values lie below and at most at q."""

    n: int
    loss: FloatArray
    below: FloatArray
    at_most: FloatArray


def pinball(x_sorted: FloatArray, q: npt.ArrayLike, p: npt.ArrayLike) -> PinballLoss:
    """What a center says for the quantile loss (eq. quantile_loss), q[i] tried for p[i].

    This gives the values themselves away after enough questions: a benchmark, not for real use.

    >>> pinball(np.array([0.0, 1.0, 5.0]), 2.0, 0.5).loss.tolist()
    [3.0]
    """
    x = np.asarray(x_sorted, dtype=np.float64)
    q, p = np.broadcast_arrays(np.asarray(q, dtype=np.float64), check_probabilities(p))
    below, at_most = np.searchsorted(x, q, "left"), np.searchsorted(x, q, "right")
    loss = [
        (1 - pi) * np.sum(qi - x[:k]) + pi * np.sum(x[k:] - qi)
        for qi, pi, k in zip(q, p, below, strict=True)
    ]
    return PinballLoss(x.size, read_only(loss), read_only(below), read_only(at_most))


def pool_losses(losses: Sequence[PinballLoss]) -> PinballLoss:
    """The loss over all centers.

    >>> one = pinball(np.array([0.0, 1.0, 5.0]), 2.0, 0.5)
    >>> pool_losses([one, one]).loss.tolist()
    [6.0]
    """
    if not losses:
        raise ValueError("losses must come from at least one center, got none")
    sums = np.sum([(m.loss, m.below, m.at_most) for m in losses], axis=0)
    return PinballLoss(sum(m.n for m in losses), *map(read_only, sums))


@dataclass(frozen=True, slots=True)
class LossResult:
    """For each p a minimiser of the pooled quantile loss, and the rounds they took together."""

    estimate: FloatArray
    rounds: int


def minimise_loss(
    evaluate: Callable[[FloatArray, FloatArray], PinballLoss],
    p: npt.ArrayLike,
    low: float,
    high: float,
) -> LossResult:
    """A minimiser of the pooled loss between low and high for each p, all p in the same rounds.

    >>> x = np.array([0.0, 1.0, 5.0])
    >>> minimise_loss(lambda q, p: pinball(x, q, p), [0.5], -10, 10).estimate.round(9).tolist()
    [1.0]
    """
    if not -np.inf < low < high < np.inf:
        raise ValueError(f"low and high must be finite and increase, got {low} and {high}")
    searches = [_Search(one, 1e-17 * (high - low)) for one in check_probabilities(p).tolist()]
    asks, rounds = [[float(low), float(high)] for _ in searches], 0
    while any(asks):
        q = np.concatenate(asks)
        pooled = evaluate(q, np.repeat([s.p for s in searches], list(map(len, asks))))
        answers = iter(zip(q, pooled.loss, pooled.below, pooled.at_most, strict=True))
        for search, asked in zip(searches, asks, strict=True):
            search.learn(pooled.n, [next(answers) for _ in asked])
        rounds += 1
        asks = [search.asks(pooled.n) for search in searches]
    return LossResult(read_only([search.at for search in searches]), rounds)


@dataclass(slots=True)
class _Search:
    """The bracket of one quantile, each end as (q, loss, values counted up to it)."""

    p: float
    finest: float
    left: tuple[float, float, float] | None = None
    right: tuple[float, float, float] | None = None
    at: float = np.nan

    def learn(self, n: int, answers: Sequence[tuple[float, float, float, float]]) -> None:
        """q minimises the loss where the slopes on both sides, count − n p, enclose 0."""
        for q, loss, below, at_most in answers:
            if at_most < n * self.p - 1e-9:
                self.left = max(self.left or (q, loss, at_most), (q, loss, at_most))
            elif below > n * self.p + 1e-9:
                self.right = min(self.right or (q, loss, below), (q, loss, below))
            else:
                self.at = q

    def asks(self, n: int) -> list[float]:
        """Where the lines at both ends cross, with one value left inside: there; close by on both
        sides, which proves it; and two points between which the counts put the quantile."""
        if not np.isnan(self.at):
            return []
        if self.left is None or self.right is None:
            raise ValueError(f"low and high must enclose the {self.p:g} quantile, got others")
        (a, loss_a, count_a), (b, loss_b, count_b) = self.left, self.right
        inside, width = count_b - count_a, b - a
        cross = a + (loss_a - loss_b + (count_b - n * self.p) * width) / inside
        cross = min(max(cross, a), b)  # against rounding
        near = 1e-10 * min(loss_a, loss_b) / n + 4 * np.spacing(abs(cross)) + self.finest
        if width <= 2.5 * near:
            self.at = cross
            return []
        at, margin = (n * self.p - count_a) / inside, 0.5 / np.sqrt(inside)
        by_count = (a + (at + side * margin) * width for side in (-1, 1))
        return [q for q in (cross - near, cross, cross + near, *by_count) if a < q < b]
