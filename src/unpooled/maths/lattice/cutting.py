"""Cutting a center's people into a table on the lattice: cells of at least K people.

After how many people a boundary comes is the center's secret. Were it public, then where b people
lie below a boundary that was aimed behind the r-th, |b − r| of them would lie within half a step
of it. So each cell gets K people, and the others are dealt by chance: whatever number of people is
told below a boundary, it may have been aimed just there.
"""

import math
from collections.abc import Callable
from typing import get_args

import numpy as np
import numpy.typing as npt

from unpooled.maths import big_arrays
from unpooled.maths.arrays import FloatArray, IntArray
from unpooled.maths.lattice.cells import (
    Moments,
    cell_moments,
    nowhere,
    rounded,
    telling_cells,
)
from unpooled.maths.lattice.lattice import Lattice, LatticeTable

_ROOM = 1.15  # cells of 1.15 K people stay at K or more when their boundaries move to the lattice
_FEWER = 1  # cell than there is room for: three at 56 people, as private as the paper's table
_EVENLY = 3  # draws for each cell: with 1 cells differ more, which costs a tenth at hard edges
_MOST_CELLS = 1000  # bounds a message; a lattice of 0.1 SD has some hundred points in use

Draws = Callable[[FloatArray, int], FloatArray]
"""So many numbers in [0, 1) that nobody else can know, for the same values always the same."""


def lattice_table(
    values: FloatArray, lattice: Lattice, k: int, draws: Draws, moments: Moments = "all"
) -> LatticeTable:
    """The table of one center's ascending values.

    Boundaries move to the nearest lattice point (the first one that leaves K people would be biased
    to one side); cells of fewer than K people join their smaller neighbour. Where that leaves one
    cell without limits, a boundary is looked for that leaves K people on both sides. `draws` are
    the center's secret.

    Examples
    --------
    >>> draws = lambda values, n: np.linspace(0, 1, n + 2)[1:-1]  # a center's are keyed
    >>> table = lattice_table(np.arange(40.0), Lattice(step=1.0), 10, draws)
    >>> table.edges, table.counts, table.means
    (array([13., 26.]), array([14, 13, 13]), array([-0.099, 20.02 ,  0.107]))
    """
    fewer = 0 if moments == "all" else _FEWER  # `all` is for precision
    return _table(values, lattice, k, draws, moments, least=2 * k, fewer=fewer)


def status_table(
    values: FloatArray, lattice: Lattice, k: int, draws: Draws, moments: Moments = "all"
) -> LatticeTable:
    """The table of times within a declared lower and upper limit, of at least K people.

    Between two limits one cell alone says enough to place people, so K of them have a table.

    Examples
    --------
    >>> draws = lambda values, n: np.linspace(0, 1, n + 2)[1:-1]  # a center's are keyed
    >>> lattice = Lattice(step=1.0, lower=0.0, upper=20.0)
    >>> table = status_table(np.arange(12.0), lattice, 10, draws)
    >>> table.edges, table.counts, table.means
    (array([], dtype=float64), array([12]), array([5.5]))
    """
    if math.isinf(lattice.lower) or math.isinf(lattice.upper):
        raise ValueError("times must have a lower and an upper limit")
    return _table(values, lattice, k, draws, moments, least=k, fewer=0)


