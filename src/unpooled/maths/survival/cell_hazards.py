"""Where in their cells people leave, when centers tell counts alone: by the hazards of their arm.

The cells of all centers of an arm, of events and of censorings, overlap, so together they say more
than each. The hazards of both are constant between a few times, with people enough in each piece,
and in proportion between arms. They are fitted by EM, as for interval-censored times [1]_: people
are shared out over the pieces that their cell reaches into; then a hazard is those who leave in a
piece over the time spent there [2]_. So the people of a last cell, which ends at a far horizon,
leave as those before them do.

References
----------
.. [1] Turnbull (1976), Journal of the Royal Statistical Society B 38, 290-295.
.. [2] Friedman (1982), Annals of Statistics 10, 101-113.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unpooled.maths.arrays import BoolArray, FloatArray, IntArray
from unpooled.maths.lattice.lattice import Lattice, LatticeTable, one_value

EITHER, EVENTS, CENSORED = 0, 1, 2  # which hazard a table is of: the sum of both, or one
_PIECE = 80.0  # people in cells inside a piece, at least
_STEPS = 25  # of EM
_FEWEST = 5  # people of whom one may stand apart; and steps of the grid up to the mean
_SHARE = 0.64  # of the squares, of who dominates ten or twenty exponential times


@dataclass(frozen=True, slots=True)
class _Cells:
    """The cells of tables, side by side."""

    low: FloatArray
    high: FloatArray
    people: FloatArray
    kind: IntArray
    blank: BoolArray  # whether it tells no mean
    mean: FloatArray
    bare: BoolArray  # the last one of a table, if it tells a mean and no SD

    @classmethod
    def of(cls, tables: Sequence[LatticeTable], kinds: Sequence[int], lattice: Lattice) -> "_Cells":
        limits = [lattice.limits(table.edges) for table in tables]
        sizes = [len(table.counts) for table in tables]
        return cls(
            np.concatenate([ends[:-1] for ends in limits]),
            np.concatenate([ends[1:] for ends in limits]),
            np.concatenate([table.counts for table in tables]).astype(np.float64),
            np.repeat(kinds, sizes),
            np.concatenate([np.isnan(table.means) for table in tables]),
            np.concatenate([table.means for table in tables]),
            np.concatenate([_is_bare(table) for table in tables]),
        )

    @property
    def wide(self) -> BoolArray:
        """Which hold more than one value."""
        return ~one_value(self.low, self.high)


def _is_bare(table: LatticeTable) -> BoolArray:
    last = np.arange(len(table.counts)) == len(table.counts) - 1
    return np.asarray(last & np.isnan(table.sds) & ~np.isnan(table.means))


@dataclass(frozen=True, slots=True)
class CellHazards:
    """Hazards of events and of censoring, constant between times; a column per piece."""

    times: FloatArray  # limits of the pieces
    hazards: FloatArray  # a row for events, one for censorings

    def reached(self, kind: int, times: FloatArray) -> FloatArray:
        """The share of people who have left by each time, of the kind of a table."""
        total, at = self._total, self._at_limits(kind)
        piece = np.clip(np.searchsorted(self.times, times, "right") - 1, 0, len(total) - 1)
        gone = _gone(total[piece] * (times - self.times[piece]))
        whole = _gone(total * np.diff(self.times))[piece]
        return np.asarray(at[piece] + gone / whole * np.diff(at)[piece])

    def when(self, kind: int, shares: FloatArray) -> FloatArray:
        """The times by which these shares have left."""
        total, at = self._total, self._at_limits(kind)
        piece = np.clip(np.searchsorted(at, shares, "right") - 1, 0, len(total) - 1)
        part = (shares - at[piece]) / np.maximum(np.diff(at)[piece], 1e-300)
        whole = _gone(total * np.diff(self.times))[piece]
        inside = -np.log1p(-np.clip(part, 0.0, 1.0) * whole) / total[piece]
        return np.asarray(np.minimum(self.times[piece] + inside, self.times[piece + 1]))

    @property
    def _total(self) -> FloatArray:
        return np.asarray(np.maximum(self.hazards.sum(axis=0), 1e-9 / self.times[-1]))

    def _at_limits(self, kind: int) -> FloatArray:
        """The shares that have left at the limits of the pieces."""
        total, width = self._total, np.diff(self.times)
        left = np.exp(-np.concatenate(([0.0], np.cumsum(total * width))))[:-1]
        of_kind = total if kind == EITHER else self.hazards[kind - 1]
        return np.concatenate(([0.0], np.cumsum(left * _gone(total * width) * of_kind / total)))

    def shared(self, cells: _Cells) -> tuple[FloatArray, FloatArray]:
        """How many leave in each piece, with the event and censored, and the time spent there."""
        wide = cells.wide
        total, width = self.hazards.sum(axis=0), np.diff(self.times)
        low = np.clip(cells.low[wide, None], self.times[:-1], self.times[1:]) - self.times[:-1]
        high = np.clip(cells.high[wide, None], self.times[:-1], self.times[1:]) - self.times[:-1]
        left = np.exp(-np.concatenate(([0.0], np.cumsum(total * width))))[:-1]
        mass = left * (np.exp(-total * low) - np.exp(-total * high))
        of_status = self.hazards / np.maximum(total, 1e-300)
        kind = cells.kind[wide]
        both = np.stack((np.ones_like(total), *of_status))[kind]
        mass = np.maximum(mass * both, 1e-300 * (high - low))
        here = cells.people[wide, None] * mass / mass.sum(axis=1, keepdims=True)
        split = np.stack((of_status, *np.eye(2)[..., None] * np.ones_like(total)))
        leaving = np.einsum("cp,csp->sp", here, split[kind])
        beyond = here[:, ::-1].cumsum(axis=1)[:, ::-1] - here  # leave in later pieces
        spent = beyond.sum(axis=0) * width + (here * _mean_within(total, low, high)).sum(axis=0)
        after = np.clip(cells.low[~wide, None] - self.times[:-1], 0.0, width)  # leave at one time
        return leaving, np.asarray(spent + cells.people[~wide] @ after)


def _gone(hazard: FloatArray) -> FloatArray:
    """The share that leaves while so much hazard adds up; never quite all."""
    return np.asarray(np.clip(-np.expm1(-hazard), 0.0, 1 - 1e-12))


def fit_hazards(
    arms: Sequence[tuple[Sequence[LatticeTable], Sequence[int]]], lattice: Lattice
) -> list[CellHazards]:
    """The hazards of each arm, from its tables and their kinds; those of arms are proportional."""
    cells = [_Cells.of(tables, kinds, lattice) for tables, kinds in arms]
    times = _limits(cells, lattice)
    base, level = np.full((2, len(times) - 1), 1 / lattice.upper), np.ones((len(arms), 2))
    for _ in range(_STEPS):
        models = [CellHazards(times, some[:, None] * base) for some in level]
        shared = [model.shared(of_arm) for model, of_arm in zip(models, cells, strict=True)]
        leaving = np.array([number for number, _ in shared])
        spent = np.array([time for _, time in shared])
        base = leaving.sum(axis=0) / np.maximum(level.T @ spent, 1e-300)
        level = leaving.sum(axis=2) / np.maximum(spent @ base.T, 1e-300)
    return [CellHazards(times, some[:, None] * base) for some in level]


def _limits(arms: Sequence[_Cells], lattice: Lattice) -> FloatArray:
    """The limits of pieces: each has enough people in cells that lie inside it.

    Of cells that reach into several pieces nobody knows in which of them people leave.
    """
    low, high, people = (
        np.concatenate([getattr(cells, name)[cells.wide] for cells in arms])
        for name in ("low", "high", "people")
    )
    limits = [lattice.lower]
    for end in np.unique(high):
        inside = float(people[(low >= limits[-1]) & (high <= end)].sum())
        if inside >= _PIECE and float(people[low >= end].sum()) >= _PIECE:
            limits.append(float(end))
    return np.array([*limits, lattice.upper])


def _mean_within(rate: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """The mean of times between these limits that are exponential with this rate."""
    width = high - low
    x = np.clip(rate * width, 1e-9, 700.0)
    share = np.where(x < 1e-4, 0.5 - x / 12, 1 / x - 1 / np.expm1(x))
    return np.asarray(low + width * share)


def spread_by_hazards(
    values: FloatArray,
    cell: IntArray,
    tables: Sequence[LatticeTable],
    kind: int,
    hazards: Sequence[CellHazards],
    lattice: Lattice,
) -> FloatArray:
    """The values, ascending in each of the tables' cells; those of cells without a mean anew.

    `hazards` are those of the arm of each table. In last cells without an SD one leaves far later
    than the others.

    Examples
    --------
    >>> table = LatticeTable(np.array([10.0, 20.0]), [30, 10, 10], [np.nan] * 3, [np.nan] * 3)
    >>> lattice = Lattice(1.0, lower=0.0, upper=60.0)
    >>> (hazards,) = fit_hazards([([table], [EVENTS])], lattice)
    >>> values, cell = np.linspace(20.5, 59.5, 10), np.full(10, 2)
    >>> spread_by_hazards(values, cell, [table], EVENTS, [hazards], lattice).round()
    array([21., 22., 23., 25., 27., 29., 31., 35., 40., 49.])
    """
    cells = _Cells.of(tables, [kind] * len(tables), lattice)
    blank = cells.blank & cells.wide
    spread = _with_late(values, cell, cells, lattice)
    if not blank.any():
        return spread
    whose = np.repeat(np.arange(len(tables)), [len(table.counts) for table in tables])
    order = np.lexsort((values, cell))
    number = cell[order]
    begin = np.searchsorted(number, number)
    size = np.searchsorted(number, number, "right") - begin
    level = (np.arange(len(number)) - begin + 0.5) / size
    for model in {id(one): one for one in hazards}.values():
        of_model = np.array([one is model for one in hazards])[whose[number]] & blank[number]
        if not of_model.any():
            continue
        some = number[of_model]
        start, end = (model.reached(kind, ends[some]) for ends in (cells.low, cells.high))
        moved = model.when(kind, start + level[of_model] * (end - start))
        spread[order[of_model]] = np.clip(moved, cells.low[some], cells.high[some])
    return spread


def _with_late(values: FloatArray, cell: IntArray, cells: _Cells, lattice: Lattice) -> FloatArray:
    """The values with people of bare cells anew: an SD is withheld where one dominates it."""
    spread, grain = np.array(values), lattice.resolution or 0.0
    for i in np.flatnonzero(cells.bare & cells.wide):
        here = np.flatnonzero(cell == i)
        excess, n = cells.mean[i] - cells.low[i], len(here)
        if n != cells.people[i] or n < _FEWEST or excess < _FEWEST * grain:  # few different values
            continue
        times = cells.low[i] + excess * _one_late(n)
        if times[-1] < cells.high[i]:
            spread[here[np.argsort(values[here], kind="stable")]] = times
    return spread


def _one_late(n: int) -> FloatArray:
    """Expected times, ascending, of mean 1: exponential ones, of whom the last has so many squares.

    With o for the last one and v for the variance of the others over the square of their mean m
    = (n − o)/(n − 1), their squares about 1 are (n − 1)(v m² + (m − 1)²).

    Examples
    --------
    >>> _one_late(10).round(2)
    array([0.09, 0.2 , 0.31, 0.45, 0.6 , 0.79, 1.02, 1.34, 1.8 , 3.39])
    """
    others = np.cumsum(1 / np.arange(n, 1, -1))  # the first n − 1 of n order statistics
    others = others / others.mean()
    v, ratio = float(others.var()), 1 / _SHARE - 1
    # with x = o − 1: m − 1 = −x/(n − 1); ratio x² = (n − 1) v (1 − x/(n − 1))² + x²/(n − 1)
    a, b = ratio - (1 + v) / (n - 1), 2 * v
    x = (-b + math.sqrt(b * b + 4 * a * v * (n - 1))) / (2 * a)
    return np.append(others * (n - 1 - x) / (n - 1), 1 + x)
