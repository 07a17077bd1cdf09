"""The scale on which an open cell tells its moments: v = z/√(1 + z²), z = (x − limit)/5 widths.

The limit is the cell's own, the width that of its neighbour. Near the limit v is a straight line:
people of a light tail are told as they are. Far outside it ends at ±1: nobody there carries the
moments or is located by them, and ranks, which end as well, are known better.
"""

import math
from dataclasses import dataclass
from types import EllipsisType

import numpy as np

from unpooled.maths.arrays import FloatArray, IntArray

OPEN_WIDTHS = 5  # at 307 people 1 of 150 in a normal tail is farther outside, 1 of 10 in that of t3
_ALONE = 10  # steps: the width where no neighbour has one; a lattice has ten in an SD
_NARROW = 0.5  # steps: a cell beside an atom is no neighbour
_FARTHEST = 1 - 1e-6  # v of somebody 3,500 widths outside


@dataclass(frozen=True, slots=True)
class OpenScale:
    """Limit and unit of cells, one entry each; NaN where moments are those of x itself."""

    limit: FloatArray
    unit: FloatArray

    @staticmethod
    def of(limits: FloatArray, step: float) -> "OpenScale":
        """The scales of a table's cells, which lie between ascending limits.

        Examples
        --------
        >>> OpenScale.of(np.array([-np.inf, 0.0, 2.0, np.inf]), 0.1)
        OpenScale(limit=array([ 0., nan,  2.]), unit=array([10., nan, 10.]))
        """
        widths = np.diff(limits)
        bounded = widths[np.isfinite(widths) & (widths > _NARROW * step)]
        near = (bounded[0], bounded[-1]) if len(bounded) else (_ALONE * step, _ALONE * step)
        limit, unit = np.full(len(widths), np.nan), np.full(len(widths), np.nan)
        for end, inner in ((0, 1), (-1, -2)):
            if math.isinf(limits[end]) and math.isfinite(limits[inner]):
                limit[end], unit[end] = limits[inner], OPEN_WIDTHS * near[end]
        return OpenScale(limit, unit)

    @property
    def open(self) -> IntArray:
        """The cells that have such a scale."""
        return np.flatnonzero(~np.isnan(self.unit))

    @property
    def width(self) -> FloatArray:
        """The width of each one's neighbour."""
        return self.unit / OPEN_WIDTHS

    def at(self, cell: IntArray | int | tuple[EllipsisType, None]) -> "OpenScale":
        """The scales of these cells."""
        return OpenScale(np.asarray(self.limit[cell]), np.asarray(self.unit[cell]))

    def forth(self, x: FloatArray) -> FloatArray:
        """v of values, an entry of the scale each; those of other cells are left as they are."""
        z = (x - self.limit) / self.unit
        return np.where(np.isnan(self.unit), x, z / np.hypot(1, z))

    def slope(self, x: FloatArray) -> FloatArray:
        """How fast v rises with x."""
        z = (x - self.limit) / self.unit
        return np.where(np.isnan(self.unit), 1.0, np.hypot(1, z) ** -3 / self.unit)

    def back(self, v: FloatArray) -> FloatArray:
        """The values of v.

        Examples
        --------
        >>> scale = OpenScale(np.array([2.0]), np.array([0.5]))
        >>> scale.back(np.array([0.6])), scale.back(scale.forth(np.array([7.0]))).round(6)
        (array([2.375]), array([7.]))
        """
        v_ = np.clip(v, -_FARTHEST, _FARTHEST)
        return np.where(np.isnan(self.unit), v, self.limit + self.unit * v_ / np.sqrt(1 - v_ * v_))