def _table(
    values: FloatArray,
    lattice: Lattice,
    k: int,
    draws: Draws,
    moments: Moments,
    *,
    least: int,
    fewer: int,
) -> LatticeTable:
    values = np.asarray(values, dtype=np.float64)
    _check(values, lattice, k, moments, least)
    ranks = _ranks(values, k, fewer, draws)
    table = table_at(_candidates(values, lattice, ranks), values, lattice, k, moments)
    if nowhere(table.edges, lattice):  # say at least on which side of a point people are
        aim = float(values[ranks[len(ranks) // 2]])
        table = table_at(_one_edge(values, lattice, k, aim), values, lattice, k, moments)
    return table


def table_at(
    edges: FloatArray, values: FloatArray, lattice: Lattice, k: int, moments: Moments = "all"
) -> LatticeTable:
    """The table of ascending values at these edges, without those that leave fewer than K people.

    Examples
    --------
    >>> table_at(np.array([4.0, 12.0]), np.arange(40.0), Lattice(step=1.0), k=10).counts
    array([13, 27])
    """
    ends = np.concatenate((np.searchsorted(values, edges, "right"), [len(values)]))
    kept, counts = _merge(np.diff(ends, prepend=0), k, _atoms_alone(edges, lattice))
    edges = edges[kept]
    scale = lattice.open_scale(edges)
    means, sds = np.full(len(counts), np.nan), np.full(len(counts), np.nan)
    ends = np.cumsum(counts)
    for cell in np.flatnonzero(telling_cells(edges, lattice.step, moments)).tolist():
        here = values[ends[cell] - counts[cell] : ends[cell]]
        means[cell], sds[cell] = cell_moments(here, scale.at(cell), k)
    if nowhere(edges, lattice) and sds[0] != 0:
        means[0] = sds[0] = np.nan
    return LatticeTable(edges, counts, *rounded(edges, lattice, counts, means, sds), scale)


def _check(values: FloatArray, lattice: Lattice, k: int, moments: Moments, least: int) -> None:
    if moments not in get_args(Moments):
        raise ValueError(f"moments must be one of {get_args(Moments)}, got {moments!r}")
    if k < 1 or len(values) < least:
        name = "k" if least == k else "2k"
        raise ValueError(f"values must hold at least {name} = {least} people, got {len(values)}")
    falls = big_arrays.count(lambda later, before: ~(later >= before), values[1:], values[:-1])
    if falls or not np.isfinite(values[[0, -1]]).all():
        raise ValueError("values must be finite and ascending")
    if values[0] < lattice.lower or values[-1] > lattice.upper:
        raise ValueError("values must lie within the declared limits")


def _ranks(values: FloatArray, k: int, fewer: int, draws: Draws) -> IntArray:
    """After how many people boundaries come: K in each cell, and the others as they are drawn.

    One of three sorted draws makes Dirichlet's shares: each way to deal the others can happen.
    """
    n = len(values)
    free = max((n + 1) // k - 1, 2)  # with K − 1 to deal, each number of people can be aimed at
    cells = min(max(int(n / (_ROOM * k)) - fewer, 2), free, n // k, _MOST_CELLS)
    even = np.arange(1, cells) * n // cells
    drawn = np.sort(draws(np.concatenate(([n, k], values[even])), _EVENLY * cells - 1))
    others = np.floor(drawn[_EVENLY - 1 :: _EVENLY] * (n - cells * k + 1))
    return np.arange(1, cells) * k + others.astype(np.int64)


def _candidates(values: FloatArray, lattice: Lattice, ranks: IntArray) -> FloatArray:
    """Boundaries on the lattice, and both sides of every atom."""
    middles = (values[ranks - 1] + values[ranks]) / 2
    aside = 1e-9 * lattice.step  # a shared value lies between two points: both are its nearest
    edges = np.concatenate([lattice.snap(middles + side) for side in (-aside, aside)])
    edges = np.unique(np.concatenate((edges, lattice.atom_sides.ravel())))
    return edges[(edges >= lattice.lower) & (edges < lattice.upper)]


def _one_edge(values: FloatArray, lattice: Lattice, k: int, aim: float) -> FloatArray:
    """The point nearest to `aim` that leaves K people on either side, if there is one."""
    low, high = values[[k - 1, -k]]
    nearest = np.round((np.array([low, aim, high]) - lattice.origin) / lattice.step)
    points = np.unique(lattice.origin + lattice.step * (nearest[:, None] + [-1, 0, 1]))
    points = points[(points >= low) & (points < high)]
    return np.asarray(points[np.argsort(np.abs(points - aim))[:1]])


def _atoms_alone(edges: FloatArray, lattice: Lattice) -> npt.NDArray[np.bool_]:
    """Which cells between these edges hold one atom and nothing else."""
    low, high = lattice.atom_sides.T
    first = low[np.isin(lattice.atoms, lattice.lower)]  # an atom at the limit: the first cell
    limits = np.concatenate((first if len(first) else [lattice.lower], edges, [lattice.upper]))
    ends = np.minimum(high, lattice.upper)
    return np.asarray(((limits[:-1, None] == low) & (limits[1:, None] == ends)).any(axis=1))


def _merge(counts: IntArray, k: int, atoms: npt.NDArray[np.bool_]) -> tuple[IntArray, IntArray]:
    """Which edges stay, and the counts between them, when small cells join a neighbour.

    They join the smaller one, but an atom of K people only where there is no other.
    """
    left, people = list(range(len(counts) - 1)), counts.tolist()
    apart = (atoms & (counts >= k)).tolist()
    while len(people) > 1 and (least := min(people)) < k:
        i = people.index(least)
        beside = [j for j in (i - 1, i + 1) if 0 <= j < len(people)]
        i = max(i, min(beside, key=lambda j: (apart[j], people[j], j)))
        apart[i - 1 : i + 1] = [any(apart[i - 1 : i + 1]) and 0 in people[i - 1 : i + 1]]
        people[i - 1] += people.pop(i)
        left.pop(i - 1)
    return np.array(left, dtype=np.int64), np.array(people, dtype=np.int64)
