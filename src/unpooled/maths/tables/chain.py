"""The chain: the table as it grows from center to center, and what each of them told."""

from collections.abc import Mapping

import numpy as np

from unpooled.maths.arrays import FloatArray, IntArray
from unpooled.maths.tables.joining import Join, Pools, reallocate
from unpooled.maths.tables.table import Table
from unpooled.maths.tables.test_counts import CenterPools


class Chain:
    """One center begins, the others join; what cannot be right is a ValueError and adds nobody.

    Examples
    --------
    >>> chain = Chain(("x",))
    >>> chain.begin(np.array([-np.inf, 4.0, np.inf]), {"x": np.array([10, 12])})
    >>> everybody = Pools(np.array([2]), np.array([11]))
    >>> chain.join(np.empty(0), {"x": everybody}, (-np.inf, np.inf))
    >>> chain.table.counts, len(chain.pools)
    (array([[15., 18.]]), 2)
    """

    def __init__(self, groups: tuple[str, ...]) -> None:
        self.groups = groups
        self.table: Table | None = None
        self.pools: list[CenterPools] = []

    def begin(self, edges: FloatArray, counts: Mapping[str, IntArray]) -> None:
        """The first center's own table."""
        nobody = np.zeros(len(edges) - 1)
        rows = np.array([counts.get(group, nobody) for group in self.groups], dtype=np.float64)
        bins = np.ones(len(edges) - 1, dtype=np.int64)
        self._add(
            Table(edges, rows, self.groups),
            {g: Pools(bins, people) for g, people in counts.items()},
        )

    def join(
        self, splits: FloatArray, pools: Mapping[str, Pools], limits: tuple[float, float]
    ) -> None:
        """Another center's people: its boundaries inside bins, the pools of its groups."""
        if self.table is None:
            raise ValueError("a center can join only when another has begun")
        joined = Join(splits, tuple(pools.values()))
        self._add(reallocate(self.table, joined, tuple(pools), limits), pools)

    def _add(self, table: Table, pools: Mapping[str, Pools]) -> None:
        self.table = table
        self.pools.append(CenterPools(table.edges[1:-1], pools))
