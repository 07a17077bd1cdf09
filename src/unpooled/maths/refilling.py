"""Refill cells with the shape that all centers together show inside them.

The people of a cell take the smooth pooled distribution within its limits, tilted by
exp(θ₁v + θ₂v²) to the cell's own mean and SD, as far as these are told: of all distributions with
these moments the one nearest to the pooled one [1]_.

References
----------
.. [1] Csiszár (1975), Annals of Probability 3, 146-158.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unpooled.maths.arrays import FloatArray, IntArray
from unpooled.maths.cells import Cells
from unpooled.maths.shape import Shape

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
    >>> from unpooled.maths.lattice import Lattice, LatticeTable
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
