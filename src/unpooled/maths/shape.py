"""The shape of everybody's distribution, straight from what the cells of all tables tell.

On the working scale of `smoothing` the quantile z(t) at the normal quantile t rises with the slope
exp η(t), so that it always rises:

    η(t) = a + b·t + c₋·min(t, 0)² + c₊·max(t, 0)² + w(t),   w a Wiener process of variance τ.

η = 0 is the normal distribution, b skews it, c = −½ is a hard edge (the uniform distribution has
one on either side) and c > 0 a heavy tail: each tail has a number of its own. The counts of a
center's cells are multinomial; mean and SD of a cell are about normal around those of the
distribution within it. Of both the expected values are linear in η near any curve, so Fisher's
scoring [1]_ finds the posterior; priors are averaged by their evidence [2]_. Unlike people placed
by guess, this counts a cell of twenty people for what it tells: a count, a mean and an SD.

References
----------
.. [1] Green (1984), Journal of the Royal Statistical Society B 46, 149-192.
.. [2] Tierney, Kadane (1986), Journal of the American Statistical Association 81, 82-86.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from unpooled.maths.arrays import FloatArray, IntArray
from unpooled.maths.cells import Cells
from unpooled.maths.smoothing import WorkingScale, even_quantiles, levels_for, middles

_END = 4.2  # normal quantiles: hardly any of 75,000 people lie beyond
_T: FloatArray = np.linspace(-_END, _END, 421)
_STEP = float(_T[1] - _T[0])
_MIDDLE = len(_T) // 2
_NORMAL: FloatArray = np.exp(-(_T**2) / 2) / math.sqrt(2 * math.pi)
_WAVES = 60  # of w: the shortest spans an eighth of an SD, as a gap may
_ROUGH: FloatArray = np.logspace(-5, 2, 8)  # τ: from a parametric curve to no smoothing
_TAILED: FloatArray = np.array(
    [1e-4, 1e-2, 1.0]
)  # variance of b and c: nearly normal to hard edges
_LITTLE = 0.01  # evidence of a prior that is left out
_FREE = 1e-6  # prior precision of where the curve is and how steep
_STEPS = 12
_CLOSE = 0.05  # in η: the next step would be smaller
_LONGEST = 1.5  # step in η
_STEEP = (-8.0, 5.0)  # η stays between
_NARROW = 4  # grid points: the moments of narrower cells say nothing about the shape
_FLAT = 1e-3  # the same, in SDs of the quantiles
_PEAKED = 0.02  # of its own size is the least variance of a square that its skewness leaves
_SHRUNKEN = 0.05  # of its SD is the least that a curve may leave to a cell: else it is off
_FAR = 1000.0  # SDs of the quantiles: beyond, there is no shape
_MOST_CELLS = 5000  # that are looked at: enough to know a shape
_FIRST_LEVELS = 100  # between which the first slopes are taken
_SHRUNK = 0.1  # prior precision of the waves in the first curve
_THIN = 10  # grid points per one whose variance is computed


@dataclass(frozen=True, slots=True)
class Shape:
    """Values at ascending normal quantiles t.

    `kept` is the posterior variance as a share of the sampling variance of a quantile.
    """

    t: FloatArray
    values: FloatArray
    kept: FloatArray

    def quantile(self, p: FloatArray) -> FloatArray:
        """The values at the levels p."""
        from scipy.special import ndtri

        return np.asarray(np.interp(ndtri(p), self.t, self.values))

    def kept_at(self, p: FloatArray) -> FloatArray:
        """The share of the sampling variance that stays at the levels p."""
        from scipy.special import ndtri

        return np.asarray(np.interp(ndtri(p), self.t, self.kept))


def fit_shape(cells: Cells, values: FloatArray, weights: FloatArray, lower: float) -> Shape:
    """The shape of cells of more than one value; the search starts at weighted, ascending people.

    Examples
    --------
    >>> from unpooled.maths.lattice import Lattice, lattice_table
    >>> x, lattice = np.arange(1.0, 1001.0), Lattice(step=20.0)
    >>> cells = Cells.of([lattice_table(x, lattice, k=10)], lattice)
    >>> fit_shape(cells, x, np.ones(1000), -np.inf).quantile(np.array([0.02, 0.5])).round(-1)
    array([ 20., 500.])
    """
    quantiles = even_quantiles(values, weights, levels_for(float(weights.sum())))
    scale = WorkingScale.of(quantiles, lower)
    unit = _Unit.of(quantiles, values)
    seen = _Seen.of(cells, unit)
    theta = _first(values, weights, scale)
    for _ in range(_STEPS):
        curve = _Curve.of(theta, scale, unit)
        information, score = seen.information(curve)
        posterior = _Posterior.of(information, score + information @ theta)
        move = posterior.mean - theta
        bend = _basis() @ move[1:]
        longest = float(np.abs(bend[np.abs(_T) < 3]).max())
        theta = theta + move * min(1.0, _LONGEST / longest)
        if longest < _CLOSE:
            break
    kept = np.clip(posterior.variance(curve) * seen.total, 0.0, 1.0)
    curve = _Curve.of(theta, scale, unit)
    inside = (curve.x > unit.inside[0]) & (curve.x < unit.inside[1])
    return Shape(_T[inside], unit.location + unit.size * curve.x[inside], kept[inside])


@lru_cache(maxsize=1)
def _basis() -> FloatArray:
    """η at the grid per coefficient: level, skewness, both tails, waves (w of variance 1)."""
    waves = np.arange(1, _WAVES + 1)
    heights = np.sqrt(4 * _END) / (np.pi * waves)
    w = heights * np.cos(np.pi * np.outer((_T + _END) / (2 * _END), waves))
    tails = np.minimum(_T, 0.0) ** 2, np.maximum(_T, 0.0) ** 2
    return np.asfortranarray(np.column_stack((np.ones(len(_T)), _T, *tails, w)))


@lru_cache(maxsize=1)
def _precisions() -> FloatArray:
    """Prior precisions of all coefficients, a row per pair of τ and the variance of b and c."""
    return np.array(
        [
            [_FREE, _FREE, *[1 / tailed] * 3, *[1 / rough] * _WAVES]
            for rough in _ROUGH
            for tailed in _TAILED
        ]
    )


def _first(values: FloatArray, weights: FloatArray, scale: WorkingScale) -> FloatArray:
    """Coefficients for the slopes between quantiles of the people."""
    from scipy.special import ndtri

    p = np.arange(_FIRST_LEVELS + 1) / _FIRST_LEVELS
    p[[0, -1]] = 0.2 / _FIRST_LEVELS, 1 - 0.2 / _FIRST_LEVELS
    t, z = ndtri(p), scale.forth(np.interp(p, middles(weights), values))
    slopes = np.log(np.maximum(np.diff(z) / np.diff(t), 0.02))
    at = np.round(((t[1:] + t[:-1]) / 2 + _END) / _STEP).astype(int)
    rows = _basis()[at]
    ridge = np.array([_FREE, *[_SHRUNK] * (rows.shape[1] - 1)])
    found = np.linalg.solve(rows.T @ rows + np.diag(ridge), rows.T @ slopes)
    return np.concatenate(([np.interp(0.0, t, z)], found))


@dataclass(frozen=True, slots=True)
class _Unit:
    """x = (value − location)/size, and how far out a curve may reach."""

    location: float
    size: float
    inside: tuple[float, float]

    @staticmethod
    def of(quantiles: FloatArray, values: FloatArray) -> "_Unit":
        median, size = float(np.median(quantiles)), float(quantiles.std())
        low, high = np.clip(3 * (values[[0, -1]] - median) / size, -_FAR, _FAR).tolist()
        return _Unit(median, size, (low, high))


@dataclass(frozen=True, slots=True)
class _Curve:
    """A quantile curve on the grid: its slope in z, x, dx/dz, and dz per coefficient."""

    slope: FloatArray
    x: FloatArray
    rise: FloatArray
    effect: FloatArray

    @staticmethod
    def of(theta: FloatArray, scale: WorkingScale, unit: _Unit) -> "_Curve":
        slope = np.exp(np.clip(_basis() @ theta[1:], *_STEEP))
        z, effect = _integral(slope), _integral(slope[:, None] * _basis())
        x = (scale.back(theta[0] + z - z[_MIDDLE]) - unit.location) / unit.size
        low, high = unit.inside
        x = np.clip(np.where(np.isnan(x), np.where(_T < 0, low, high), x), low, high)
        x = np.maximum.accumulate(x) + 1e-9 * (high - low) * np.arange(len(_T))
        effect = np.asfortranarray(np.hstack((np.ones((len(_T), 1)), effect - effect[_MIDDLE])))
        return _Curve(slope, x, np.gradient(x, _STEP) / slope, effect)


@dataclass(frozen=True, slots=True)
class _Posterior:
    """Normal posteriors of the coefficients, one per prior of some evidence, and their weights."""

    mean: FloatArray
    means: FloatArray
    precisions: FloatArray
    weights: FloatArray

    @staticmethod
    def of(information: FloatArray, score: FloatArray) -> "_Posterior":
        prior, size = _precisions(), len(score)
        bordered = np.empty((len(prior), size + 1, size + 1))  # the root's last row: root⁻¹ score
        bordered[:, :size, :size] = information
        bordered[:, np.arange(size), np.arange(size)] += prior
        bordered[:, size, :size] = bordered[:, :size, size] = score
        bordered[:, size, size] = 1e300
        roots = np.linalg.cholesky(bordered)
        log = np.sum(roots[:, size, :size] ** 2, axis=1) / 2 + np.log(prior).sum(axis=1) / 2
        log -= np.log(np.diagonal(roots, axis1=1, axis2=2)[:, :size]).sum(axis=1)
        evidence = np.exp(log - log.max())
        some = evidence > _LITTLE * evidence.sum()
        weights, precisions = evidence[some] / evidence[some].sum(), bordered[some, :size, :size]
        scores = np.broadcast_to(score[:, None], (len(weights), size, 1))
        means = np.asarray(np.linalg.solve(precisions, scores)[..., 0], dtype=np.float64)
        return _Posterior(weights @ means, means, precisions, weights)

    def variance(self, curve: _Curve) -> FloatArray:
        """The variance of the level at each grid point, as a share of p(1 − p)."""
        from scipy.special import ndtr

        effect = curve.effect[::_THIN]
        within = np.tensordot(self.weights, np.linalg.inv(self.precisions), 1)
        found = np.sum(effect @ within * effect, axis=1)
        found += self.weights @ ((self.means - self.mean) @ effect.T) ** 2
        p = ndtr(_T[::_THIN])
        density = (_NORMAL / curve.slope)[::_THIN]
        return np.asarray(np.interp(_T, _T[::_THIN], found * density**2 / (p * (1 - p))))


@dataclass(frozen=True, slots=True)
class _Seen:
    """Cells in units of x, each center's outer ones open, as a curve may leave declared limits.

    `people` is how many the center of a cell has, `total` all centers.
    """

    low: FloatArray
    high: FloatArray
    count: FloatArray
    people: FloatArray
    mean: FloatArray
    sd: FloatArray
    total: float

    @staticmethod
    def of(cells: Cells, unit: _Unit) -> "_Seen":
        few = max(1, int(cells.several.sum()) // _MOST_CELLS)
        i: IntArray = np.flatnonzero(cells.several & (cells.center % few == 0))
        center, count = cells.center[i], cells.count[i].astype(np.float64)
        people: FloatArray = np.bincount(center, count).astype(np.float64)
        change = center[1:] != center[:-1]
        first, last = np.append(True, change), np.append(change, True)
        low = np.where(first, -np.inf, (cells.low[i] - unit.location) / unit.size)
        high = np.where(last, np.inf, (cells.high[i] - unit.location) / unit.size)
        mean, sd = (cells.mean[i] - unit.location) / unit.size, cells.sd[i] / unit.size
        return _Seen(low, high, count, people[center], mean, sd, float(count.sum()))

    def information(self, curve: _Curve) -> tuple[FloatArray, FloatArray]:
        """Fisher's information about the coefficients, and the score."""
        limits = _Limits.of(self, curve)
        share, seen = limits.share, self.count / self.people
        rows = limits.inflow - limits.outflow
        weight = self.people / np.maximum(share, seen / 2)  # an empty-looking cell has its people
        information = (rows * weight[:, None]).T @ rows
        score = rows.T @ (weight * (seen - share))
        wide = (limits.end - limits.start >= _NARROW) & ~(self.high - self.low < _FLAT)
        told = np.flatnonzero(~np.isnan(self.mean) & wide)
        if len(told):
            more, further = self._moments(curve, limits, told)
            information, score = information + more, score + further
        return information, score

    def _moments(
        self, curve: _Curve, limits: "_Limits", told: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """The same from means and SDs, given the counts."""
        start, end = limits.start[told], limits.end[told]

        def within(rows: FloatArray) -> FloatArray:
            total = _integral(rows)
            return _at(end, total) - _at(start, total)

        mass, *raw = (within(_NORMAL * curve.x**power) for power in range(5))
        mean, second, third, fourth = (moment / mass for moment in raw)
        least = np.maximum(_SHRUNKEN * np.nan_to_num(self.sd[told]), 1e-6)
        sd = np.maximum(np.sqrt(np.maximum(second - mean**2, 0.0)), least)
        skew = (third - 3 * mean * second + 2 * mean**3) / sd**3
        tail = (fourth - 4 * mean * third + 6 * mean**2 * second - 3 * mean**4) / sd**4 - 1
        moved = (_NORMAL * curve.rise)[:, None] * curve.effect
        first, times_x = within(moved), within(curve.x[:, None] * moved)
        low, high = (
            np.where(np.isinf(limit[told]), 0.0, (limit[told] - mean) / sd)
            for limit in (self.low, self.high)
        )
        share = limits.share[told, None]
        inflow, outflow = limits.inflow[told] / share, limits.outflow[told] / share
        of_mean = first / (sd * mass)[:, None] + low[:, None] * inflow - high[:, None] * outflow
        of_square = 2 * (times_x - mean[:, None] * first) / (sd**2 * mass)[:, None]
        of_square += (low**2 - 1)[:, None] * inflow - (high**2 - 1)[:, None] * outflow
        off = (self.mean[told] - mean) / sd
        square = (self.sd[told] / sd) ** 2 + off**2 - 1
        known = ~np.isnan(square)
        free = np.maximum(tail - skew**2, _PEAKED * (1 + skew**2))  # the square's, given the mean
        n = self.count[told]
        on_mean = n * np.where(known, 1 + skew**2 / free, 1.0)
        both, on_square = n * np.where(known, -skew / free, 0.0), n * np.where(known, 1 / free, 0.0)
        square = np.where(known, square, 0.0)
        cross = (of_mean * both[:, None]).T @ of_square
        information = (of_mean * on_mean[:, None]).T @ of_mean + cross + cross.T
        information += (of_square * on_square[:, None]).T @ of_square
        score = of_mean.T @ (on_mean * off + both * square)
        return information, score + of_square.T @ (both * off + on_square * square)


@dataclass(frozen=True, slots=True)
class _Limits:
    """Where cells begin and end on the grid, their shares, and the flow of people over either."""

    start: FloatArray
    end: FloatArray
    share: FloatArray
    inflow: FloatArray
    outflow: FloatArray

    @staticmethod
    def of(seen: _Seen, curve: _Curve) -> "_Limits":
        from scipy.special import ndtr

        density = _NORMAL / curve.slope
        places, levels, flows = [], [], []
        for limit in (seen.low, seen.high):
            t = np.interp(limit, curve.x, _T)
            at = (t + _END) / _STEP
            places.append(at)
            levels.append(np.where(np.isinf(limit), limit > 0, ndtr(t)))
            reached = (limit > curve.x[0]) & (limit < curve.x[-1])
            flow = np.where(reached, _at(at, density), 0.0)
            flows.append(flow[:, None] * _at(at, curve.effect))
        share = np.maximum(levels[1] - levels[0], 0.1 / seen.people)
        return _Limits(places[0], places[1], share, flows[0], flows[1])


def _integral(rows: FloatArray) -> FloatArray:
    """The integral from the left end to each grid point; quick where columns are contiguous."""
    found = np.zeros_like(rows)
    found[1:] = np.cumsum((rows[1:] + rows[:-1]) * (_STEP / 2), axis=0)
    return found


def _at(places: FloatArray, rows: FloatArray) -> FloatArray:
    """Rows between grid points."""
    i = np.minimum(places.astype(int), len(_T) - 2)
    beyond = places - i
    beyond = beyond if rows.ndim == 1 else beyond[:, None]
    return np.asarray(rows[i] * (1 - beyond) + rows[i + 1] * beyond)
