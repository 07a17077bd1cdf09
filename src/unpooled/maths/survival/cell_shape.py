"""Where in their cells people leave, when centers tell counts alone: the shape that all have.

Cells of different centers and arms overlap, so together they say more than each. Their people are
shared out over a grid by EM, as for interval-censored times [1]_, and smoothed after each step
[2]_: without that the shape would be a few spikes.

References
----------
.. [1] Turnbull (1976), Journal of the Royal Statistical Society B 38, 290-295.
.. [2] Silverman, Jones, Wilson, Nychka (1990), Journal of the Royal Statistical Society B 52,
   271-324.
"""

from collections.abc import Sequence

import numpy as np

from unpooled.maths.arrays import FloatArray, IntArray
from unpooled.maths.lattice.lattice import Lattice, LatticeTable

_GRID = 240
_WIDTH = 51  # of the grid, over which is smoothed: a fifth of the follow-up
_STEPS = 40


def spread_by_shape(
    values: FloatArray, cell: IntArray, tables: Sequence[LatticeTable], lattice: Lattice
) -> FloatArray:
    """The values, ascending in each of the tables' cells; those of tables without means anew.

    Examples
    --------
    >>> early = LatticeTable(np.array([10.0, 20.0]), [30, 10, 10], [np.nan] * 3, [np.nan] * 3)
    >>> values, cell = np.linspace(20.5, 59.5, 10), np.full(10, 2)
    >>> spread_by_shape(values, cell, [early], Lattice(1.0, lower=0.0, upper=60.0)).round()
    array([21., 23., 25., 27., 30., 33., 37., 42., 48., 56.])
    """
    limits = [lattice.limits(table.edges) for table in tables]
    low = np.concatenate([ends[:-1] for ends in limits])
    high = np.concatenate([ends[1:] for ends in limits])
    people = np.concatenate([table.counts for table in tables]).astype(np.float64)
    blank = np.concatenate(
        [np.full(len(table.counts), bool(np.isnan(table.means).all())) for table in tables]
    )
    grid = np.linspace(lattice.lower, lattice.upper, _GRID + 1)
    wide = high - low > (grid[1] - grid[0]) / 2  # others are values of their own
    blank &= wide
    if not blank.any():
        return values
    first, last = np.searchsorted(grid, low, "right") - 1, np.searchsorted(grid, high)
    reached = _shape(first[wide], last[wide], people[wide])
    order = np.lexsort((values, cell))
    number = cell[order]
    begin = np.searchsorted(number, number)
    size = np.searchsorted(number, number, "right") - begin
    level = (np.arange(len(number)) - begin + 0.5) / size
    start, end = (np.interp(ends, grid, reached)[number] for ends in (low, high))
    moved = np.interp(start + level * (end - start), reached, grid)
    spread = np.array(values)
    here = blank[number]
    spread[order[here]] = np.clip(moved, low[number], high[number])[here]
    return spread


def _shape(first: IntArray, last: IntArray, people: FloatArray) -> FloatArray:
    """The share of people up to each point of the grid; a cell has the steps first..last−1."""
    last = np.maximum(last, first + 1)
    kernel = np.ones(_WIDTH) / _WIDTH
    density: FloatArray = np.full(_GRID, 1 / _GRID)
    for _ in range(_STEPS):
        reached = np.concatenate(([0.0], np.cumsum(density)))
        each = people / np.maximum(reached[last] - reached[first], 1e-12)
        drawn = np.bincount(first, each, _GRID + 1) - np.bincount(last, each, _GRID + 1)
        density = np.maximum(density * np.cumsum(drawn)[:-1], 1e-9)
        density = np.convolve(np.pad(density, _WIDTH // 2, mode="edge"), kernel, "valid")
        density = density / density.sum()
    return np.concatenate(([0.0], np.cumsum(density)))
