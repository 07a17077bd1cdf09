"""Values that more people share than their neighbours do: heaps, zeros, codes that mean missing."""

from collections.abc import Mapping, Sequence

import numpy as np

from unpooled.maths.arrays import FloatArray
from unpooled.maths.density.placing import Placed
from unpooled.maths.lattice.lattice import Lattice, LatticeTable

_HEAP = 0.05  # of the people share a value
_PEAK = 3.0  # times as many as share a neighbour
_EDGES, _MOST = 12, 0.5  # edges, of which so many are beside a multiple of ten, not one of five
_STEP = 2.0  # of a lattice on which multiples of ten are one of five points
_NORMAL = 1.349  # the middle half of a normal distribution, in standard deviations


def shared_in(tables: Sequence[LatticeTable]) -> dict[float, float]:
    """The values that whole cells share, and how many people have each.

    Examples
    --------
    >>> shared_in([LatticeTable([0.5], [12, 30], [0.0, 0.3], [0.0, 0.2])])
    {0.0: 12.0}
    """
    shared: dict[float, float] = {}
    for table in tables:
        for cell in np.flatnonzero(table.sds == 0).tolist():
            value = float(table.means[cell])
            shared[value] = shared.get(value, 0.0) + float(table.counts[cell])
    return shared


def heaps(
    shared: Mapping[float, float], people: Placed, resolution: float | None
) -> dict[float, float]:
    """Of values that whole cells share those that stand out from their neighbours.

    Examples
    --------
    >>> values, weights = np.arange(10.0), np.append(700.0, np.full(9, 100.0))
    >>> people = Placed(values, weights, np.zeros(10, dtype=np.int64), np.full(10, True))
    >>> heaps({0.0: 700.0, 5.0: 100.0}, people, 1.0)
    {0.0: 700.0}
    """
    order = np.argsort(people.values, kind="stable")
    values, weights = people.values[order], people.weights[order]
    reached = np.cumsum(weights) / max(people.people, 1.0)
    low, high = values[np.minimum(np.searchsorted(reached, [0.25, 0.75]), len(values) - 1)]
    large = {}
    for value, count in shared.items():
        neighbour = 0.0
        if resolution is not None:
            reach = max(0.5 * float(high - low) / _NORMAL, 2 * resolution)
            near = np.abs(values - value) <= reach
            around = max(float(weights[near].sum()) - count, 0.0)
            neighbour = around * resolution / (2 * reach)
        if count >= max(_HEAP * people.people, _PEAK * neighbour):
            large[value] = count
    return large


def are_at_tens(edges: FloatArray, lattice: Lattice) -> bool:
    """Whether whole numbers are read off to tens: then most edges of tables are beside these.

    Examples
    --------
    >>> lattice = Lattice(step=2.0, origin=0.5, resolution=1.0)
    >>> are_at_tens(np.arange(100.5, 260, 10), lattice)
    True
    >>> are_at_tens(np.arange(100.5, 160, 4), lattice)
    False
    """
    if lattice.resolution != 1.0 or lattice.step > _STEP or len(edges) < _EDGES:
        return False
    beside = np.isclose(np.abs((edges + 5) % 10 - 5), 0.5)
    return bool(beside.mean() > _MOST)
