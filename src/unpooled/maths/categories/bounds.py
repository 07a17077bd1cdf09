"""Counts of levels where some centers tell only the sum of several: bounds, estimates, tests.

A center tells, for each group, how many people each *cell* has. A cell is a level or several; each
level lies in one cell. A level's count is then known up to the cells it shares, and what is known
of the sum over centers is the sum of what is known of each: these bounds are sharp, that is, some
people of whom all was told are at either end.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unpooled.maths.arrays import BoolArray, FloatArray, IntArray, read_only

_ROUNDS = 10_000  # of EM; it stops earlier when no count moves by more than this share of a person
_STILL = 1e-9


@dataclass(frozen=True, slots=True)
class Cell:
    """How many people are at any of these levels."""

    levels: tuple[str, ...]
    count: int

    def __post_init__(self) -> None:
        if not self.levels or len(set(self.levels)) < len(self.levels):
            raise ValueError(f"levels of a cell must be one or more, each once, got {self.levels}")
        if not (self.count >= 0 and float(self.count).is_integer()):
            raise ValueError(f"count must be a whole number, not negative, got {self.count}")
        object.__setattr__(self, "count", int(self.count))


@dataclass(frozen=True, slots=True)
class PartialTable:
    """One center's counts: for each group cells in which every level occurs once.

    A group of which there is nobody has one cell of all levels with 0 people. Where a center tells
    several blocks of people, each is a table of its own.
    """

    levels: tuple[str, ...]
    groups: tuple[tuple[Cell, ...], ...]

    def __post_init__(self) -> None:
        if not self.levels or len(set(self.levels)) < len(self.levels):
            raise ValueError(f"levels must be one or more, each once, got {self.levels}")
        for cells in self.groups:
            held = [level for cell in cells for level in cell.levels]
            if sorted(held) != sorted(self.levels):
                raise ValueError(
                    f"the cells of a group must hold each of {self.levels} once, got {held}"
                )

    @classmethod
    def exact(cls, levels: Iterable[str], counts: npt.ArrayLike) -> "PartialTable":
        """A table, groups × levels, where nothing is merged.

        Examples
        --------
        >>> PartialTable.exact("AB", [[3, 4]]).groups
        ((Cell(levels=('A',), count=3), Cell(levels=('B',), count=4)),)
        """
        names = tuple(levels)
        table = np.asarray(counts)
        if table.ndim != 2 or table.shape[1] != len(names):
            raise ValueError(f"counts must be groups × {len(names)} levels, got {table.shape}")
        rows = [
            tuple(Cell((name,), count) for name, count in zip(names, row, strict=True))
            for row in table.tolist()
        ]
        return cls(names, tuple(rows))


@dataclass(frozen=True, slots=True)
class CountBounds:
    """How many people of each group are at least and at most at each level; groups × levels."""

    levels: tuple[str, ...]
    low: FloatArray
    high: FloatArray
    people: FloatArray  # of each group; always exact

    def __post_init__(self) -> None:
        for name in ("low", "high", "people"):
            object.__setattr__(self, name, read_only(getattr(self, name)))
        if not (self.low <= self.high).all():
            raise ValueError("low must not exceed high")

    @property
    def exact(self) -> BoolArray:
        """Which counts are known; groups × levels."""
        return np.asarray(self.low == self.high)

    @property
    def percent_low(self) -> FloatArray:
        """At least how many percent of the group; 0 in a group without people."""
        return _percent(self.low, self.people, 0.0)

    @property
    def percent_high(self) -> FloatArray:
        """At most how many percent of the group; 100 in a group without people."""
        return _percent(self.high, self.people, 100.0)


@dataclass(frozen=True, slots=True)
class EstimatedCounts:
    """Counts in which merged people are allocated by a model: an estimate, never to be shown as n.

    `estimated` says for which groups and levels; all others are counted.
    """

    levels: tuple[str, ...]
    counts: FloatArray
    estimated: BoolArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", read_only(self.counts))


@dataclass(frozen=True, slots=True)
class CoarseTable:
    """Exact counts of the centers, on parts of levels that no cell of any center cuts.

    `counts` is centers × groups × parts.
    """

    levels: tuple[str, ...]
    parts: tuple[tuple[str, ...], ...]
    counts: FloatArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", read_only(self.counts))

    @property
    def total(self) -> FloatArray:
        """The counts summed over centers, groups × parts."""
        return np.asarray(self.counts.sum(axis=0))

    @property
    def joined(self) -> tuple[tuple[str, ...], ...]:
        """The parts of more than one level."""
        return tuple(part for part in self.parts if len(part) > 1)

    @property
    def plain(self) -> bool:
        """Whether nothing was joined: a test of this table is the test of all levels."""
        return not self.joined

    @property
    def scores(self) -> tuple[float, ...]:
        """Where the parts lie, for tests of trend: the mean place of their levels."""
        places = {level: place for place, level in enumerate(self.levels)}
        return tuple(sum(places[level] for level in part) / len(part) for part in self.parts)


def count_bounds(centers: Sequence[PartialTable]) -> CountBounds:
    """How many people are at least and at most at each level, over all centers.

    Examples
    --------
    >>> merged = PartialTable(("I", "II", "III"), ((Cell(("I",), 20), Cell(("II", "III"), 14)),))
    >>> bounds = count_bounds([merged, PartialTable.exact(("I", "II", "III"), [[30, 12, 10]])])
    >>> bounds.low, bounds.high
    (array([[50., 12., 10.]]), array([[50., 26., 24.]]))
    """
    levels, _ = _alike(centers)
    ends = [subset_bounds(centers, (level,)) for level in levels]
    low, high = (np.column_stack(side) for side in zip(*ends, strict=True))
    people, _ = subset_bounds(centers, levels)
    return CountBounds(levels, low, high, people)


def subset_bounds(
    centers: Sequence[PartialTable], subset: Iterable[str]
) -> tuple[FloatArray, FloatArray]:
    """How many people of each group are at least and at most at any of some levels.

    Cells inside the subset count for sure; cells that share a level with it may.

    Examples
    --------
    >>> merged = PartialTable(("I", "II", "III"), ((Cell(("I",), 20), Cell(("II", "III"), 14)),))
    >>> subset_bounds([merged], ("II", "III"))
    (array([14.]), array([14.]))
    >>> subset_bounds([merged], ("I", "II"))
    (array([20.]), array([34.]))
    """
    levels, groups = _alike(centers)
    wanted = set(subset)
    if unknown := sorted(wanted - set(levels)):
        raise ValueError(f"subset must be of the levels {levels}, got {unknown}")
    low, high = np.zeros(groups), np.zeros(groups)
    for group, cell in _cells(centers):
        if wanted.issuperset(cell.levels):
            low[group] += cell.count
        if not wanted.isdisjoint(cell.levels):
            high[group] += cell.count
    return low, high


def estimated_counts(centers: Sequence[PartialTable]) -> EstimatedCounts:
    """Merged people allocated to levels in proportion to the group's people elsewhere, by EM [1]_.

    The model: within a group a level's share is the same in all centers. Where only sums of two
    levels are known of a group, they are divided as in all groups together; where of none, evenly.

    References
    ----------
    .. [1] Dempster, Laird, Rubin (1977), Journal of the Royal Statistical Society B 39, 1-38.

    Examples
    --------
    >>> merged = PartialTable(("I", "II", "III"), ((Cell(("I",), 20), Cell(("II", "III"), 14)),))
    >>> estimated_counts([merged, PartialTable.exact(("I", "II", "III"), [[30, 15, 5]])]).counts
    array([[50. , 25.5,  8.5]])
    """
    levels, groups = _alike(centers)
    people = [_by_set(centers, levels, group) for group in range(groups)]
    together: dict[tuple[int, ...], int] = {}
    for group in people:
        for places, count in group.items():
            together[places] = together.get(places, 0) + count
    start = _allocated(together, np.ones(len(levels)))
    counts = np.array([_allocated(group, start) for group in people]).reshape(groups, len(levels))
    bounds = count_bounds(centers)
    exact = np.where(bounds.exact, bounds.low, np.clip(counts, bounds.low, bounds.high))
    return EstimatedCounts(levels, exact, ~bounds.exact)


def coarse_table(centers: Sequence[PartialTable]) -> CoarseTable:
    """The finest table of which all centers tell exact counts.

    Levels that any center merges in any group are joined, and so are those joined to them: the
    join of all partitions. Cells without people cut nothing: all their levels are known to have
    none. Any test of `total`, or of `counts` by center, is then exact; it has fewer levels, so it
    may miss differences between levels that were joined.

    Examples
    --------
    >>> merged = PartialTable(("I", "II", "III"), ((Cell(("I",), 20), Cell(("II", "III"), 14)),))
    >>> table = coarse_table([merged, PartialTable.exact(("I", "II", "III"), [[30, 12, 10]])])
    >>> table.joined, table.total
    ((('II', 'III'),), array([[50., 36.]]))
    """
    levels, groups = _alike(centers)
    place = {level: number for number, level in enumerate(levels)}
    part = np.arange(len(levels))
    for _, cell in _cells(centers):
        joined = np.isin(part, part[[place[level] for level in cell.levels]])
        if cell.count:
            part[joined] = part[joined].min()
    firsts, part = np.unique(part, return_inverse=True)
    counts = np.zeros((len(centers), groups, len(firsts)))
    for number, center in enumerate(centers):
        for group, cell in _cells([center]):
            counts[number, group, part[place[cell.levels[0]]]] += cell.count
    parts = [
        [level for level, mark in zip(levels, part, strict=True) if mark == number]
        for number in range(len(firsts))
    ]
    return CoarseTable(levels, tuple(map(tuple, parts)), counts)


def nothing_merged(centers: Sequence[PartialTable]) -> bool:
    """Whether all counts are known, so that every statistic is the one of the pooled people.

    Examples
    --------
    >>> nothing_merged([PartialTable.exact("AB", [[3, 4]])])
    True
    """
    _alike(centers)
    return all(len(cell.levels) == 1 or not cell.count for _, cell in _cells(centers))


def _alike(centers: Sequence[PartialTable]) -> tuple[tuple[str, ...], int]:
    """The levels and the number of groups, if all centers have the same."""
    if not centers:
        raise ValueError("centers must hold at least one center, got none")
    levels, groups = centers[0].levels, len(centers[0].groups)
    for center in centers:
        if center.levels != levels or len(center.groups) != groups:
            raise ValueError(
                f"centers must have the same levels and groups, got {levels} × {groups} and "
                f"{center.levels} × {len(center.groups)}"
            )
    return levels, groups


def _cells(centers: Iterable[PartialTable]) -> Iterable[tuple[int, Cell]]:
    """Every cell with its group."""
    for center in centers:
        for group, cells in enumerate(center.groups):
            for cell in cells:
                yield group, cell


def _by_set(
    centers: Sequence[PartialTable], levels: tuple[str, ...], group: int
) -> dict[tuple[int, ...], int]:
    """A group's people by the places of the levels that their cells hold, over centers."""
    people: dict[tuple[int, ...], int] = {}
    for center in centers:
        for cell in center.groups[group]:
            places = tuple(sorted(levels.index(level) for level in cell.levels))
            people[places] = people.get(places, 0) + cell.count
    return people


def _allocated(people: dict[tuple[int, ...], int], start: FloatArray) -> FloatArray:
    """People of each level by EM from these shares; a cell without a share is divided evenly."""
    singles = np.zeros(len(start))
    merged = []
    for places, count in people.items():
        if len(places) == 1:
            singles[places[0]] += count
        elif count:
            merged.append((np.array(places), count))
    counts = _e_step(singles, merged, start)
    for _ in range(_ROUNDS if merged else 0):
        before, counts = counts, _e_step(singles, merged, counts)
        if np.abs(counts - before).max() <= _STILL:
            break
    return counts


def _e_step(
    singles: FloatArray, merged: list[tuple[IntArray, int]], shares: FloatArray
) -> FloatArray:
    counts = singles.copy()
    for places, count in merged:
        share = shares[places]
        total = share.sum()
        counts[places] += count * (share / total if total > 0 else 1 / len(places))
    return counts


def _percent(counts: FloatArray, people: FloatArray, of_nobody: float) -> FloatArray:
    n = people[:, None]
    return np.asarray(np.where(n > 0, 100 * counts / np.where(n > 0, n, 1), of_nobody))
