"""A center's own table on a public lattice: exact counts of at least K people, and moments.

Boundaries are points that everybody knows beforehand, so that no value can be read off them;
outer cells are open, or end at limits that were declared. A cell carries its count and, by policy,
its mean and standard deviation, rounded to a share of its width; those of open cells are told on a
scale that ends (`open_cells`), so that nobody far outside can be located. Two rules withhold
moments that speak for too few: the standard deviation where one person carries most of it
(dominance), and moments that could be decoded because the cell holds few different values
(resolution guard).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from unpooled.maths import large
from unpooled.maths.arrays import FloatArray, IntArray, read_only
from unpooled.maths.moments import MEAN_NEEDS, SD_NEEDS, squares, telling_values
from unpooled.maths.open_cells import OPEN_WIDTHS, OpenScale

Moments = Literal["all", "tails", "none"]
"""Which cells tell their mean and SD: all, the wide ones (extreme cells and gaps), none."""

STEP = 0.1  # of the scale: finer costs privacy at large centers, coarser costs precision
_ROOM = 1.15  # cells of 1.15 K people stay at K or more when their boundaries move to the lattice
_FEWER = 1  # cell than there is room for: three at 56 people, as private as the paper's table
_MOST_CELLS = 1000  # bounds a message; a lattice of 0.1 SD has some hundred points in use
_DOMINANT = 0.5  # share of the squares that one person may carry
_GAP = 1.3  # times as wide as both neighbours, and
_GAP_STEPS = 3  # of the lattice: neighbours of one and two steps are no gap
_PARTS = 200  # moments are rounded to this part of a cell's width


@dataclass(frozen=True, slots=True)
class Lattice:
    """The points `origin + i·step`, and what else is public about a variable.

    With a declared resolution the points lie halfway between possible values. An atom is a value
    that many people share; it gets a cell of its own where K of them are found: (atom − ½
    resolution, atom + ½ resolution], without a resolution the number alone.
    """

    step: float
    origin: float = 0.0
    resolution: float | None = None
    lower: float = -math.inf
    upper: float = math.inf
    atoms: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not 0 < self.step < math.inf:
            raise ValueError(f"step must be positive and finite, got {self.step}")
        if not self.lower < self.upper:
            raise ValueError(f"lower must be below upper, got {self.lower} and {self.upper}")

    def snap(self, values: FloatArray) -> FloatArray:
        """The nearest points."""
        return self.origin + self.step * np.round((values - self.origin) / self.step)

    @property
    def atom_sides(self) -> FloatArray:
        """The edges of each atom's own cell, a row each.

        Examples
        --------
        >>> Lattice(step=1.0, origin=0.5, resolution=1.0, atoms=(0.0,)).atom_sides
        array([[-0.5,  0.5]])
        """
        atoms = np.array(self.atoms, dtype=np.float64)
        if self.resolution is None:
            return np.column_stack((np.nextafter(atoms, -np.inf), atoms))
        return np.column_stack((atoms - self.resolution / 2, atoms + self.resolution / 2))

    def limits(self, edges: FloatArray) -> FloatArray:
        """The edges of a table between the declared limits."""
        return np.concatenate(([self.lower], edges, [self.upper]))

    def open_scale(self, edges: FloatArray) -> OpenScale:
        """On which scales the cells between these edges tell their moments."""
        return OpenScale.of(self.limits(edges), self.step)

    def mean_limits(self, edges: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Between what the means of these cells lie, each on its cell's scale.

        A last digit aside: they are rounded.

        Examples
        --------
        >>> Lattice(step=1.0, lower=0.0).mean_limits(np.array([3.0]))[1].round(6)
        array([3., 1.])
        """
        limits, scale = self.limits(edges), self.open_scale(edges)
        raw = np.isnan(scale.unit)
        low = np.where(raw, limits[:-1], np.where(np.isinf(limits[:-1]), -1.0, 0.0))
        high = np.where(raw, limits[1:], np.where(np.isinf(limits[1:]), 1.0, 0.0))
        slack = 1e-9 * np.where(raw, self.step, 1.0)
        return low - slack, high + slack


def public_lattice(
    scale: float | None = None,
    resolution: float | None = None,
    lower: float | None = None,
    upper: float | None = None,
    atoms: Sequence[float] = (),
) -> Lattice:
    """The lattice for a variable with this scale (its SD, roughly known) or resolution.

    The step is the number 1, 2 or 5 times a power of ten nearest to a tenth of the scale; with a
    resolution a whole multiple of that. Without a scale it is the resolution itself. Limits are
    atoms: many people may stand there, as with zeros.

    Examples
    --------
    >>> public_lattice(scale=1.8).step, public_lattice(scale=14, resolution=1).step
    (0.2, 1.0)
    >>> public_lattice(resolution=1, lower=0).origin
    0.5
    """
    if scale is None and resolution is None:
        raise ValueError("scale or resolution must be given, got neither")
    if scale is not None and not 0 < scale < math.inf:
        raise ValueError(f"scale must be positive and finite, got {scale}")
    step = resolution if scale is None else nice_number(STEP * scale)
    if resolution is not None:
        step = resolution * max(1.0, round((step or resolution) / resolution))
    return Lattice(
        step or math.nan,
        0.0 if resolution is None else resolution / 2,
        resolution,
        -math.inf if lower is None else lower,
        math.inf if upper is None else upper,
        tuple(atoms) if resolution is not None else _with_limits(atoms, lower, upper),
    )


