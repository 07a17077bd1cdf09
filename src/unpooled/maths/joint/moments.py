"""Means and SDs of people who are counted at points: exact sums of whole numbers, then rounded.

A point has a whole number, its weight. Of n people let S be the sum of their weights, Q that of the
squares; V = nQ − S² fixes the SD, S the mean. Both are told rounded as everywhere (`precision`).
They are told of people at eight points or more, none of whom carries more than half of the squares.

Of a cell they are told as at any center (`maths.lattice.cells`): on the scale of the cell, its mean
where people are at three points or more, its SD where at eight. Points that K people share decode
nobody; of those who are at others there must be K, else the mean would speak of these few.

The moments of all, less those of cells, are moments of the people in the other cells, and are
judged like these (`leave_enough`). Where they fail, no cell tells any; where the moments of all
would fail beside cells of one point alone, they are withheld.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from unpooled.maths.arrays import BoolArray, FloatArray, IntArray
from unpooled.maths.joint.cutting import JointCells
from unpooled.maths.lattice.cells import Rounding
from unpooled.maths.lattice.lattice import Lattice
from unpooled.maths.moments import MEAN_NEEDS, SD_NEEDS, MeanSD
from unpooled.maths.precision import round_mean_sd

_PARTS = 20  # of a step of the lattice: the unit of weights
_CELL_PARTS = 2000  # of a cell: ten times as fine as its finest rounding
_MOST = 2**30  # of people times parts: their squares are whole numbers of 64 bits
_MEAN_PEOPLE, _SD_PEOPLE = 4, 6  # witnesses of two numbers, and of three

Steps = Callable[[int], float]
"""A number that rises by steps with a whole number."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What the points stand for: `first + unit · weight`."""

    first: float
    unit: float
    of: IntArray

    @classmethod
    def between(cls, edges: FloatArray, step: float, low: float, high: float) -> "Weights":
        """Points that stand for the middle between edges, outer ones between a limit and an edge.

        Examples
        --------
        >>> Weights.between(np.array([1.5, 2.5]), 1.0, 0.5, 3.5).values
        array([1., 2., 3.])
        """
        limits = np.concatenate(([low], edges, [high]))
        middles = (limits[:-1] + limits[1:]) / 2
        unit = step / _PARTS
        weights = np.round((middles - middles[0]) / unit).astype(np.int64)
        return cls(float(middles[0]), unit, weights)

    @property
    def values(self) -> FloatArray:
        """The value of each point."""
        return np.asarray(self.first + self.unit * self.of)

    @property
    def most(self) -> int:
        """The largest weight."""
        return int(self.of[-1])

    def sd(self, n: int) -> Steps:
        """The rounded SD of n people, for V."""
        share = self.unit / math.sqrt(n * (n - 1))
        return lambda v: round_mean_sd(MeanSD(n, 0.0, share * math.sqrt(v))).sd

    def mean(self, n: int, sd: float) -> Steps:
        """The rounded mean of n people with this rounded SD, for S."""
        return lambda s: round_mean_sd(MeanSD(n, self.first + self.unit * s / n, sd)).mean

    def moments(self, counts: IntArray) -> MeanSD | None:
        """What is told of people at these points; None where nothing is.

        This is the rule on pooled rows; `federation.joint.program` follows it on shares.

        Examples
        --------
        >>> Weights.between(np.arange(0.5, 11), 1.0, -0.5, 11.5).moments(np.full(12, 3))
        MeanSD(n=36, mean=5.5, sd=3.5)
        """
        n, weights = int(counts.sum()), self.of.astype(object)
        some = np.flatnonzero(counts)
        if len(some) < SD_NEEDS:
            return None
        total = int((weights * counts).sum())
        spread = n * int((weights * weights * counts).sum()) - total * total
        ends = weights[some[[0, -1]]]
        if any(2 * (n * int(end) - total) ** 2 > n * spread for end in ends):
            return None
        sd = self.sd(n)(spread)
        return MeanSD(n, self.mean(n, sd)(total), sd)


def untold_points(table: JointCells, points: int) -> BoolArray:
    """The points of which the counts of cells do not tell how many people are there.

    Examples
    --------
    >>> from unpooled.maths.joint.cutting import Split
    >>> untold_points(JointCells(50, (Split(0, 10), Split(2, 30))), 5)
    array([False,  True,  True,  True,  True])
    """
    sizes = np.diff([-1, *table.edges, points - 1])
    return np.asarray(np.repeat(sizes > 1, sizes))


