"""The shift between two groups, from a federated table (Hodges, Lehmann [1]_).

A shift s is tested as if Y − s and X had one distribution. So that is also how people are placed
inside their bins: by the distribution of both groups together, Y moved back by s. It is found by
self-consistency [2]_ from a first guess, in which each group by itself is smooth on the scale of
normal scores. Where one group's bin is wide, the other one's narrow bins then say how people lie in
it; where both are wide, U tells little, and the interval is long.

References
----------
.. [1] Hodges, Lehmann (1963), Annals of Mathematical Statistics 34, 598-611.
.. [2] Efron (1967), Proceedings of the Fifth Berkeley Symposium 4, 831-853; Turnbull (1976),
   Journal of the Royal Statistical Society B 38, 290-295.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unpooled.maths.arrays import FloatArray, IntArray
from unpooled.maths.ranks.effect import Interval, normal_quantile
from unpooled.maths.ranks.mann_whitney import check_counts

_PARTS = 8  # of a bin, within which people are even
_TAIL_PARTS = 16  # of an open bin
_CELLS = 4000  # a table with more bins than that is fine enough without parts
_BEYOND = 1e-3  # of an open bin's people lie beyond its last part
_STEPS = 4  # towards the distribution of both groups: each leaves about half of what is missing


def shift(
    edges: npt.ArrayLike, counts_x: npt.ArrayLike, counts_y: npt.ArrayLike, level: float = 0.95
) -> Interval:
    """The shift of Y against X: the s that balances U(Y − s, X), with its confidence interval.

    The interval holds the shifts that the Mann-Whitney test does not reject.

    Parameters
    ----------
    edges
        Ascending, one more than bins, at least 3 of them interior; the outer ones may be infinite.
    counts_x, counts_y
        People per bin; need not be whole.

    Examples
    --------
    >>> shift([0, 1, 2, 3, 4, 5, 6], [10, 20, 40, 20, 10, 0], [0, 10, 20, 40, 20, 10])
    Interval(estimate=1.0..., low=0.6..., high=1.3...)
    """
    from scipy.optimize import brentq

    quantile = normal_quantile(level)
    limits, x, y = _check_table(edges, counts_x, counts_y)
    n, m = float(x.sum()), float(y.sum())
    groups = _Groups.of(limits, x, y)
    span = float(groups.fine[-1] - groups.fine[0])

    def balanced(target: float) -> float:
        root = brentq(lambda s: groups.above(s * span) - target, -1.0, 1.0, xtol=1e-12)
        return span * float(root)

    middle = (balanced(0.5 + 1e-9) + balanced(0.5 - 1e-9)) / 2  # of where U is flat
    estimate = 0.0 if abs(middle) < 1e-10 * span else middle
    margin = quantile * math.sqrt((n + m + 1) / (12 * n * m))
    if margin >= 0.5:  # too few people for any shift to be rejected
        return Interval(estimate, -math.inf, math.inf)
    low, high = balanced(0.5 + margin), balanced(0.5 - margin)
    return Interval(estimate, min(low, estimate), max(high, estimate))


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


@dataclass(frozen=True, slots=True)
class _Scores:
    """A group's normal scores Φ⁻¹(F) at the edges, straight between them and beyond the last."""

    at: FloatArray
    score: FloatArray
    slope_below: float
    slope_above: float

    @classmethod
    def of(cls, limits: FloatArray, counts: FloatArray) -> "_Scores":
        from scipy.special import ndtri

        reached = np.cumsum(counts)[:-1] / counts.sum()
        inside = (reached > 1e-9) & (reached < 1 - 1e-9)
        share, first, times = np.unique(reached[inside], return_index=True, return_counts=True)
        edges = limits[1:-1][inside]
        at, score = (edges[first] + edges[first + times - 1]) / 2, ndtri(share)
        if len(at) < 2:
            at, score = _with_ends(at, score, limits, counts)
        if len(at) < 2:
            slope = 1 / float(limits[-2] - limits[1])
            return cls(at, score, slope, slope)
        return cls(at, score, _outer_slope(-at[::-1], -score[::-1]), _outer_slope(at, score))

    def __call__(self, values: FloatArray) -> FloatArray:
        below, above = np.minimum(values - self.at[0], 0), np.maximum(values - self.at[-1], 0)
        inner = np.interp(values, self.at, self.score)
        return np.asarray(inner + below * self.slope_below + above * self.slope_above)

    def reach(self, edge: float, sign: int) -> float:
        """How far beyond an outer edge all but a few of those beyond it lie."""
        from scipy.special import ndtr, ndtri

        score = sign * float(self(np.array([edge]))[0])
        far = -float(ndtri(_BEYOND * ndtr(-score)))
        return (far - score) / (self.slope_above if sign > 0 else self.slope_below)