def _with_limits(
    atoms: Sequence[float], lower: float | None, upper: float | None
) -> tuple[float, ...]:
    return tuple(sorted({*atoms, *(limit for limit in (lower, upper) if limit is not None)}))


def nice_number(step: float) -> float:
    """The nearest of 1, 2 and 5 times a power of ten.

    Examples
    --------
    >>> nice_number(0.18), nice_number(32.0)
    (0.2, 50.0)
    """
    power = 10.0 ** math.floor(math.log10(step))
    return min((power * digit for digit in (1, 2, 5, 10)), key=lambda s: abs(math.log(s / step)))


@dataclass(frozen=True, slots=True)
class LatticeTable:
    """What one center tells of one group; cell b is (edges[b−1], edges[b]], the outer ones open.

    Means and SDs (with n) are NaN where they are not told; those of an open cell are on a scale of
    its own (`open_cells`), but for one value that all its people share. `step` is the lattice's.
    """

    edges: FloatArray
    counts: IntArray
    means: FloatArray
    sds: FloatArray
    step: float = 1.0

    def __post_init__(self) -> None:
        counts = np.array(self.counts, dtype=np.int64)
        counts.flags.writeable = False
        object.__setattr__(self, "counts", counts)
        for name in ("edges", "means", "sds"):
            object.__setattr__(self, name, read_only(getattr(self, name)))
        cells = len(counts)
        if not len(self.edges) + 1 == len(self.means) == len(self.sds) == cells:
            raise ValueError(f"a table of {cells} cells needs {cells - 1} edges, {cells} moments")
        if not np.all(np.diff(self.edges) > 0) or not np.isfinite(self.edges).all():
            raise ValueError("edges must be finite and ascend strictly")
        if counts.min(initial=1) < 1:
            raise ValueError("counts must be positive")

    @property
    def people(self) -> int:
        """How many people the table speaks for."""
        return int(self.counts.sum())


def lattice_table(
    values: FloatArray, lattice: Lattice, k: int, moments: Moments = "all"
) -> LatticeTable:
    """The table of one center's ascending values.

    Boundaries move to the nearest lattice point (the first one that leaves K people would be biased
    to one side); cells of fewer than K people join their smaller neighbour. Where that leaves one
    cell without limits, a boundary is looked for that leaves K people on both sides.

    Examples
    --------
    >>> table = lattice_table(np.arange(40.0), Lattice(step=1.0), k=10)
    >>> table.edges, table.counts, table.means
    (array([12., 26.]), array([13, 14, 13]), array([-0.085, 19.49 ,  0.099]))
    """
    fewer = 0 if moments == "all" else _FEWER  # `all` is for precision
    return _table(values, lattice, k, moments, least=2 * k, fewer=fewer)


def status_table(
    values: FloatArray, lattice: Lattice, k: int, moments: Moments = "all"
) -> LatticeTable:
    """The table of times within a declared lower and upper limit, of at least K people.

    Between two limits one cell alone says enough to place people, so K of them have a table.

    Examples
    --------
    >>> table = status_table(np.arange(12.0), Lattice(step=1.0, lower=0.0, upper=20.0), k=10)
    >>> table.edges, table.counts, table.means
    (array([], dtype=float64), array([12]), array([5.5]))
    """
    if math.isinf(lattice.lower) or math.isinf(lattice.upper):
        raise ValueError("times must have a lower and an upper limit")
    return _table(values, lattice, k, moments, least=k, fewer=0)


def _table(
    values: FloatArray, lattice: Lattice, k: int, moments: Moments, *, least: int, fewer: int
) -> LatticeTable:
    values = np.asarray(values, dtype=np.float64)
    _check(values, lattice, k, moments, least)
    edges = _candidates(values, lattice, _ranks(len(values), k, fewer))
    table = table_at(edges, values, lattice, k, moments)
    if nowhere(table.edges, lattice):  # say at least on which side of a point people are
        table = table_at(_one_edge(values, lattice, k), values, lattice, k, moments)
    return table


def table_at(
    edges: FloatArray, values: FloatArray, lattice: Lattice, k: int, moments: Moments = "all"
) -> LatticeTable:
    """The table of ascending values at these edges, without those that leave fewer than K people.

    Examples
    --------
    >>> table_at(np.array([4.0, 12.0]), np.arange(40.0), Lattice(step=1.0), k=10).counts
    array([13, 27])
    """
    ends = np.concatenate((np.searchsorted(values, edges, "right"), [len(values)]))
    kept, counts = _merge(np.diff(ends, prepend=0), k, _atoms_alone(edges, lattice))
    edges = edges[kept]
    scale = lattice.open_scale(edges)
    means, sds = np.full(len(counts), np.nan), np.full(len(counts), np.nan)
    ends = np.cumsum(counts)
    for cell in np.flatnonzero(telling_cells(edges, lattice.step, moments)).tolist():
        own = values[ends[cell] - counts[cell] : ends[cell]]
        means[cell], sds[cell] = _told(own, scale.at(cell), k)
    if nowhere(edges, lattice) and sds[0] != 0:
        means[0] = sds[0] = np.nan
    return LatticeTable(edges, counts, *_rounded(edges, lattice, means, sds), lattice.step)