def leave_enough(
    counts: IntArray,
    table: JointCells,
    k: int,
    cells: Sequence[tuple[float | None, float | None]],
) -> bool:
    """Whether the moments of all may be told beside those of cells, which may be None.

    Those that follow of the other cells must speak of nobody at points that fewer than K share, or
    of K such people, at three points or more for a mean and at eight for an SD.
    """
    untold = untold_points(table, len(counts))
    sizes = np.diff([-1, *table.edges, len(counts) - 1])
    for kind, needs in enumerate((MEAN_NEEDS, SD_NEEDS)):
        left = untold & np.repeat([cell[kind] is None for cell in cells], sizes)
        rare = int(counts[left & (counts < k)].sum())
        if rare and (rare < k or np.count_nonzero(counts[left]) < needs):
            return False
    return True


def next_step(steps: Steps, low: int, high: int) -> int:
    """A number in (low, high] at which a rising number rises, near the middle; steps differ there.

    Examples
    --------
    >>> next_step(lambda s: s // 10, 3, 58)
    40
    """
    middle = (low + high) // 2
    here = steps(middle)
    if steps(high) > here:
        return _first(lambda s: steps(s) > here, middle, high)
    return _first(lambda s: steps(s) >= here, low, middle)


def _first(reached: Callable[[int], bool], low: int, high: int) -> int:
    """The first number in (low, high] that reaches something; `high` does."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


@dataclass(frozen=True, slots=True)
class CellScale:
    """The cells of some tables of which moments may be told, and what their points stand for.

    `table` is the place of each one's table, `first` and `last` are its points, `n` its people,
    `before` those below it in the table. `weights` has a row of whole numbers for each: of n people
    whose weights have the sum S, the mean on the cell's scale is `start + unit · S / n`.
    """

    table: IntArray
    cell: IntArray
    first: IntArray
    last: IntArray
    n: IntArray
    before: IntArray
    weights: tuple[IntArray, ...]
    start: FloatArray
    unit: FloatArray
    rounding: Rounding

    @classmethod
    def of(
        cls,
        tables: Sequence[JointCells | None],
        edges: FloatArray,
        lattice: Lattice,
        values: FloatArray,
    ) -> "CellScale":
        """Those of these tables, whose points lie between `edges` and stand for these values."""
        rows: list[tuple[int, ...]] = []
        weights, starts, parts, roundings = [], [], [], []
        for place, table in enumerate(tables):
            if table is None:
                continue
            ends = np.array([-1, *table.edges, len(values) - 1])
            counts, cuts = np.array(table.counts), edges[list(table.edges)]
            points = np.diff(ends)
            may = np.flatnonzero((points >= MEAN_NEEDS) & (counts >= _MEAN_PEOPLE))
            scale = lattice.open_scale(cuts)
            roundings.append(Rounding.of(cuts, lattice, counts).at(may))
            below = np.cumsum(counts) - counts
            for cell in may.tolist():
                first, last, n = int(ends[cell]) + 1, int(ends[cell + 1]), int(counts[cell])
                scaled = scale.at(np.full(last - first + 1, cell)).forth(values[first : last + 1])
                width = float(scaled[-1] - scaled[0])
                unit = width / max(1, min(_CELL_PARTS, _MOST // n))
                weights.append(np.round((scaled - scaled[0]) / unit).astype(np.int64))
                starts.append(float(scaled[0]))
                parts.append(unit)
                rows.append((place, cell, first, last, n, int(below[cell])))
        columns = np.array(rows, dtype=np.int64).reshape(len(rows), 6)
        together = Rounding.together([Rounding.nothing(), *roundings])
        scales = np.array(starts), np.array(parts), together
        of_table, of_cell, firsts, lasts, people, before = columns.T
        return cls(of_table, of_cell, firsts, lasts, people, before, tuple(weights), *scales)

    def __len__(self) -> int:
        return len(self.n)

    def at(self, which: IntArray) -> "CellScale":
        """Some of the cells."""
        weights = tuple(self.weights[i] for i in which.tolist())
        return CellScale(
            self.table[which],
            self.cell[which],
            self.first[which],
            self.last[which],
            self.n[which],
            self.before[which],
            weights,
            self.start[which],
            self.unit[which],
            self.rounding.at(which),
        )

    @property
    def may_tell_sd(self) -> IntArray:
        """The cells with points and people enough for an SD."""
        return np.flatnonzero((self.last - self.first + 1 >= SD_NEEDS) & (self.n >= _SD_PEOPLE))

    @property
    def most(self) -> IntArray:
        """The most that the weights of each one's people can be together."""
        return self.n * np.array([w[-1] for w in self.weights], dtype=np.int64)

    def sds(self, spreads: IntArray) -> FloatArray:
        """The rounded SDs, for V."""
        exact = self.unit / self.n * np.sqrt(spreads.astype(np.float64))
        return self.rounding.sd(np.maximum(exact, np.nextafter(0.0, 1.0)))

    def means(self, totals: IntArray, sds: FloatArray) -> FloatArray:
        """The rounded means beside these rounded SDs, for S."""
        return self.rounding.mean(self.start + self.unit * totals / self.n, sds)

    def moments(
        self, counts: Sequence[IntArray], k: int
    ) -> list[tuple[float | None, float | None]]:
        """Mean and SD of each cell, of people who are counted at all points of each table.

        This is the rule on pooled rows; `federation.joint.computation` follows it on shares.
        """
        of_cells: list[tuple[float | None, float | None]] = []
        may_sd = set(self.may_tell_sd.tolist())
        for at in range(len(self)):
            points = slice(int(self.first[at]), int(self.last[at]) + 1)
            people, w, n = counts[self.table[at]][points], self.weights[at], int(self.n[at])
            some = np.flatnonzero(people)
            if len(some) < MEAN_NEEDS or int(people[people < k].sum()) < k:
                of_cells.append((None, None))
                continue
            total = int((w * people).sum())
            spread = n * int((w * w * people).sum()) - total * total
            one, sd = self.at(np.array([at])), math.nan
            ends = w[some[[0, -1]]]
            even = all(2 * (n * int(end) - total) ** 2 <= n * spread for end in ends)
            if at in may_sd and len(some) >= SD_NEEDS and even:
                sd = float(one.sds(np.array([spread]))[0])
            mean = float(one.means(np.array([total]), np.array([sd]))[0])
            of_cells.append((mean, None if math.isnan(sd) else sd))
        return of_cells


