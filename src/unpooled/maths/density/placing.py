"""Place people inside the cells of released tables, so that their moments are the released ones.

The n people of a cell stand at the levels (i − ½)/n of a distribution with two parameters: a Beta
distribution between two limits, a generalised Pareto tail [1]_ beyond one, on the scale of open
cells. The parameters are such that the mean and SD *of these n people* are those of the cell, not
those of the distribution they are drawn from: in a heavy tail the two differ much.

References
----------
.. [1] Hosking, Wallis (1987), Technometrics 29, 339-349.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from unpooled.maths.arrays import FloatArray, IntArray
from unpooled.maths.density.pooled_shape import Shape, fit_shape
from unpooled.maths.density.smoothing import can_smooth
from unpooled.maths.lattice.cells import Cells, with_moments
from unpooled.maths.lattice.lattice import Lattice, LatticeTable, nearest_multiples

_STEPS = 20  # of Newton's method
_CLOSE = 0.02  # SDs from the moments asked for: beyond, the first placement stays


def _levels(nodes: int) -> FloatArray:
    """Limits of the shares that nodes stand for, finer towards both ends of a cell."""
    ends = 1 / (1 + np.exp(-np.linspace(-4.5, 4.5, nodes + 1)))
    ends[0], ends[-1] = 0.0, 1.0
    return np.asarray(ends)


_ENDS = _levels(32)


@dataclass(frozen=True, slots=True)
class Points:
    """Weighted points and the cells they stand in."""

    values: FloatArray
    weights: FloatArray
    cell: IntArray


def refill(cells: Cells, points: Points, shape: Shape, ends: FloatArray = _ENDS) -> Points:
    """The points, with those of cells that can take the shape placed anew.

    A cell gets a node in the middle between any two of the levels `ends`, which go from 0 to 1.

    Examples
    --------
    >>> from unpooled.maths.lattice.lattice import Lattice, LatticeTable
    >>> table = LatticeTable(np.array([0.0]), [10, 10], [-0.1, 0.1], [0.05, 0.05])
    >>> points = Points(np.linspace(-2, 2, 20), np.ones(20), np.repeat([0, 1], 10))
    >>> t = np.linspace(-3.0, 3.0, 50)
    >>> cells = Cells.of([table], Lattice(0.1))
    >>> filled = refill(cells, points, Shape(t, t, np.ones(50)))
    >>> v = cells.scale.at(filled.cell).forth(filled.values)
    >>> np.round([np.average(v, weights=filled.weights * (filled.cell == i)) for i in (0, 1)], 6)
    array([-0.1,  0.1])
    """
    per_node = np.diff(ends)
    nodes = _nodes(cells, shape, (ends[1:] + ends[:-1]) / 2)
    scaled = cells.scale.at((..., None)).forth(nodes)
    sd = np.sqrt(np.maximum(per_node @ (scaled**2).T - (per_node @ scaled.T) ** 2, 0.0))
    varied = np.flatnonzero(cells.several & (sd > 1e-9 * np.abs(scaled).max(axis=1)))
    mean = np.where(np.isnan(cells.mean), per_node @ scaled.T, cells.mean)[varied]
    v = (scaled[varied] - mean[:, None]) / sd[varied, None]
    shares, close = _tilt(v, (cells.sd[varied] / sd[varied]) ** 2, per_node)
    filled = varied[close]
    kept = ~np.isin(points.cell, filled)
    return Points(
        np.concatenate((points.values[kept], nodes[filled].ravel())),
        np.concatenate((points.weights[kept], (shares[close].T * cells.count[filled]).T.ravel())),
        np.concatenate((points.cell[kept], np.repeat(filled, len(per_node)))),
    )


def _nodes(cells: Cells, shape: Shape, middles: FloatArray) -> FloatArray:
    """The pooled distribution's quantiles within each cell, a row per cell."""
    from scipy.special import ndtr, ndtri

    t, rising = shape.t, shape.values
    low, high = (ndtr(np.interp(limit, rising, t)) for limit in (cells.low, cells.high))
    low, high = np.where(np.isinf(cells.low), 0.0, low), np.where(np.isinf(cells.high), 1.0, high)
    levels = low[:, None] + (high - low)[:, None] * middles
    nodes = np.interp(ndtri(np.clip(levels, 1e-9, 1 - 1e-9)), t, rising)
    return np.asarray(np.clip(nodes, cells.low[:, None], cells.high[:, None]))


