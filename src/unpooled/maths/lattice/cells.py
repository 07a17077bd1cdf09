"""What a cell may say besides its count: mean and standard deviation, and when they are withheld.

They are rounded to a share of the cell's width, and never finer than 1/20 of their standard error
(`precision`). Two rules withhold moments that speak for too few: the standard deviation where one
person carries most of it (dominance), and moments that could be decoded because the cell holds few
different values (resolution guard).

`Cells` holds the cells of all centers' tables side by side.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from unpooled.maths.arrays import FloatArray, IntArray
from unpooled.maths.lattice.lattice import OPEN_WIDTHS, Lattice, LatticeTable, OpenScale, one_value
from unpooled.maths.moments import MEAN_NEEDS, SD_NEEDS, squares, telling_values
from unpooled.maths.precision import PARTS

Moments = Literal["all", "tails", "none"]
"""Which cells tell their mean and SD: all, the wide ones (extreme cells and gaps), none."""

_DOMINANT = 0.5  # share of the squares that one person may carry
_GAP = 1.3  # times as wide as both neighbours, and
_GAP_STEPS = 3  # of the lattice: neighbours of one and two steps are no gap
_PARTS = 200  # moments are rounded to this part of a cell's width, or to several of it:
_SEVERAL: FloatArray = np.array([digit * 10.0**p for p in range(300) for digit in (1, 2, 5)])
_DIGIT = 1e-9  # by so little they may miss 1/20 of the standard error


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


def cell_moments(values: FloatArray, scale: OpenScale, k: int) -> tuple[float, float]:
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
    squared = squares(values)
    return bool(squared.max() > _DOMINANT * squared.sum())


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


@dataclass(frozen=True, slots=True)
class Units:
    """What the moments of cells are multiples of: means beyond `start`, SDs beyond 0."""

    start: FloatArray
    mean: FloatArray
    sd: FloatArray


def units(edges: FloatArray, lattice: Lattice, counts: IntArray, sds: FloatArray) -> Units:
    """The units of told moments: 1, 2, 5, 10 ... parts of the cell, at least 1/20 SE.

    SDs are divided by n, hence SD/√(n − 1) is the SE of the mean. Where the SD is withheld, people
    are taken to be spread evenly over the cell.

    Examples
    --------
    >>> edges, counts = np.array([0.0, 2.0]), np.array([10, 10, 10])
    >>> units(edges, Lattice(step=1.0), counts, np.array([np.nan, 0.8, 0.3])).mean
    array([0.005, 0.02 , 0.005])
    """
    how = Rounding.of(edges, lattice, counts)
    return Units(how.start, how.mean_unit(sds), how.part * _several(how.share * sds / how.part))


def _share(counts: IntArray) -> FloatArray:
    """The SE of each SD in SDs: 1/√(2(n − 1))."""
    return np.asarray(1 / np.sqrt(2 * np.maximum(counts - 1, 1)))


def _several(errors: FloatArray) -> FloatArray:
    """How many parts make a unit, for standard errors in parts."""
    least = np.nan_to_num(errors) / PARTS * (1 - _DIGIT)
    return _SEVERAL.take(np.searchsorted(_SEVERAL, least), mode="clip")


def _whole_sds(sds: FloatArray, share: FloatArray) -> FloatArray:
    """The nearest SDs, in parts, that are multiples of the units they ask for; at least ½."""
    at = np.searchsorted(_SEVERAL, _several(share * sds))
    near = np.full(len(sds), 0.5)  # 0 means an atom, nothing else
    for beside in (-1, 0, 1):
        unit = _SEVERAL.take(at + beside, mode="clip")
        for more in (0, 1):
            whole = unit * (np.floor(sds / unit) + more)
            stays = (whole > 0) & (_several(share * whole) == unit)
            nearer = stays & (np.abs(whole - sds) < np.abs(near - sds))
            near = np.where(nearer, whole, near)
    return near


@dataclass(frozen=True, slots=True)
class Rounding:
    """How the moments of cells are rounded, an entry for each cell.

    Both methods rise with what is rounded.
    """

    start: FloatArray
    part: FloatArray
    even: FloatArray  # the SE of a mean in parts, where the SD is withheld
    share: FloatArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def of(cls, edges: FloatArray, lattice: Lattice, counts: IntArray) -> "Rounding":
        """Of the cells between these edges, with these people."""
        start, part = rounding(edges, lattice)
        even = np.where(lattice.open_scale(edges).unit > 0, OPEN_WIDTHS, 1) * _PARTS / math.sqrt(12)
        low, high = lattice.mean_limits(edges)
        return cls(start, part, even / np.sqrt(counts), _share(counts), low, high)

    def at(self, which: Sequence[int] | IntArray) -> "Rounding":
        """Of some of the cells."""
        names = "start", "part", "even", "share", "low", "high"
        return Rounding(*(getattr(self, name)[which] for name in names))

    @classmethod
    def nothing(cls) -> "Rounding":
        """Of no cell."""
        return cls(*(np.empty(0) for _ in range(6)))

    @classmethod
    def together(cls, each: Sequence["Rounding"]) -> "Rounding":
        """Of the cells of several tables."""
        names = "start", "part", "even", "share", "low", "high"
        return cls(*(np.concatenate([getattr(one, name) for one in each]) for name in names))

    def sd(self, sds: FloatArray) -> FloatArray:
        """SDs as multiples of the units that they ask for."""
        return np.asarray(self.part * _whole_sds(sds / self.part, self.share))

    def mean_unit(self, sds: FloatArray) -> FloatArray:
        """The units of means beside these SDs; NaN where one is withheld."""
        unit = sds / self.part * math.sqrt(2) * self.share
        return self.part * _several(np.where(np.isnan(sds), self.even, unit))

    def mean(self, means: FloatArray, sds: FloatArray) -> FloatArray:
        """Means as multiples of their units, beside these rounded SDs."""
        unit = self.mean_unit(sds)
        least = np.ceil((self.low - self.start) / unit)
        most = np.floor((self.high - self.start) / unit)
        whole = np.clip(np.round((means - self.start) / unit), least, most)
        near = self.start + unit * whole  # of large numbers the last digits may differ
        return np.asarray(np.clip(near, self.low, self.high))


def rounded(
    edges: FloatArray, lattice: Lattice, counts: IntArray, means: FloatArray, sds: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Moments as multiples of the cell's units.

    Examples
    --------
    >>> edges, counts = np.array([0.0, 2.0]), np.array([10, 10, 10])
    >>> means, sds = np.array([-0.123, 1.234, 0.123]), np.array([np.nan, 0.7654, 0.04567])
    >>> rounded(edges, Lattice(step=1.0), counts, means, sds)
    (array([-0.125,  1.24 ,  0.123]), array([  nan, 0.77 , 0.046]))
    """
    how = Rounding.of(edges, lattice, counts)
    exact = sds == 0  # an atom, or one value shared by K people or more
    spread = np.where(np.isnan(sds), np.nan, how.sd(sds))
    near = how.mean(means, spread)
    return np.where(exact, means, near), np.where(exact, 0.0, spread)


def is_rounded(
    edges: FloatArray, lattice: Lattice, counts: IntArray, means: FloatArray, sds: FloatArray
) -> bool:
    """Whether told moments are such multiples: rounded again, they stay. NaN is not told.

    Examples
    --------
    >>> edges, counts = np.array([0.0, 2.0]), np.array([10, 10, 10])
    >>> told = np.array([-0.125, 1.24, 0.123]), np.array([np.nan, 0.77, 0.046])
    >>> is_rounded(edges, Lattice(step=1.0), counts, *told)
    True
    >>> is_rounded(edges, Lattice(step=1.0), counts, told[0] + 0.01, told[1])
    False
    """
    again = rounded(edges, lattice, counts, means, sds)
    pairs = zip(again, (means, sds), strict=True)
    return all(np.array_equal(a, b, equal_nan=True) for a, b in pairs)


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
