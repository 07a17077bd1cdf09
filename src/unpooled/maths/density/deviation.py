"""Which center differs from all others, and where: their distributions side by side.

At a center's own boundaries its distribution function is exact. It is compared there with that of
the placed people of all other centers. The largest difference is judged by Kolmogorov and
Smirnov's two-sample test [1]_; looking at some points alone, it finds differences a little too
seldom, never too often. Several centers are adjusted for by Holm's method.

References
----------
.. [1] Smirnov (1948), Annals of Mathematical Statistics 19, 279-281.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unpooled.maths.arrays import BoolArray, FloatArray
from unpooled.maths.density.placing import Placed
from unpooled.maths.lattice.lattice import LatticeTable
from unpooled.maths.multiplicity import holm


@dataclass(frozen=True, slots=True)
class Deviation:
    """Where a center's share of people at or below a value differs most from the others'.

    `difference` is its share minus theirs, `z` the same in standard errors; `p_value` is that of
    the largest difference, `adjusted` by Holm over all centers.
    """

    at: float
    difference: float
    z: float
    p_value: float
    adjusted: float


def deviations(centers: Sequence[Sequence[LatticeTable]], placed: Placed) -> list[Deviation | None]:
    """One entry per center, in order; None where there is nobody else, or no boundary.

    `placed` are the people of all tables, in their order; each stays within its cell, so at a
    table's own boundaries its part of them is what the center told.

    Examples
    --------
    >>> from unpooled.maths.lattice.cutting import lattice_table
    >>> from unpooled.maths.lattice.lattice import Lattice
    >>> from unpooled.maths.density.placing import place
    >>> lattice = Lattice(step=5.0)
    >>> draws = lambda values, n: np.linspace(0, 1, n + 2)[1:-1]  # a center's are keyed
    >>> own = [lattice_table(np.arange(100.0) + shift, lattice, 10, draws) for shift in (0, 0, 50)]
    >>> found = deviations([[table] for table in own], place(own, lattice))
    >>> [deviation.adjusted < 0.001 for deviation in found]
    [True, True, True]
    """
    everybody = np.concatenate(([0.0], np.cumsum(placed.weights)))
    ends = np.cumsum([len(tables) for tables in centers])
    deviating = [
        _deviation(tables, placed, (placed.centers >= end - len(tables)) & (placed.centers < end),
                   everybody)
        for tables, end in zip(centers, ends, strict=True)
    ]  # fmt: skip
    tested = [deviation for deviation in deviating if deviation is not None]
    logs = holm([math.log(max(d.p_value, 1e-300)) for d in tested]) if tested else np.zeros(0)
    adjusted = iter(np.exp(logs).tolist())
    return [
        None if d is None else Deviation(d.at, d.difference, d.z, d.p_value, next(adjusted))
        for d in deviating
    ]


def _deviation(
    tables: Sequence[LatticeTable], placed: Placed, here: BoolArray, everybody: FloatArray
) -> Deviation | None:
    from scipy.special import kolmogorov

    edges = np.unique(np.concatenate([table.edges for table in tables]))
    people = float(sum(table.people for table in tables))
    others = float(everybody[-1]) - people
    if not len(edges) or others < 0.5:
        return None
    of_center = np.concatenate(([0.0], np.cumsum(placed.weights[here])))
    reached_here = of_center[np.searchsorted(placed.values[here], edges, "right")]
    reached = everybody[np.searchsorted(placed.values, edges, "right")]
    below, theirs = reached_here / people, np.clip((reached - reached_here) / others, 0.0, 1.0)
    difference = below - theirs
    worst = int(np.argmax(np.abs(difference)))
    both = 1 / people + 1 / others
    pooled = float(reached[worst]) / (people + others)
    error = math.sqrt(max(pooled * (1 - pooled), 1e-12) * both)
    size = float(difference[worst])
    p_value = float(kolmogorov(abs(size) / math.sqrt(both)))
    return Deviation(float(edges[worst]), size, size / error, p_value, p_value)