def _tilt(
    v: FloatArray, square: FloatArray, per_node: FloatArray
) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Shares of the nodes v with mean 0 and this mean square, by Newton's method on the dual.

    A NaN square is left free. Also says which rows came close to what was asked.
    """
    free = np.isnan(square)
    first, second = np.zeros(len(v)), np.zeros(len(v))
    v2 = v * v
    for _ in range(_STEPS):
        log = v * first[:, None] + v2 * second[:, None]
        shares = per_node * np.exp(log - log.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        m1, m2, m3, m4 = (np.sum(shares * part, axis=1) for part in (v, v2, v * v2, v2 * v2))
        miss = np.where(free, 0.0, m2 - square)
        off = np.maximum(np.abs(m1), np.abs(miss))
        if np.all(off < 1e-9):
            break
        a, b = m2 - m1**2 + 1e-12, np.where(free, 0.0, m3 - m1 * m2)
        d = np.where(free, 1.0, m4 - m2**2 + 1e-12)
        steps = np.array([d * m1 - b * miss, a * miss - b * m1]) / (a * d - b**2 + 1e-15)
        steps *= np.minimum(1.0, 1.0 / np.maximum(np.abs(steps).max(axis=0), 1e-12))
        first, second = first - steps[0], second - steps[1]
    return shares, off < _CLOSE


_STEEP = 5.0  # how much faster than evenly an extreme cell without a mean may fill up
_LONG = 0.8  # v: where a Pareto tail reaches farther, it does not end at 1 as the scale does
_FAR = 0.99  # v of the farthest first guess, 35 widths outside, unless the mean itself is farther
_DOMINATED = 0.75  # an SD is withheld when one person carries ½ to 1 of it: the middle
_SHAPES: FloatArray = np.concatenate((np.linspace(-8, -1.1, 70), np.linspace(-1, 3, 81)))


@dataclass(frozen=True, slots=True)
class Placed:
    """Pseudo-people, ascending: where they are, how many each stands for, and their center.

    `shared` marks values that a whole cell shares: atoms. `cells` and `moments` say in which cell
    of the tables each stands and how many moments that cell tells, `scaled` are the values of which
    it tells them; all three are empty for exact values.
    `shape` is the distribution that their cells were refilled with, atoms aside.
    """

    values: FloatArray
    weights: FloatArray
    centers: IntArray
    shared: npt.NDArray[np.bool_]
    cells: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    moments: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    scaled: FloatArray = field(default_factory=lambda: np.zeros(0))
    shape: Shape | None = None

    @property
    def people(self) -> float:
        """How many they stand for."""
        return float(self.weights.sum())

    def below_minus_above(self, at: FloatArray) -> FloatArray:
        """For each value, how many of these people lie below it minus how many lie above."""
        reached = np.concatenate(([0.0], np.cumsum(self.weights)))
        left = reached[np.searchsorted(self.values, at, "left")]
        right = reached[np.searchsorted(self.values, at, "right")]
        return np.asarray(left + right - reached[-1])

    def by_center(self, centers: int) -> list["Placed"]:
        """The people of each of so many centers, ascending."""
        order = np.argsort(self.centers, kind="stable")
        ends = np.searchsorted(self.centers[order], np.arange(1, centers))
        with_cells = len(self.cells) > 0
        parts = zip(
            *(
                np.split(part[order], ends)
                for part in (self.values, self.weights, self.centers, self.shared)
            ),
            *(
                np.split(part[order] if with_cells else part, ends if with_cells else ends * 0)
                for part in (self.cells, self.moments, self.scaled)
            ),
            strict=True,
        )
        return [Placed(*part) for part in parts]

    def on_grid(self, resolution: float) -> "Placed":
        """The same at multiples of a resolution, where people share values."""
        values = nearest_multiples(self.values, resolution)
        shared = np.ones(len(values), dtype=np.bool_)
        scaled = np.where(self.scaled == self.values, values, self.scaled)
        return replace(self, values=values, shared=shared, scaled=scaled)


def place(tables: Sequence[LatticeTable], lattice: Lattice, *, refilled: bool = True) -> Placed:
    """Pseudo-people for the tables of all centers.

    Cells that are refilled with the pooled shape have points of unequal weight; without that, a
    point is a person (in cells of more than 32, several).

    Examples
    --------
    >>> table = LatticeTable(np.array([2.0, 4.0]), [10, 10, 10], [1.2, 3.1, 0.1], [0.6, 0.5, 0.1])
    >>> placed = place([table], Lattice(step=1.0, lower=0.0))
    >>> moments = np.bincount(placed.cells, placed.weights * placed.scaled) / 10
    >>> moments.round(6)
    array([1.2, 3.1, 0.1])
    """
    cells = Cells.of(tables, lattice)
    cell = np.repeat(np.arange(len(cells.count)), cells.points)
    level = (np.arange(len(cell)) - cells.first[cell] + 0.5) / cells.points[cell]
    values = np.empty(len(cell))
    width = cells.high - cells.low
    bounded = np.isfinite(width)
    inside = bounded[cell]
    values[inside] = _between_limits(cells, cell[inside], level[inside])
    for i in np.flatnonzero(~bounded):
        values[cells.first[i] : cells.first[i] + cells.points[i]] = _open_cell(cells, int(i))
    shared = ((cells.sd == 0) & (cells.count > 1)) | (width == 0)
    fixed = np.where(width == 0, cells.low, cells.mean)
    values = np.where(((cells.sd == 0) | shared)[cell], fixed[cell], values)
    weights = (cells.count / cells.points)[cell]
    points = Points(values, weights, cell)
    shape = _shape(cells, points, lattice.lower) if refilled else None
    if shape is not None:
        points = refill(cells, points, shape)
    order = np.lexsort((points.weights, points.values))  # whatever the order of the centers
    cell = points.cell[order]
    return Placed(
        points.values[order],
        points.weights[order],
        cells.center[cell],
        shared[cell],
        cell,
        cells.moments[cell],
        cells.scale.at(cell).forth(points.values[order]),
        shape,
    )


def _shape(cells: Cells, points: Points, lower: float) -> Shape | None:
    """The shape of the people in cells of more than one value, where they have one."""
    several = cells.several[points.cell]
    values, weights = points.values[several], points.weights[several]
    order = np.lexsort((weights, values))
    values, weights = values[order], weights[order]
    if not can_smooth(values):
        return None
    shape = fit_shape(cells, values, weights, lower)
    return shape if len(shape.t) > 1 else None


def _between_limits(cells: Cells, cell: IntArray, level: FloatArray) -> FloatArray:
    """Beta quantiles, moved and stretched to the exact moments as far as the limits allow.

    Without an SD it is that of a density that falls off from the nearer limit nearly exponentially,
    which has the largest entropy: α = 1 where the mean is in the lower half, else β = 1. Without
    moments people are spread evenly, in an extreme cell so as to continue the neighbour's density.
    """
    from scipy.special import betaincinv

    width = np.where(np.isfinite(cells.high - cells.low), cells.high - cells.low, 0.0)
    low, size = np.where(width > 0, cells.low, 0.0), np.where(width > 0, width, 1.0)
    slope = _slopes(cells, width)
    continued = np.where(slope > 0, slope, 1.0) / (np.abs(slope) + 1)
    middle = np.where(np.isnan(cells.mean), continued, (cells.mean - low) / size)
    middle = np.clip(middle, 1e-6, 1 - 1e-6)
    binomial = middle * (1 - middle)
    discrete = cells.points / np.maximum(cells.points - 1, 1)  # points spread less than their Beta
    falling = binomial / (1 + 1 / np.minimum(middle, 1 - middle))
    variance = np.where(np.isnan(cells.sd), falling, (cells.sd / size) ** 2) * discrete
    total = np.clip(binomial / np.maximum(variance, 1e-12) - 1, 0.05, 1e6)
    total = np.where(np.isnan(cells.mean), np.abs(slope) + 1, total)
    x = betaincinv((middle * total)[cell], ((1 - middle) * total)[cell], level)
    return with_moments(low[cell] + size[cell] * x, cell, cells)


def _slopes(cells: Cells, width: FloatArray) -> FloatArray:
    """a of Beta(a, 1) in each first cell, −a of Beta(1, a) in each last one, 1 in all others.

    Such a cell of n people and width w has the density n·a/w at its inner limit: the neighbour's.
    """
    slope = np.ones(len(width))
    density = cells.count / np.where(width > 0, width, np.inf)
    same = cells.center[1:] == cells.center[:-1]
    first, last = np.append(True, ~same), np.append(~same, True)
    for ends, others, step, sign in ((first, last, 1, 1), (last, first, -1, -1)):
        i = np.flatnonzero(ends & ~others & (density > 0))
        i = i[density[i + step] > 0]
        slope[i] = sign * np.clip(density[i + step] / density[i], 1 / _STEEP, _STEEP)
    return slope


def _open_cell(cells: Cells, i: int) -> FloatArray:
    """A generalised Pareto tail beyond the one limit, on the cell's own scale.

    Without a mean it is exponential and continues the density of the neighbour.
    """
    n, mean, sd = int(cells.points[i]), float(cells.mean[i]), float(cells.sd[i])
    side = 1 if math.isinf(cells.high[i]) else -1
    scale = cells.scale.at(i)
    if math.isnan(mean):
        excess = -_continued(cells, i, i - side) * np.log1p(-(np.arange(n) + 0.5) / n)
        return np.asarray((cells.low[i] if side > 0 else cells.high[i]) + side * excess[::side])
    v = tail(n, abs(mean), sd)
    if v[-1] > _LONG:
        v = _heavy(n, abs(mean), sd)
    return np.clip(scale.back(side * v[::side]), cells.low[i], cells.high[i])


def _heavy(n: int, mean: float, sd: float) -> FloatArray:
    """Beta quantiles on the scale of an open cell, which ends at 1."""
    from scipy.special import betaincinv

    mean = min(mean, 1 - 1e-6)
    total = 1 / mean if math.isnan(sd) else max(mean * (1 - mean) / max(sd, 1e-9) ** 2 - 1, 0.05)
    levels = (np.arange(n) + 0.5) / n
    v = betaincinv(mean * total, (1 - mean) * total, levels)
    return np.asarray(np.minimum(v * mean / v.mean(), max(mean, _FAR)))


def _continued(cells: Cells, i: int, neighbour: int) -> float:
    """The mean of an exponential tail that continues the density of its neighbour."""
    beside = 0 <= neighbour < len(cells.count) and cells.center[neighbour] == cells.center[i]
    width = float(cells.high[neighbour] - cells.low[neighbour]) if beside else math.inf
    if not 0 < width < math.inf:
        raise ValueError("a table of one or two open cells must tell their means, got none")
    return width * float(cells.count[i] / cells.count[neighbour])


def tail(n: int, mean: float, sd: float) -> FloatArray:
    """n excesses of a generalised Pareto tail with this mean and SD, ascending.

    Where the SD is not told, one excess dominates it: the shape is the one at which the largest
    carries three quarters of the squares.

    Examples
    --------
    >>> excess = tail(12, 1.0, 1.5)
    >>> round(float(excess.mean()), 6), round(float(excess.std()), 2)
    (1.0, 1.5)
    """
    if mean <= 0:
        return np.zeros(n)
    variation, dominance = _variation(n)
    figure, target = (dominance, _DOMINATED) if math.isnan(sd) else (variation, sd / mean)
    excess = _pareto(n, np.array([np.interp(target, figure, _SHAPES)]))[0]
    return np.asarray(mean * excess / excess.mean())


@lru_cache(maxsize=64)
def _variation(n: int) -> tuple[FloatArray, FloatArray]:
    """SD/mean of n placed excesses, and the largest one's share of the squares, per shape."""
    excess = _pareto(n, _SHAPES)
    off = excess - excess.mean(axis=1, keepdims=True)
    squares = np.maximum((off**2).sum(axis=1), 1e-300)
    share = np.maximum.accumulate(off[:, -1] ** 2 / squares)
    return np.sqrt(squares / n) / excess.mean(axis=1), share


def _pareto(n: int, shapes: FloatArray) -> FloatArray:
    """((1 − u)^(−ξ) − 1)/ξ at the levels u, a row per shape ξ."""
    exponential = -np.log1p(-(np.arange(n) + 0.5) / n)
    shapes = np.where(np.abs(shapes) < 1e-9, 1e-9, shapes)[:, None]
    return np.asarray(np.expm1(shapes * exponential) / shapes)
