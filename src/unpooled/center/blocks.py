"""Blocks: the people of a center who are alike in several groupings, as far as these may be told.

People are parted by the most important grouping first. A level of too few people is joined to
another, to a neighbour where levels rise; then each part is parted by the next grouping. So every
person is in one block, every block has enough people, and what is joined is joined as late as can
be.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from unpooled.center.questions import Grouping, block_label
from unpooled.maths import big_arrays
from unpooled.maths.arrays import BoolArray, IntArray, Places

Joined = tuple[int, ...]  # levels that are told as one


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
    """Which levels are told together so that each has enough people.

    A level below the least is joined to the smaller of its neighbours where levels rise, else to
    the smallest of the others. Empty levels that may be said to be so are left out.

    Examples
    --------
    >>> join_levels([4, 30, 7, 25], 10, ordered=False, empty=[False] * 4)
    [(0, 2), (1,), (3,)]
    >>> join_levels([4, 30, 7, 25], 10, ordered=True, empty=[False] * 4)
    [(0, 1), (2, 3)]
    """
    groups: list[tuple[Joined, int]] = [
        ((level,), n) for level, n in enumerate(counts) if n > 0 or not empty[level]
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
    return [levels for levels, _ in groups]


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