@dataclass(frozen=True, slots=True)
class SDSteps:
    """The rounded SD of each cell, which rises by steps with V."""

    scale: CellScale

    def __call__(self, spreads: IntArray) -> FloatArray:
        return self.scale.sds(spreads)

    @property
    def most(self) -> IntArray:
        """The most that each V can be."""
        return np.asarray(self.scale.most**2 // 4)

    def at(self, which: IntArray) -> "SDSteps":
        """Of some of the cells."""
        return SDSteps(self.scale.at(which))


@dataclass(frozen=True, slots=True)
class MeanSteps:
    """The rounded mean of each cell beside its rounded SD, which rises by steps with S."""

    scale: CellScale
    sds: FloatArray

    def __call__(self, totals: IntArray) -> FloatArray:
        return self.scale.means(totals, self.sds)

    @property
    def most(self) -> IntArray:
        """The most that each S can be."""
        return self.scale.most

    def at(self, which: IntArray) -> "MeanSteps":
        """Of some of the cells."""
        return MeanSteps(self.scale.at(which), self.sds[which])


CellSteps = SDSteps | MeanSteps


def next_steps(steps: Callable[[IntArray], FloatArray], low: IntArray, high: IntArray) -> IntArray:
    """As `next_step`, for an array of rising numbers at once.

    Examples
    --------
    >>> next_steps(lambda s: s // 10, np.array([3]), np.array([58]))
    array([40])
    """
    middle = (low + high) // 2
    here = steps(middle)
    up = steps(high) > here
    low, high = np.where(up, middle, low), np.where(up, high, middle)
    while (high - low > 1).any():
        middle = (low + high) // 2
        there = steps(middle)
        reached = np.where(up, there > here, there >= here) & (high - low > 1)
        stays = high - low <= 1
        low = np.where(reached | stays, low, middle)
        high = np.where(reached, middle, high)
    return high
