"""Joining a table again: the center's people may be told only at edges that were told before."""

from collections.abc import Sequence

import numpy as np

from unpooled.maths.arrays import FloatArray, IntArray
from unpooled.maths.binning import Rule, Weight, check_groups
from unpooled.maths.joining import Join, Pools, spans_of
from unpooled.maths.pooling import EVERYWHERE, pool_starts


def join_again(
    groups: Sequence[FloatArray],
    interior: FloatArray,
    ends: Sequence[FloatArray | None],
    rule: Rule,
    weight: Weight,
    room: int | None = None,
) -> Join:
    """What a center adds to a table when some groups' pools may end at certain edges only.

    Its own edges split the table's bins, if there are no more than `room` of them. Unlike in a
    first join, a pool may hold a part of a split: all that is told are counts that were told
    before. A group whose `ends` are None has none fixed yet.

    Examples
    --------
    >>> x = np.repeat([1.0, 3.0, 4.8, 5.5, 7.0], [3, 7, 10, 10, 10])
    >>> fixed = np.array([4.0, 5.15, 6.0])
    >>> again = join_again([x], np.array([2.0, 4.0, 6.0]), [fixed], Rule(10), lambda a, v: 0.5)
    >>> again.splits, again.pools[0].spans, again.pools[0].counts
    (array([5.15]), array([2, 1, 1, 1]), array([10, 10, 10, 10]))
    """
    check_groups(groups, rule)
    own = [edges for edges in ends if edges is not None]
    splits = np.setdiff1d(np.concatenate(own), interior) if own else interior[:0]
    if room is not None and len(splits) > room:
        splits = splits[:0]
    edges = np.union1d(interior, splits)
    pools = []
    for values, fixed in zip(groups, ends, strict=True):
        counts = np.diff(values.searchsorted(edges, "right"), prepend=0, append=len(values))
        starts = _starts(counts, edges, values, fixed, rule, weight)
        pools.append(Pools(spans_of(starts, len(counts)), np.add.reduceat(counts, starts)))
    return Join(splits, tuple(pools))


def _starts(
    counts: IntArray,
    edges: FloatArray,
    values: FloatArray,
    fixed: FloatArray | None,
    rule: Rule,
    weight: Weight,
) -> IntArray:
    """Where a group's pools begin."""
    if fixed is None:
        return pool_starts(counts, edges, values, EVERYWHERE, rule, weight)
    allowed = np.append(0, np.flatnonzero(np.isin(edges, fixed)) + 1)
    told = np.add.reduceat(counts, allowed)
    if not (rule.illegal_cells(told).any() or np.any(told[1:-1] == 0)):
        return allowed
    starts, pool, left = [0], 0, len(values)
    for begin, count in zip(allowed[1:].tolist(), told[:-1].tolist(), strict=True):
        pool += count
        if pool >= rule.k and left - pool >= rule.k:
            starts.append(begin)
            left, pool = left - pool, 0
    return np.array(starts, dtype=np.int64)
