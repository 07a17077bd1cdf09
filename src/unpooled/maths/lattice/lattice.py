"""The public lattice of a variable, and what a center's table on it holds.

Boundaries are points that everybody knows beforehand, so that no value can be read off them;
outer cells are open, or end at limits that were declared. How people are cut into cells is in
`cutting`, what a cell may say besides its count in `cells`.

The moments of open cells are those of v = z/√(1 + z²), z = (x − limit)/5 widths. The limit is the
cell's own, the width that of its neighbour. Near the limit v is a straight line: people of a light
tail are described as they are. Far outside it ends at ±1: nobody there carries the moments or is
located by them, and ranks, which end as well, are known better.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import EllipsisType

import numpy as np
import numpy.typing as npt

from unpooled.maths.arrays import FloatArray, IntArray, read_only

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


STEP = 0.1  # of the scale: finer costs privacy at large centers, coarser costs precision
WHOLE = 1e-6  # so near to a whole number is one: 0.3/0.1 is not 3


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
    for name, value in (("scale", scale), ("resolution", resolution)):
        if value is not None and not 0 < value < math.inf:
            raise ValueError(f"{name} must be positive and finite, got {value}")
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


def one_value(low: FloatArray, high: FloatArray) -> npt.NDArray[np.bool_]:
    """Which cells (low, high] have room for one number alone: a declared atom.

    Examples
    --------
    >>> one_value(np.array([np.nextafter(2.0, 0.0), 2.0]), np.array([2.0, 3.0]))
    array([ True, False])
    """
    return np.asarray(np.nextafter(low, np.inf) >= high)


def usual_resolutions(scale: float) -> list[float]:
    """Which resolutions rounded values of this scale may have, the coarsest first.

    They are 1, 2 or 5 times a power of ten. What is finer than a hundredth of a step matters to
    nobody.

    Examples
    --------
    >>> usual_resolutions(12.0)
    [10.0, 5.0, 2.0, 1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01]
    """
    coarsest = nice_number(scale)
    powers = range(math.floor(math.log10(coarsest)), math.floor(math.log10(coarsest)) - 4, -1)
    usual = (nice_number(digit * 10.0**power) for power in powers for digit in (5, 2, 1))
    return [number for number in usual if coarsest >= number >= 0.999e-3 * coarsest]


def is_multiple(value: float, unit: float, origin: float = 0.0) -> bool:
    """Whether so many units lie between value and origin, as far as their digits tell.

    Examples
    --------
    >>> is_multiple(0.3, 0.1), is_multiple(0.35, 0.1), is_multiple(1.7e308, 0.1)
    (True, False, False)
    """
    ratio, digit = (value - origin) / unit, max(math.ulp(value), math.ulp(origin)) / unit
    return math.isfinite(ratio) and abs(ratio - round(ratio)) < WHOLE + 2 * digit


def nearest_multiples(values: FloatArray, resolution: float) -> FloatArray:
    """The nearest possible values, with no more digits than they need.

    Examples
    --------
    >>> nearest_multiples(np.array([0.951]), 0.01), 0.01 * 95
    (array([0.95]), 0.9500000000000001)
    """
    whole = np.round(values / resolution) + 0.0  # no -0.0
    if resolution < 1 and is_multiple(1.0, resolution):
        return np.asarray(whole / round(1 / resolution))
    return np.asarray(whole * resolution)


@dataclass(frozen=True, slots=True)
class LatticeTable:
    """What one center tells of one group; cell b is (edges[b−1], edges[b]], the outer ones open.

    Means and SDs (with n) are NaN where they are not told; those of an open cell are on a scale of
    its own (`OpenScale`), but for one value that all its people share. Scale and outer limits are
    those of the center's lattice; where they are not given, of the one that all tables are put on.
    """

    edges: FloatArray
    counts: IntArray
    means: FloatArray
    sds: FloatArray
    scale: OpenScale | None = None
    limits: tuple[float, float] | None = None

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

    def between_values(self, resolution: float) -> "LatticeTable":
        """The same with edges halfway between possible values; moments stay on their scale.

        A boundary of the chain lies anywhere between two of them.

        Examples
        --------
        >>> table = LatticeTable(np.array([2.9, 5.5]), [10, 10, 10], [np.nan] * 3, [np.nan] * 3)
        >>> table.between_values(1.0).edges
        array([2.5, 5.5])
        """
        half = resolution * (np.floor(self.edges / resolution + WHOLE) + 0.5)
        moved = np.where(np.abs(half - self.edges) > WHOLE * resolution, half, self.edges)
        return replace(self, edges=moved) if np.all(np.diff(moved) > 0) else self
