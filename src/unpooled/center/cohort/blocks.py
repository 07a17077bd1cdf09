"""Blocks: the people of a center who are alike in several groupings, as far as these may leave.

People are parted by the most important grouping first. Levels of too few people are joined to each
other, to neighbours where levels rise; then each part is parted by the next grouping. So every
person is in one block, every block has enough people, and what is joined is joined as late as can
be.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from unpooled.center.questions import Grouping, block_label
from unpooled.maths import big_arrays
from unpooled.maths.arrays import BoolArray, IntArray, Places

Joined = tuple[int, ...]  # levels that are released as one


@dataclass(frozen=True, slots=True)
class Levels:
    """A grouping at a center: the level of each person, and which levels may be said to be empty.

    That nobody has a level tells of everybody; but a level that the asker chose so that one person
    alone can have it must not tell whether that person is there.
    """

    grouping: Grouping
    names: tuple[str, ...]
    of: Places
    empty: tuple[bool, ...]


def join_levels(
    counts: Sequence[int], least: int, *, ordered: bool, empty: Sequence[bool]
) -> list[Joined]:
    """Which levels are released together so that each has enough people.

    All levels below the least are released together, of those that rise all that follow each other,
    or each half of them where both halves have enough; where they are too few, they are joined to
    the smaller of their neighbours, or to the smallest of the others. So what is joined depends on
    no count below the least: else it would say which of many levels have one person and which
    nobody. Empty levels that may be said to be so are left out.

    Examples
    --------
    >>> join_levels([4, 30, 7, 25], 10, ordered=False, empty=[False] * 4)
    [(0, 2), (1,), (3,)]
    >>> join_levels([4, 30, 7, 25], 10, ordered=True, empty=[False] * 4)
    [(0, 1), (2, 3)]
    >>> join_levels([8, 8, 0, 20, 9, 9, 0, 12], 10, ordered=True, empty=[False] * 8)
    [(0, 1, 2), (3,), (4, 5, 6), (7,)]
    """
    groups: list[tuple[Joined, int]] = []
    for levels in _runs(counts, least, ordered=ordered, empty=empty):
        groups += [
            (part, sum(counts[level] for level in part)) for part in _halves(levels, counts, least)
        ]
    while len(groups) > 1:
        small = min(range(len(groups)), key=lambda place: groups[place][1])
        if groups[small][1] >= least:
            break
        others = [place for place in range(len(groups)) if place != small]
        if ordered:
            others = [place for place in others if abs(place - small) == 1]
        other = min(others, key=lambda place: groups[place][1])
        first, last = sorted((small, other))
        joined = tuple(sorted(groups[first][0] + groups[last][0]))
        groups[first] = joined, groups[first][1] + groups[last][1]
        del groups[last]
    return sorted(levels for levels, _ in groups)


def _runs(
    counts: Sequence[int], least: int, *, ordered: bool, empty: Sequence[bool]
) -> Iterator[Joined]:
    """Each level of enough people; those of too few together, as far as they may be."""
    few: list[int] = []
    for level, n in enumerate(counts):
        if n == 0 and empty[level]:
            continue
        if n < least:
            few.append(level)
            continue
        if ordered and few:
            yield tuple(few)
            few = []
        yield (level,)
    if few:
        yield tuple(few)


def _halves(levels: Joined, counts: Sequence[int], least: int) -> Iterator[Joined]:
    """The halves of these levels, and theirs, as long as both have enough people."""
    halves = levels[: len(levels) // 2], levels[len(levels) // 2 :]
    if min(sum(counts[level] for level in half) for half in halves) < least:
        yield levels
        return
    for half in halves:
        yield from _halves(half, counts, least)


def split_people(groupings: Sequence[Levels], least: int, size: int) -> dict[str, BoolArray]:
    """The blocks of all people, by name; one where these are fewer than twice the least."""
    if not groupings:
        return {block_label(()): big_arrays.full(size, True, bool)}
    codes = np.column_stack([levels.of.astype(np.int64) for levels in groupings])
    cells, place, people = np.unique(codes, axis=0, return_inverse=True, return_counts=True)
    block_of = np.zeros(len(cells), dtype=np.int32)
    names = []
    for number, (levels, rows) in enumerate(_split(groupings, least, cells, people)):
        block_of[rows] = number
        names.append(block_label(levels))
    block = block_of[place.ravel()]
    return {name: block == number for number, name in enumerate(names)}


def _split(
    groupings: Sequence[Levels], least: int, cells: IntArray, people: IntArray
) -> Iterator[tuple[list[list[str]], IntArray]]:
    """Each block's levels, and its cells: the combinations of levels that it holds."""

    def parts(depth: int, rows: IntArray) -> Iterator[tuple[list[list[str]], IntArray]]:
        if depth == len(groupings):
            yield [], rows
            return
        levels = groupings[depth]
        levels_here = cells[rows, depth]
        counts = np.bincount(levels_here, people[rows], len(levels.names)).astype(int).tolist()
        ordered = levels.grouping.rises
        for joined in join_levels(counts, least, ordered=ordered, empty=levels.empty):
            names = [levels.names[level] for level in joined]
            for rest, some in parts(depth + 1, rows[np.isin(levels_here, joined)]):
                yield [names, *rest], some

    yield from parts(0, np.arange(len(cells)))
