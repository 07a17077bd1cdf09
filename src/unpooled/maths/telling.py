"""What a cell may tell beside its count: mean and standard deviation, and when they are withheld.

They are rounded to a share of the cell's width; those of open cells are told on a scale that ends
(`open_cells`), so that nobody far outside can be located. Two rules withhold moments that speak
for too few: the standard deviation where one person carries most of it (dominance), and moments
that could be decoded because the cell holds few different values (resolution guard).
"""

import math
from typing import Literal

import numpy as np
import numpy.typing as npt

from unpooled.maths.arrays import FloatArray
from unpooled.maths.lattice import Lattice, one_value
from unpooled.maths.moments import MEAN_NEEDS, SD_NEEDS, squares, telling_values
from unpooled.maths.open_cells import OPEN_WIDTHS, OpenScale

Moments = Literal["all", "tails", "none"]
"""Which cells tell their mean and SD: all, the wide ones (extreme cells and gaps), none."""

_DOMINANT = 0.5  # share of the squares that one person may carry
_GAP = 1.3  # times as wide as both neighbours, and
_GAP_STEPS = 3  # of the lattice: neighbours of one and two steps are no gap
_PARTS = 200  # moments are rounded to this part of a cell's width


def telling_cells(edges: FloatArray, step: float, moments: Moments) -> npt.NDArray[np.bool_]:
    """Which cells between these edges may tell their moments: it depends on nothing else.

    With `tails` these are the extreme cells and gaps: inner cells much wider than both neighbours
    (an open one aside), in which nobody else knows where people are.

    Examples
    --------
    >>> telling_cells(np.array([0.0, 1.0, 2.0, 6.0, 7.0]), 1.0, "tails")
    array([ True, False, False,  True, False,  True])
    """
    if moments != "tails":
        return np.full(len(edges) + 1, moments == "all")
    widths = np.diff(edges)
    beside = np.concatenate(([0.0], widths, [0.0]))
    beside = np.maximum(beside[:-2], beside[2:])
    gap = (widths > _GAP * beside) & (widths > (_GAP_STEPS - 0.5) * step) & (beside > 0)
    return np.concatenate(([True], gap, [True]))[: len(edges) + 1]


def nowhere(edges: FloatArray, lattice: Lattice) -> bool:
    """Whether a table has no limit at all: its one cell has no scale that ends."""
    return not len(edges) and math.isinf(lattice.lower) and math.isinf(lattice.upper)


def told(values: FloatArray, scale: OpenScale, k: int) -> tuple[float, float]:
    """Mean and SD on the cell's scale, as far as resolution guard and dominance rule allow."""
    if values[0] == values[-1]:  # at least K people share it
        return float(values[0]), 0.0
    different = telling_values(values, k)
    if 0 < different < MEAN_NEEDS:  # the mean would tell how many, or of whom, it speaks
        return math.nan, math.nan
    scaled = scale.forth(values)
    mean = float(scaled.mean())
    if 0 < different < SD_NEEDS or dominated(scaled):
        return mean, math.nan
    sd = math.sqrt(float(squares(scaled).mean()))
    return mean, max(sd, math.nextafter(0.0, 1.0))  # 0 says that all share one value


def dominated(values: FloatArray) -> bool:
    """Whether one person carries more than half of the squares around the mean."""
    found = squares(values)
    return bool(found.max() > _DOMINANT * found.sum())


def rounding(edges: FloatArray, lattice: Lattice) -> tuple[FloatArray, FloatArray]:
    """Where each cell's rounding starts, its lower limit, and its unit, a part of its width.

    In extreme cells it is at most a part of five widths of the neighbour, as in open ones.
    """
    limits = lattice.limits(edges)
    widths = np.diff(limits)
    wide = np.isfinite(widths) & ~one_value(limits[:-1], limits[1:])
    unit = np.where(wide, widths, lattice.step)  # an atom has none
    for end, beside in ((0, 1), (-1, -2)):  # a limit may have been declared far outside
        if len(unit) > 2 and wide[beside]:
            unit[end] = min(unit[end], OPEN_WIDTHS * unit[beside])
    scale = lattice.open_scale(edges)
    unit[scale.open] = (scale.width / scale.unit)[scale.open]
    return np.where(np.isfinite(widths), limits[:-1], 0.0), unit / _PARTS


def rounded(
    edges: FloatArray, lattice: Lattice, means: FloatArray, sds: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Moments as multiples of the cell's unit."""
    start, unit = rounding(edges, lattice)
    exact = sds == 0  # an atom, or one value shared by K people or more
    low, high = lattice.mean_limits(edges)
    near = np.clip(start + unit * np.round((means - start) / unit), low, high)
    spread = np.maximum(unit * np.round(sds / unit), unit / 2)  # 0 means an atom, nothing else
    return np.where(exact, means, near), np.where(exact, 0.0, spread)
