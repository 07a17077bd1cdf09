"""How levels of too few people are joined in a joint center, and how its blocks come about.

What is joined is all that is opened: whether one level alone has enough people is not. Levels that
rise are parted at their middle, and each part again, where both sides have enough people. In a part
that stays whole, levels with enough stand alone, and those with too few that follow each other are
told together; where they are too few even so, with the level before them, or else behind. So no
cell ends where people counted from one side become enough: by many levels that would tell where the
last of them is. Of other levels, those with too few are told together, and with the last of those
with enough where they are still too few.

Blocks are people who are alike in all groupings, the most important first: each level of a
grouping, or several that are joined, is parted by the next grouping.
"""

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from unpooled.maths.arrays import IntArray

Joined = tuple[int, ...]  # levels that are told as one


def join_levels(counts: Sequence[int] | IntArray, least: int, *, ordered: bool) -> list[Joined]:
    """Which levels are told together so that each cell has enough people; all have, together.

    Examples
    --------
    >>> join_levels([4, 30, 7, 25], 10, ordered=False)
    [(0, 2), (1,), (3,)]
    >>> join_levels([4, 30, 3, 25], 10, ordered=False)
    [(0, 2, 3), (1,)]
    >>> join_levels([4, 30, 7, 25], 10, ordered=True)
    [(0, 1), (2, 3)]
    >>> join_levels([4, 4, 4, 4, 4, 4, 4, 4], 10, ordered=True)
    [(0, 1, 2, 3), (4, 5, 6, 7)]
    """
    if not ordered:
        enough = [count >= least for count in counts]
        few = sum(count for count, alone in zip(counts, enough, strict=True) if not alone)
        if few < least and not all(enough):
            enough[max(level for level, alone in enumerate(enough) if alone)] = False
        return cells_of_alone(enough)
    return cells_of_cuts(_cuts(list(counts), least))


def middle(levels: int) -> int:
    """How many of so many rising levels are below the middle."""
    return levels // 2


def _cuts(counts: Sequence[int], least: int) -> list[bool]:
    """Behind which of the rising levels, the last aside, a cell ends."""
    half = middle(len(counts))
    if half and sum(counts[:half]) >= least and sum(counts[half:]) >= least:
        return [*_cuts(counts[:half], least), True, *_cuts(counts[half:], least)]
    alone = [count >= least for count in counts]
    before, behind = _runs(counts, alone), _runs(counts[::-1], alone[::-1])[::-1]
    cuts = []
    for level in range(len(counts) - 1):
        here, following = alone[level], alone[level + 1]
        if here and following:
            cuts.append(True)
        elif following:  # behind levels of too few
            cuts.append(before[level] >= least or any(alone[:level]))
        else:
            cuts.append(here and behind[level + 1] >= least)
    return cuts


def _runs(counts: Sequence[int], alone: Sequence[bool]) -> list[int]:
    """The people of this level and of those before it, up to the last one that stands alone."""
    runs, since = [], 0
    for count, enough in zip(counts, alone, strict=True):
        since = 0 if enough else since + count
        runs.append(since)
    return runs


def cells_of_alone(alone: Sequence[bool | int]) -> list[Joined]:
    """The cells where these levels stand alone and all others together."""
    few = tuple(level for level, enough in enumerate(alone) if not enough)
    single = [(level,) for level, enough in enumerate(alone) if enough]
    return sorted([*single, few] if few else single)


def cells_of_cuts(cuts: Sequence[bool | int]) -> list[Joined]:
    """The cells of rising levels, cut behind some of them."""
    ends = [level + 1 for level, cut in enumerate(cuts) if cut]
    limits = zip([0, *ends], [*ends, len(cuts) + 1], strict=True)
    return [tuple(range(first, end)) for first, end in limits]


def fine_blocks(sizes: Sequence[int]) -> IntArray:
    """All combinations of one level each, a row a block; the last grouping changes first.

    Examples
    --------
    >>> fine_blocks([2, 2]).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    rows = list(product(*map(range, sizes)))
    return np.array(rows, dtype=np.int64).reshape(len(rows), len(sizes))


def with_levels(levels: IntArray, used: Sequence[int]) -> IntArray:
    """The fine blocks that have only the first levels of each grouping."""
    return np.flatnonzero((levels < np.array(used, dtype=np.int64)).all(axis=1))


def parted(
    rows: Sequence[IntArray], cells: Sequence[Sequence[Joined]], levels: IntArray
) -> Iterator[IntArray]:
    """The fine blocks of each cell that blocks are parted into; `levels` of each fine block."""
    for some, joined in zip(rows, cells, strict=True):
        for cell in joined:
            yield some[np.isin(levels[some], cell)]


def joint_blocks(
    counts: IntArray,
    sizes: Sequence[int],
    ordered: Sequence[bool],
    least: int,
    others: Sequence[bool] | None = None,
) -> list[IntArray]:
    """The fine blocks of each block, from the people of each fine block; all have enough.

    `others` says of which groupings the last level are all that were not named; it is left out
    where nobody has it. This is the rule on pooled rows; `federation.joint.program` follows it on
    shares.

    Examples
    --------
    >>> blocks = joint_blocks(np.array([30, 4, 20, 25]), [2, 2], [False, False], 10)
    >>> [block.tolist() for block in blocks]
    [[0, 1], [2], [3]]
    """
    levels = fine_blocks(sizes)
    used = [
        size - int(other and not counts[levels[:, grouping] == size - 1].any())
        for grouping, (size, other) in enumerate(
            zip(sizes, others or [False] * len(sizes), strict=True)
        )
    ]
    rows = [with_levels(levels, used)]
    for grouping, size in enumerate(used):
        at = levels[:, grouping]
        each = [np.bincount(at[some], counts[some], size).astype(np.int64) for some in rows]
        cells = [join_levels(c.tolist(), least, ordered=ordered[grouping]) for c in each]
        rows = list(parted(rows, cells, at))
    return rows
