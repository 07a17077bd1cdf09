"""The federated table: counts per bin and group."""

from dataclasses import dataclass

import numpy as np

from unpooled.maths.arrays import FloatArray, read_only


@dataclass(frozen=True, slots=True)
class Table:
    """Counts per bin and group; bin b is (edges[b], edges[b+1]], the first one closed below.

    Outer edges may be infinite; counts need not be whole, since people that a center pooled over
    several bins are shared out between them.

    Examples
    --------
    >>> table = Table(np.array([-np.inf, 2.0, np.inf]), np.array([[10.0, 12.5]]), ("all",))
    >>> table.bins, table.people
    (2, array([22.5]))
    """

    edges: FloatArray
    counts: FloatArray  # one row per group
    groups: tuple[str, ...]

    def __post_init__(self) -> None:
        edges, counts = read_only(self.edges), read_only(self.counts)
        if counts.shape != (len(self.groups), len(edges) - 1):
            raise ValueError(
                f"counts must have one row per group and one column per bin, "
                f"{(len(self.groups), len(edges) - 1)}, got {counts.shape}"
            )
        if np.count_nonzero(edges[1:] > edges[:-1]) < len(edges) - 1:
            raise ValueError("edges must ascend strictly")
        if np.count_nonzero((counts >= 0) & (counts < np.inf)) < counts.size:
            raise ValueError("counts must be finite and not negative")
        object.__setattr__(self, "edges", edges)
        object.__setattr__(self, "counts", counts)

    @property
    def bins(self) -> int:
        """How many bins there are."""
        return len(self.edges) - 1

    @property
    def people(self) -> FloatArray:
        """How many people each group has."""
        return np.asarray(self.counts.sum(axis=1))
