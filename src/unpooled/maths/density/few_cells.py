"""Tables of one or two cells, completed by the mean and SD of their people.

Such a table alone does not say where its people are. With their mean and SD, and the distribution
of everybody else, it does: in each cell everybody's distribution is weighted by exp(a·v + b·v²),
so that the cell keeps its count and all cells together have that mean and SD. Of all distributions
with these counts and moments this is the one nearest to everybody's (least relative entropy).
"""

from dataclasses import dataclass, replace

import numpy as np

from unpooled.maths.arrays import FloatArray, IntArray
from unpooled.maths.density.placing import Placed
from unpooled.maths.lattice.lattice import Lattice, LatticeTable
from unpooled.maths.moments import MeanSD

_STEPS = 40  # of Newton's method
_FARTHEST = 30.0  # a and b, in SDs of everybody
_NODES = 300  # that stand for everybody


def nodes_of(values: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Few points that stand for many people, ascending, of equal weight but for the outermost.

    Examples
    --------
    >>> nodes, weights = nodes_of(np.arange(1000.0), np.ones(1000))
    >>> len(nodes) == len(weights) <= 300, round(float(nodes @ weights), 1)
    (True, 499.5)
    """
    total = float(weights.sum())
    if len(values) <= _NODES:
        return values, weights / total
    reached = np.cumsum(weights) / total
    part = np.minimum((reached * _NODES).astype(np.int64), _NODES - 1)
    people = np.bincount(part, weights, _NODES)
    means = np.bincount(part, weights * values, _NODES)
    some = people > 0
    return means[some] / people[some], people[some] / total


def normal_nodes(people: MeanSD, lattice: Lattice) -> tuple[FloatArray, FloatArray]:
    """Where nobody else is known: a normal distribution, a gamma one beyond a lower limit.

    Examples
    --------
    >>> nodes, weights = normal_nodes(MeanSD(20, 5.0, 2.0), Lattice(step=1.0))
    >>> round(float(nodes @ weights), 6)
    5.0
    """
    from scipy.special import gammaincinv, ndtri

    levels = (np.arange(_NODES) + 0.5) / _NODES
    weights = np.full(_NODES, 1 / _NODES)
    above = people.mean - lattice.lower
    if 0 < above < 3 * people.sd:
        shape = (above / people.sd) ** 2
        return lattice.lower + gammaincinv(shape, levels) * above / shape, weights
    return np.clip(people.mean + people.sd * ndtri(levels), lattice.lower, lattice.upper), weights


@dataclass(frozen=True, slots=True)
class Completed:
    """A table with the mean and SD of each cell, and its people as they are placed."""

    table: LatticeTable
    placed: Placed


def completed(
    table: LatticeTable,
    people: MeanSD | None,
    nodes: FloatArray,
    weights: FloatArray,
    lattice: Lattice,
) -> Completed:
    """The table with the mean and SD of each cell; one cell becomes three of about equal counts.

    Parameters
    ----------
    table
        What a center told, of few cells.
    people
        Mean and SD of all its people, where they are told.
    nodes, weights
        The distribution of everybody (`nodes_of`).

    Examples
    --------
    >>> nodes = np.linspace(-3, 9, 300)
    >>> two = LatticeTable(np.array([2.0]), [10, 10], [np.nan] * 2, [np.nan] * 2)
    >>> found = completed(two, MeanSD(20, 3.0, 2.0), nodes, np.full(300, 1 / 300), Lattice(0.5))
    >>> round(float(found.placed.weights @ found.placed.values / 20), 6)
    3.0
    """
    limits = table.limits or (lattice.lower, lattice.upper)
    lattice = replace(lattice, lower=limits[0], upper=limits[1])
    inside = (nodes > limits[0]) & (nodes < limits[1])
    nodes, weights = nodes[inside], weights[inside]
    counts = table.counts.astype(np.float64)
    nodes, weights, cell = _in_every_cell(table.edges, len(counts), nodes, weights, lattice)
    tilted = _tilted(nodes, weights, cell, counts, people)
    if len(counts) == 1:
        edges = _thirds(nodes, tilted, lattice)
        table = _cut(table, edges, nodes, tilted, lattice)
        cell = np.searchsorted(table.edges, nodes)
    scale = lattice.open_scale(table.edges)
    scaled = scale.at(cell).forth(nodes)
    n = len(table.counts)
    per_cell = np.maximum(np.bincount(cell, tilted, n), 1e-300)
    mean = np.bincount(cell, tilted * scaled, n) / per_cell
    sd = np.sqrt(np.bincount(cell, tilted * (scaled - mean[cell]) ** 2, n) / per_cell)
    with_mean = ~np.isnan(table.means)
    whole = replace(
        table,
        means=np.where(with_mean, table.means, mean),
        sds=np.where(with_mean, table.sds, np.where(sd > 0, sd, np.nan)),
        scale=scale,
    )
    nobody = np.zeros(len(nodes), dtype=np.int64)
    return Completed(whole, Placed(nodes, tilted, nobody, nobody > 0, cell, nobody, scaled))


def matched(people: Placed, table: LatticeTable, whole: MeanSD | None) -> Placed:
    """People whose cells tell no mean, moved in these so that all have the mean and SD of all.

    Within each of these cells people are weighted by exp(a·v + b·v²); all others stay.

    Examples
    --------
    >>> values, nobody = np.arange(20.0), np.zeros(20, dtype=np.int64)
    >>> people = Placed(values, np.ones(20), nobody, nobody > 0)
    >>> table = LatticeTable([9.5], [10, 10], [np.nan, 14.5], [np.nan, 2.87])
    >>> moved = matched(people, table, MeanSD(20, 10.0, 5.5))
    >>> round(float(moved.weights @ moved.values / 20), 3)
    10.0
    """
    blind = np.isnan(table.means)
    if table.scale is not None:
        blind |= ~np.isnan(table.scale.unit)
    cell = np.searchsorted(table.edges, people.values)
    loose = blind[cell]
    if whole is None or not whole.sd > 0 or not loose.any():
        return people
    block = np.where(loose, cell, len(blind) + np.arange(len(cell)))
    _, place = np.unique(block, return_inverse=True)
    counts = np.bincount(place, people.weights).astype(np.float64)
    weights = _tilted(people.values, people.weights, place, counts, whole)
    return replace(people, weights=weights)


def _in_every_cell(
    edges: FloatArray, cells: int, nodes: FloatArray, weights: FloatArray, lattice: Lattice
) -> tuple[FloatArray, FloatArray, IntArray]:
    """The nodes with their cells; a cell where nobody else is gets some beside its edge."""
    cell = np.searchsorted(edges, nodes)
    lacking = np.flatnonzero(np.bincount(cell, minlength=cells) < 2)
    for i in lacking:
        low, high = _ends(edges, int(i), lattice)
        more = np.linspace(low, high, 6)[1:-1]
        nodes, weights = np.append(nodes, more), np.append(weights, np.full(4, 1e-3))
    order = np.argsort(nodes, kind="stable")
    nodes, weights = nodes[order], weights[order]
    return nodes, weights, np.asarray(np.searchsorted(edges, nodes), dtype=np.int64)


def _ends(edges: FloatArray, cell: int, lattice: Lattice) -> tuple[float, float]:
    """Where a cell begins and ends, an open one within some steps."""
    width = 10 * lattice.step
    limits = lattice.limits(edges)
    low, high = float(limits[cell]), float(limits[cell + 1])
    low = low if np.isfinite(low) else (high if np.isfinite(high) else 0.0) - width
    return low, high if np.isfinite(high) else low + width


def _tilted(
    nodes: FloatArray,
    weights: FloatArray,
    cell: IntArray,
    counts: FloatArray,
    people: MeanSD | None,
) -> FloatArray:
    """Weights of the nodes: each cell with its count, all with mean and SD as far as can be."""
    base = weights * (counts / np.maximum(np.bincount(cell, weights), 1e-300))[cell]
    if people is None or not people.sd > 0:
        return base
    n = float(counts.sum())
    middle = float(weights @ nodes / weights.sum())
    spread = float(np.sqrt(weights @ (nodes - middle) ** 2 / weights.sum())) or 1.0
    v = (nodes - middle) / spread
    off = (people.mean - middle) / spread
    target = np.array([off, off**2 + (people.sd / spread) ** 2 * (people.n - 1) / people.n])
    moments, tilt = np.array([v, v * v]), np.zeros(2)
    for _ in range(_STEPS):
        power = tilt @ moments
        most = np.full(len(counts), -np.inf)
        np.maximum.at(most, cell, power)
        tilted = base * np.exp(power - most[cell])
        tilted *= (counts / np.maximum(np.bincount(cell, tilted, len(counts)), 1e-300))[cell]
        miss = target - moments @ tilted / n
        if np.abs(miss).max() < 1e-8:
            break
        inside = np.array([np.bincount(cell, tilted * m, len(counts)) / counts for m in moments])
        centred = moments - inside[:, cell]
        curvature = (centred * tilted) @ centred.T / n + 1e-9 * np.eye(2)
        step = np.linalg.solve(curvature, miss)
        step *= min(1.0, 1.0 / max(float(np.abs(step).max()), 1e-12))
        tilt = np.clip(tilt + step, -_FARTHEST, _FARTHEST)
    return np.asarray(tilted)


def _thirds(nodes: FloatArray, weights: FloatArray, lattice: Lattice) -> FloatArray:
    """Points of the lattice that leave about a third of the people on either side."""
    reached = np.cumsum(weights) / weights.sum()
    at = nodes[np.minimum(np.searchsorted(reached, [1 / 3, 2 / 3]), len(nodes) - 1)]
    points = np.unique(lattice.snap(at))
    low, high = max(lattice.lower, nodes[0]), min(lattice.upper, nodes[-1])
    return np.asarray(points[(points > low) & (points < high)])


def _cut(
    table: LatticeTable, edges: FloatArray, nodes: FloatArray, weights: FloatArray, lattice: Lattice
) -> LatticeTable:
    """The same people in several cells of whole counts."""
    people = table.people
    reached = np.array([weights[nodes <= edge].sum() for edge in edges]) / weights.sum()
    ends = np.concatenate(([0.0], np.round(people * reached), [float(people)]))
    kept = np.flatnonzero((np.diff(ends[:-1]) >= 1) & (ends[1:-1] < people))
    edges, ends = edges[kept], np.concatenate(([0.0], ends[1:-1][kept], [float(people)]))
    nothing = np.full(len(edges) + 1, np.nan)
    return replace(
        table,
        edges=edges,
        counts=np.diff(ends).astype(np.int64),
        means=nothing,
        sds=nothing,
        scale=lattice.open_scale(edges),
    )
