"""Between which limits counts alone put a quantile, however people stand within their cells."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unpooled.maths.arrays import FloatArray
from unpooled.maths.lattice.lattice import Lattice, LatticeTable


@dataclass(frozen=True, slots=True)
class Counted:
    """The cells' lower and upper limits, each ascending, and how many people are in those so far.

    Examples
    --------
    >>> table = LatticeTable(np.array([1.0, 2.0]), [10, 10, 10], [np.nan] * 3, [np.nan] * 3)
    >>> counted = Counted.of([table], Lattice(1.0, lower=0.0))
    >>> counted.at_most(np.array([9.0, 10.0])), counted.at_least(np.array([10.0, 11.0]))
    (array([0., 1.]), array([1., 2.]))
    """

    lows: FloatArray
    from_lows: FloatArray
    highs: FloatArray
    up_to_highs: FloatArray

    @classmethod
    def of(cls, tables: Sequence[LatticeTable], lattice: Lattice) -> "Counted":
        """What the tables of all centers count."""
        limits = [lattice.limits(table.edges) for table in tables]
        counts = np.concatenate([table.counts for table in tables])
        counted = []
        for ends in (
            np.concatenate([x[:-1] for x in limits]),
            np.concatenate([x[1:] for x in limits]),
        ):
            order = np.argsort(ends, kind="stable")
            counted += [ends[order], np.cumsum(counts[order]).astype(np.float64)]
        return cls(*counted)

    def at_most(self, people: FloatArray) -> FloatArray:
        """The highest limit below which at most so many people can stand."""
        at = np.searchsorted(self.from_lows, people, "right")
        return np.asarray(self.lows[np.minimum(at, len(self.lows) - 1)])

    def at_least(self, people: FloatArray) -> FloatArray:
        """The lowest limit below which at least so many people must stand."""
        at = np.searchsorted(self.up_to_highs, people, "left")
        return np.asarray(self.highs[np.minimum(at, len(self.highs) - 1)])
