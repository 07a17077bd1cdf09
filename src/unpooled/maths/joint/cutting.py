"""The rule by which a joint table is cut into cells of at least K people.

The people of a block are counted at ascending public points. A cell is split in two where each
side keeps K people; its halves are split in turn. After how many people a split is aimed at is a
secret that two members draw: each side gets K people for each of its cells, the others are dealt by
chance. The aim lies at a point or just before it; a coin says which. So an edge says nothing about
the people nearest to it.

Whether a cell is split, where, and how many people are on each side is all that the keepers open.
Nothing else needs to be: each split stays, so what is opened is what is released.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from unpooled.maths.arrays import IntArray

DRAW = 15  # the most that one of the two members draws
DRAWERS = 2  # members who draw each aim
PARTS = DRAW * DRAWERS  # the others are dealt in so many parts
_ROOM = (20, 23)  # cells of 1.15 K people leave room to move edges


class Node(NamedTuple):
    """A cell (left, right] of points that may be split, with the people below both ends."""

    left: int
    right: int
    below_left: int
    below_right: int

    @property
    def people(self) -> int:
        """How many people it has."""
        return self.below_right - self.below_left

    def may_split(self, k: int) -> bool:
        """Whether there are people and points enough."""
        return self.people >= 2 * k and self.right - self.left >= 2


class Aim(NamedTuple):
    """After how many people of a cell a split is aimed at: `least + dealt · draw / PARTS`."""

    least: int
    dealt: int


def aim(people: int, k: int) -> Aim:
    """Half of the cells that there is room for go to the left.

    Examples
    --------
    >>> aim(100, 10)
    Aim(least=40, dealt=20)
    """
    more, fewer = _ROOM
    cells = min(max(2, more * people // (fewer * k)), people // k)
    return Aim(k * (cells // 2), people - k * cells)


class Split(NamedTuple):
    """An opened edge: it lies behind this point, with so many people below."""

    point: int
    below: int


@dataclass(frozen=True, slots=True)
class JointCells:
    """The cells of one table: the splits in the order in which they were opened."""

    people: int
    splits: tuple[Split, ...]

    @property
    def edges(self) -> tuple[int, ...]:
        """The points that cells end at, all but the last."""
        return tuple(sorted(split.point for split in self.splits))

    @property
    def counts(self) -> tuple[int, ...]:
        """The people of each cell."""
        below = sorted(split.below for split in self.splits)
        return tuple(np.diff([0, *below, self.people]).tolist())


def joint_cells(
    counts: IntArray, k: int, draws: Sequence[int] | IntArray, coins: Sequence[int] | IntArray
) -> JointCells:
    """The cells of people who are counted at points; draws and coins as many as points.

    This is the rule on pooled rows; `federation.joint.program` follows it on shares.

    Examples
    --------
    >>> cells = joint_cells(np.full(12, 4), 10, np.full(12, 15), np.zeros(12, int))
    >>> cells.edges, cells.counts
    ((2, 5, 8), (12, 12, 12, 12))
    """
    below = np.cumsum(counts)
    level, splits, used = [Node(-1, len(counts) - 1, 0, int(below[-1]))], [], 0
    while level := [node for node in level if node.may_split(k)]:
        sorted_splits = [
            _split(node, below, k, int(draws[at]), int(coins[at]))
            for at, node in enumerate(level, used)
        ]
        used += len(level)
        splits += [split for split in sorted_splits if split is not None]
        level = next_level(level, sorted_splits)
    return JointCells(int(below[-1]), tuple(splits))


def next_level(level: Sequence[Node], splits: Sequence[Split | None]) -> list[Node]:
    """The two sides of each cell that was split."""
    return [
        side
        for node, split in zip(level, splits, strict=True)
        if split is not None
        for side in (
            Node(node.left, split.point, node.below_left, split.below),
            Node(split.point, node.right, split.below, node.below_right),
        )
    ]


def _split(node: Node, below: IntArray, k: int, draw: int, coin: int) -> Split | None:
    least, dealt = aim(node.people, k)
    wanted = PARTS * (node.below_left + least) + dealt * draw
    points = below[node.left + 1 : node.right + 1]
    place = int(np.argmax(PARTS * points >= wanted))
    before = node.below_left if place == 0 else int(points[place - 1])
    at_point = node.below_right - int(points[place]) >= k
    just_before = before - node.below_left >= k
    if just_before and (coin or not at_point):
        return Split(node.left + place, before)
    if at_point:
        return Split(node.left + 1 + place, int(points[place]))
    return None
