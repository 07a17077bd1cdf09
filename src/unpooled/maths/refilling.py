"""Refill wide cells with the shape that the other centers show inside them.

A small center's cell may be so wide that two moments cannot tell its shape (two groups with a gap,
say), where the boundaries of larger centers can. Its people then take the pooled distribution
within the cell, tilted by exp(θ₁v + θ₂v²) to the cell's own mean and SD: of all distributions with
these moments the one nearest to the pooled one [1]_.

References
----------
.. [1] Csiszár (1975), Annals of Probability 3, 146-158.
"""

import numpy as np
import numpy.typing as npt

from unpooled.maths.arrays import FloatArray, IntArray
from unpooled.maths.cells import Cells, with_moments

_BOUNDARIES = 8  # inside a cell: fewer do not tell more of a shape than two moments
_NODES = 24  # of the pooled distribution within a cell
_STEPS = 10  # of Newton's method
_CLOSE = 0.02  # SDs from the moments asked for: beyond, the first placement stays


def refill(cells: Cells, values: FloatArray) -> FloatArray:
    """The points, in the order of their cells, with those of wide cells placed anew.

    Examples
    --------
    >>> from unpooled.maths.lattice import Lattice, LatticeTable
    >>> table = LatticeTable(np.array([0.0]), [10, 10], [-1.0, 1.0], [0.5, 0.5])
    >>> refill(Cells.of([table], Lattice(1.0)), np.linspace(-2, 2, 20)).shape
    (20,)
    """
    wide = _wide(cells)
    if not wide.size:
        return values
    nodes = _pooled_nodes(cells, values, wide)
    mean = np.where(np.isnan(cells.mean[wide]), nodes.mean(axis=1), cells.mean[wide])
    scale = nodes.std(axis=1)
    varied = scale > 0
    wide, nodes, mean, scale = wide[varied], nodes[varied], mean[varied], scale[varied]
    weights, close = _tilt((nodes - mean[:, None]) / scale[:, None], (cells.sd[wide] / scale) ** 2)
    filled = values.copy()
    for i, at, weight in zip(wide[close], nodes[close], weights[close], strict=True):
        level = (np.arange(cells.points[i]) + 0.5) / cells.points[i]
        x = np.interp(level, np.cumsum(weight) - weight / 2, at)
        part = slice(cells.first[i], cells.first[i] + cells.points[i])
        filled[part] = with_moments(x, np.full(len(x), i), cells)
    return filled


def _wide(cells: Cells) -> IntArray:
    """Cells with enough boundaries of other centers inside; open ones only if they tell an SD.

    An SD is withheld in a heavy tail, and the tilt knows nothing of that.
    """
    edges = np.sort(cells.high[np.isfinite(cells.high)])
    inside = np.searchsorted(edges, cells.high, "left") - np.searchsorted(edges, cells.low, "right")
    bounded = np.isfinite(cells.high - cells.low)
    usable = bounded | ~np.isnan(cells.sd)
    return np.flatnonzero((inside >= _BOUNDARIES) & usable & (cells.sd != 0))


def _pooled_nodes(cells: Cells, values: FloatArray, wide: IntArray) -> FloatArray:
    """Equally likely points of the pooled distribution within each wide cell, a row per cell."""
    order = np.argsort(values, kind="stable")
    points = values[order]
    weights = np.repeat(cells.count / cells.points, cells.points)[order]
    reached = np.concatenate(([0.0], np.cumsum(weights)))
    low = reached[np.searchsorted(points, cells.low[wide], "left")]
    high = reached[np.searchsorted(points, cells.high[wide], "right")]
    levels = low[:, None] + (high - low)[:, None] * (np.arange(_NODES) + 0.5) / _NODES
    nodes = np.interp(levels, reached[1:] - weights / 2, points)
    return np.asarray(np.clip(nodes, cells.low[wide, None], cells.high[wide, None]))


def _tilt(v: FloatArray, square: FloatArray) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Weights of the nodes v with mean 0 and this mean square, by Newton's method on the dual.

    A NaN square is left free. Also says which rows came close to what was asked.
    """
    free = np.isnan(square)
    first, second = np.zeros(len(v)), np.zeros(len(v))
    for _ in range(_STEPS):
        log = v * first[:, None] + v**2 * second[:, None]
        weights = np.exp(log - log.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        m1, m2, m3, m4 = (np.sum(weights * v**power, axis=1) for power in (1, 2, 3, 4))
        miss = np.where(free, 0.0, m2 - square)
        a, b = m2 - m1**2 + 1e-9, np.where(free, 0.0, m3 - m1 * m2)
        d = np.where(free, 1.0, m4 - m2**2 + 1e-9)
        steps = np.array([d * m1 - b * miss, a * miss - b * m1]) / (a * d - b**2)
        steps *= np.minimum(1.0, 2.0 / np.maximum(np.abs(steps).max(axis=0), 1e-12))
        first, second = first - steps[0], second - steps[1]
    return weights, np.maximum(np.abs(m1), np.abs(miss)) < _CLOSE