def _check(values: FloatArray, lattice: Lattice, k: int, moments: Moments, least: int) -> None:
    if moments not in get_args(Moments):
        raise ValueError(f"moments must be one of {get_args(Moments)}, got {moments!r}")
    if k < 1 or len(values) < least:
        name = "k" if least == k else "2k"
        raise ValueError(f"values must hold at least {name} = {least} people, got {len(values)}")
    falls = large.count(lambda later, before: ~(later >= before), values[1:], values[:-1])
    if falls or not np.isfinite(values[[0, -1]]).all():
        raise ValueError("values must be finite and ascending")
    if values[0] < lattice.lower or values[-1] > lattice.upper:
        raise ValueError("values must lie within the declared limits")


def _ranks(n: int, k: int, fewer: int) -> IntArray:
    """After how many people boundaries come: equally many in each cell."""
    cells = min(max(int(n / (_ROOM * k)) - fewer, 2), _MOST_CELLS)
    return np.arange(1, cells) * n // cells


def _candidates(values: FloatArray, lattice: Lattice, ranks: IntArray) -> FloatArray:
    """Boundaries on the lattice, and both sides of every atom."""
    middles = (values[ranks - 1] + values[ranks]) / 2
    aside = 1e-9 * lattice.step  # a shared value lies between two points: both are its nearest
    edges = np.concatenate([lattice.snap(middles + side) for side in (-aside, aside)])
    edges = np.unique(np.concatenate((edges, lattice.atom_sides.ravel())))
    return edges[(edges >= lattice.lower) & (edges < lattice.upper)]


def _one_edge(values: FloatArray, lattice: Lattice, k: int) -> FloatArray:
    """The point nearest to the median that leaves K people on either side, if there is one."""
    low, median, high = values[[k - 1, len(values) // 2, -k]]
    nearest = np.round((np.array([low, median, high]) - lattice.origin) / lattice.step)
    points = np.unique(lattice.origin + lattice.step * (nearest[:, None] + [-1, 0, 1]))
    points = points[(points >= low) & (points < high)]
    return np.asarray(points[np.argsort(np.abs(points - median))[:1]])


def _atoms_alone(edges: FloatArray, lattice: Lattice) -> npt.NDArray[np.bool_]:
    """Which cells between these edges hold one atom and nothing else."""
    low, high = lattice.atom_sides.T
    first = low[np.isin(lattice.atoms, lattice.lower)]  # an atom at the limit: the first cell
    limits = np.concatenate((first if len(first) else [lattice.lower], edges, [lattice.upper]))
    ends = np.minimum(high, lattice.upper)
    return np.asarray(((limits[:-1, None] == low) & (limits[1:, None] == ends)).any(axis=1))


def one_value(low: FloatArray, high: FloatArray) -> npt.NDArray[np.bool_]:
    """Which cells (low, high] have room for one number alone: a declared atom.

    Examples
    --------
    >>> one_value(np.array([np.nextafter(2.0, 0.0), 2.0]), np.array([2.0, 3.0]))
    array([ True, False])
    """
    return np.asarray(np.nextafter(low, np.inf) >= high)


def _merge(counts: IntArray, k: int, atoms: npt.NDArray[np.bool_]) -> tuple[IntArray, IntArray]:
    """Which edges stay, and the counts between them, when small cells join a neighbour.

    They join the smaller one, but an atom of K people only where there is no other.
    """
    left, people = list(range(len(counts) - 1)), counts.tolist()
    apart = (atoms & (counts >= k)).tolist()
    while len(people) > 1 and (least := min(people)) < k:
        i = people.index(least)
        beside = [j for j in (i - 1, i + 1) if 0 <= j < len(people)]
        i = max(i, min(beside, key=lambda j: (apart[j], people[j], j)))
        apart[i - 1 : i + 1] = [any(apart[i - 1 : i + 1]) and 0 in people[i - 1 : i + 1]]
        people[i - 1] += people.pop(i)
        left.pop(i - 1)
    return np.array(left, dtype=np.int64), np.array(people, dtype=np.int64)


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


def _told(values: FloatArray, scale: OpenScale, k: int) -> tuple[float, float]:
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


def _rounded(
    edges: FloatArray, lattice: Lattice, means: FloatArray, sds: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Moments as multiples of the cell's unit."""
    start, unit = rounding(edges, lattice)
    exact = sds == 0  # an atom, or one value shared by K people or more
    low, high = lattice.mean_limits(edges)
    rounded = np.clip(start + unit * np.round((means - start) / unit), low, high)
    spread = np.maximum(unit * np.round(sds / unit), unit / 2)  # 0 means an atom, nothing else
    return np.where(exact, means, rounded), np.where(exact, 0.0, spread)
