"""The cells of all centers' tables side by side, and how many pseudo-people stand for each."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unpooled.maths.arrays import FloatArray, IntArray
from unpooled.maths.lattice.lattice import Lattice, LatticeTable, one_value
from unpooled.maths.lattice.open_cells import OpenScale

_MOST_POINTS = 32  # points that stand for a cell: larger cells get points of more weight


@dataclass(frozen=True, slots=True)
class Cells:
    """All cells of all centers, between `low` and `high`.

    Mean and SD are on the cell's `scale`. The pseudo-people of a cell are the `points` entries from
    `first` on.
    """

    low: FloatArray
    high: FloatArray
    count: IntArray
    mean: FloatArray
    sd: FloatArray
    scale: OpenScale
    center: IntArray
    points: IntArray
    first: IntArray

    @classmethod
    def of(cls, tables: Sequence[LatticeTable], lattice: Lattice) -> "Cells":
        """The cells of these tables, center by center."""
        if not tables:
            raise ValueError("tables must come from at least one center, got none")
        limits = [table.limits or (lattice.lower, lattice.upper) for table in tables]
        ends = list(zip(tables, limits, strict=True))
        low = np.concatenate([np.append(lower, table.edges) for table, (lower, _) in ends])
        high = np.concatenate([np.append(table.edges, upper) for table, (_, upper) in ends])
        count = np.concatenate([table.counts for table in tables])
        mean = np.concatenate([table.means for table in tables])
        sd = np.concatenate([table.sds for table in tables])
        center = np.repeat(np.arange(len(tables)), [len(table.counts) for table in tables])
        scales = [table.scale or lattice.open_scale(table.edges) for table in tables]
        limit = np.concatenate([scale.limit for scale in scales])
        unit = np.concatenate([scale.unit for scale in scales])
        scale = OpenScale(limit, np.where(sd == 0, np.nan, unit))  # one value is told as it is
        low = np.where(one_value(low, high), high, low)
        low, high, sd = _widened(low, high, mean, sd, lattice.resolution)
        points = np.minimum(count, _MOST_POINTS)
        return cls(low, high, count, mean, sd, scale, center, points, np.cumsum(points) - points)

    @property
    def several(self) -> npt.NDArray[np.bool_]:
        """Which cells may hold more than one value."""
        return np.asarray((self.sd != 0) & (self.low < self.high))

    @property
    def moments(self) -> IntArray:
        """How many moments each cell tells: 0, 1 or 2."""
        return np.asarray(2 - np.isnan(self.mean) - np.isnan(self.sd), dtype=np.int64)


def _widened(
    low: FloatArray, high: FloatArray, mean: FloatArray, sd: FloatArray, resolution: float | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """On rounded data, one value stands for the unknown ones within half a resolution."""
    if resolution is None:
        return low, high, sd
    one = sd == 0
    half = resolution / 2
    low, high = np.where(one, mean - half, low), np.where(one, mean + half, high)
    return low, high, np.where(one, np.nan, sd)


def with_moments(x: FloatArray, cell: IntArray, cells: Cells) -> FloatArray:
    """Points with exactly the cell's mean, and its SD where they stay between the limits."""
    n = len(cells.count)
    points = np.maximum(np.bincount(cell, minlength=n), 1)
    mean = np.bincount(cell, x, n) / points
    off = x - mean[cell]
    sd = np.sqrt(np.bincount(cell, off * off, n) / points)
    target = np.where(np.isnan(cells.mean), mean, cells.mean)
    with np.errstate(divide="ignore", invalid="ignore"):
        stretch = np.where(np.isnan(cells.sd) | (sd == 0), 1.0, cells.sd / sd)
        room = np.where(off > 0, cells.high[cell] - target[cell], cells.low[cell] - target[cell])
        most = np.where(off == 0, np.inf, room / off)
    np.minimum.at(stretch, cell, most)
    moved = target[cell] + np.where(np.isfinite(stretch), stretch, 0.0)[cell] * off
    return np.asarray(np.clip(moved, cells.low[cell], cells.high[cell]))  # rounding stays inside