def _with_ends(
    at: FloatArray, score: FloatArray, limits: FloatArray, counts: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """A group in one or two bins: the bounds of these say the rest."""
    from scipy.special import ndtri

    held = np.flatnonzero(counts)
    end = float(ndtri(0.5 / max(counts.sum(), 1.0 + 1e-9)))
    edges = np.concatenate(([limits[held[0]]], at, [limits[held[-1] + 1]]))
    scores = np.concatenate(([end], score, [-end]))
    bounded = np.isfinite(edges)
    return edges[bounded], scores[bounded]


def _outer_slope(at: FloatArray, score: FloatArray) -> float:
    """The slope over the last unit of scores: over less, chance would rule it."""
    start = max(int(np.searchsorted(score, score[-1] - 1, side="right")) - 1, 0)
    return float((score[-1] - score[start]) / (at[-1] - at[start]))


@dataclass(frozen=True, slots=True)
class _Groups:
    """Both groups' first guess on fine edges, and what the table says at its own."""

    fine: FloatArray
    first_x: FloatArray  # distribution functions at the fine edges
    first_y: FloatArray
    edges: FloatArray
    told_x: FloatArray  # distribution functions at the table's edges
    told_y: FloatArray
    weight: float  # of x among all people

    @classmethod
    def of(cls, limits: FloatArray, x: FloatArray, y: FloatArray) -> "_Groups":
        scores = _Scores.of(limits, x), _Scores.of(limits, y)
        edges = limits.copy()
        for i, inner, sign in ((0, 1, -1), (-1, -2, 1)):
            if np.isinf(edges[i]):
                held = [s for s, counts in zip(scores, (x, y), strict=True) if counts[i] > 0]
                reach = max((score.reach(float(edges[inner]), sign) for score in held), default=0)
                edges[i] = edges[inner] + sign * max(reach, float(edges[-2] - edges[1]) / 1000)
        fine, bins = _cut(limits, edges)
        first = [
            _distribution(_spread(s(fine), bins, c)) for s, c in zip(scores, (x, y), strict=True)
        ]
        pair = _distribution(x), _distribution(y)
        return cls(fine, first[0], first[1], edges, *pair, float(x.sum() / (x.sum() + y.sum())))

    def above(self, s: float) -> float:
        """P(Y − s > X), people placed as if Y − s and X had one distribution."""
        grid = np.sort(np.concatenate((self.fine, self.fine - s)))
        x = np.interp(grid, self.fine, self.first_x)
        y = np.interp(grid, self.fine - s, self.first_y)
        in_x, in_y = _Bins.of(self.edges, grid), _Bins.of(self.edges - s, grid)
        for _ in range(_STEPS):
            both = self.weight * x + (1 - self.weight) * y
            x, y = in_x.filled(self.told_x, both), in_y.filled(self.told_y, both)
        return float(np.diff(y) @ (x[1:] + x[:-1])) / 2


@dataclass(frozen=True, slots=True)
class _Bins:
    """A group's bins on a grid that has all their edges."""

    grid: FloatArray
    edges: FloatArray
    bin: IntArray  # of each point of the grid

    @classmethod
    def of(cls, edges: FloatArray, grid: FloatArray) -> "_Bins":
        bins = np.searchsorted(edges, grid, side="right") - 1
        return cls(grid, edges, np.clip(bins, 0, len(edges) - 2))

    def filled(self, reached: FloatArray, shape: FloatArray) -> FloatArray:
        """The distribution that is `reached` at the edges and has this shape inside the bins."""
        at = np.interp(self.edges, self.grid, shape)
        width, share = np.diff(at), np.diff(reached)
        rate = np.divide(share, width, out=np.zeros(len(share)), where=width > 1e-15)
        inside = (shape - at[self.bin]) * rate[self.bin]
        return np.asarray(reached[self.bin] + np.clip(inside, 0.0, share[self.bin]))


def _cut(limits: FloatArray, edges: FloatArray) -> tuple[FloatArray, IntArray]:
    """The fine edges, the parts of open bins growing outwards, and the bin of each part."""
    bins = len(edges) - 1
    even = np.linspace(0, 1, max(min(_PARTS, _CELLS // bins), 1) + 1)
    growing = np.linspace(0, 1, _TAIL_PARTS + 1) ** 2
    parts = [even] * bins
    if np.isinf(limits[0]):
        parts[0] = 1 - growing[::-1]
    if np.isinf(limits[-1]):
        parts[-1] = growing
    cuts = [
        low + part[:-1] * (high - low)
        for low, high, part in zip(edges[:-1], edges[1:], parts, strict=True)
    ]
    counts = [len(part) - 1 for part in parts]
    return np.concatenate((*cuts, edges[-1:])), np.repeat(np.arange(bins), counts)


def _spread(scores: FloatArray, bins: IntArray, counts: FloatArray) -> FloatArray:
    """The people of each part, from the scores at its edges."""
    from scipy.special import ndtr

    low, high = scores[:-1], scores[1:]
    mass = np.where(low + high > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))
    mass += 1e-300  # a bin that the scores say nothing about is filled evenly
    total = np.bincount(bins, mass, len(counts))
    return np.asarray(mass / total[bins] * counts[bins])


def _distribution(people: FloatArray) -> FloatArray:
    reached = np.concatenate(([0.0], np.cumsum(people)))
    return np.asarray(reached / reached[-1])
