"""The chain: a federated table that grows from center to center (`Chain`), and how one joins it.

At the center (`join`): split existing bins where the center's own people allow it, then pool, per
group and from the left, neighbouring bins until each pool is legal. At the coordinator
(`reallocate`): share the old mass out over the splits and the pooled people over their bins.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from unpooled.maths.arrays import BoolArray, FloatArray, IntArray
from unpooled.maths.tables.binning import (
    Rule,
    Weight,
    as_sequences,
    check_groups,
    cut,
    find_cuts,
    next_value,
    place_boundaries,
)
from unpooled.maths.tables.table import Table

EVERYWHERE = (-np.inf, np.inf)


def pool_starts(
    counts: IntArray,
    edges: FloatArray,
    values: FloatArray,
    reach: tuple[float, float],
    rule: Rule,
    weight: Weight,
) -> IntArray:
    """Where one group's pools begin: from the left, bins are pooled until the pool is legal.

    When what remains behind a pool is too small, the pool takes it in as well. Empty bins are not
    told apart: with edges as fine as somebody likes, the first and the last empty bin of a gap
    would give the values around it away. So a pool ends inside the gap where the center's own
    boundary would lie, and the first and the last pool go on to `reach`, or to the ends.

    Examples
    --------
    >>> values = np.repeat([0.5, 1.5, 2.5, 5.5, 6.5], [3, 7, 10, 12, 5])
    >>> counts = np.array([3, 7, 10, 0, 0, 12, 5])
    >>> ends = -np.inf, np.inf
    >>> pool_starts(counts, np.arange(1.0, 7.0), values, ends, Rule(k=10), lambda a, v: 0.5)
    array([0, 2, 4])
    """
    k, people = rule.k, len(values)
    reached = list(accumulate(counts.tolist(), initial=0))  # people before each bin
    starts, end, passed = [0], 0, 0
    while passed + 2 * k <= people:
        end = bisect_left(reached, passed + k, end)
        passed = reached[end]
        if people - passed < k:
            break
        held = reached[end + 1] > passed
        starts.append(end if held else _end_in_gap(end, reached, edges, values, weight))
    if reach == EVERYWHERE:
        return np.array(starts, dtype=np.int64)
    nobody_below, nobody_above = reach
    if (first := int(edges.searchsorted(nobody_below, "right"))) > 0:
        starts.insert(1, first)
    if (last := int(edges.searchsorted(nobody_above)) + 1) <= len(edges):
        starts.append(last)
    return np.array(starts, dtype=np.int64)


def _end_in_gap(
    end: int, reached: list[int], edges: FloatArray, values: FloatArray, weight: Weight
) -> int:
    """Of the edges in the gap that begins at this bin, the one nearest to an own boundary."""
    passed = reached[end]
    last = bisect_right(reached, passed, end) - 1  # the next bin with people
    below, above = float(values[passed - 1]), float(values[passed])
    w = weight(below, above)
    distance = np.abs(edges[end - 1 : last] - (w * below + (1 - w) * above))
    return end + int(distance.argmin())


def reach_of(groups: Sequence[FloatArray], rule: Rule, weight: Weight) -> list[tuple[float, float]]:
    """Below and above which boundary of the center's own table each group has nobody.

    Beyond them, and only there, "nobody" may be told: the center's own table would tell it too.
    """
    if not rule.zeros or not _apart(groups, rule.k):
        return [EVERYWHERE] * len(groups)
    cuts = cut(groups, rule)
    boundaries = place_boundaries(cuts.below, cuts.above, weight).tolist()
    outer = [-np.inf, *boundaries, np.inf]
    reach = []
    for counts in cuts.counts:
        held = counts.nonzero()[0]
        reach.append((outer[held[0]], outer[held[-1] + 1]) if len(held) else EVERYWHERE)
    return reach


def _apart(groups: Sequence[FloatArray], k: int) -> bool:
    """Whether K people of some group lie beyond all of another: else no cell is empty."""
    held = [values for values in groups if len(values)]
    if len(held) < 2:
        return False
    low, high = max(x[0] for x in held), min(x[-1] for x in held)
    return any(len(x) >= k and (x[k - 1] < low or x[-k] > high) for x in held)


@dataclass(frozen=True, slots=True)
class Pools:
    """One group's people: `spans[i]` neighbouring bins hold `counts[i]` of them together."""

    spans: IntArray
    counts: IntArray


@dataclass(frozen=True, slots=True)
class Join:
    """All that a joining center says: boundaries that split bins, and each group's pools."""

    splits: FloatArray
    pools: tuple[Pools, ...]


class _Proposal(NamedTuple):
    """The center's bins after splitting: `parent` is the table's bin each of them lies in."""

    parent: IntArray
    counts: IntArray  # one row per group
    edges: FloatArray  # between the bins
    from_center: BoolArray  # which of the edges are the center's


def join(groups: Sequence[FloatArray], interior: FloatArray, rule: Rule, weight: Weight) -> Join:
    """What a center adds to a table with these interior edges; its groups are sorted.

    Examples
    --------
    The appendix of the paper, group x: the bin (4, 6] is split, 3 and 7 people are pooled.

    >>> x = np.repeat([1.0, 3.0, 4.8, 5.5, 7.0], [3, 7, 10, 10, 10])
    >>> joined = join([x], np.array([2.0, 4.0, 6.0]), Rule(k=10), lambda a, v: 0.5)
    >>> joined.splits, joined.pools[0].spans, joined.pools[0].counts
    (array([5.15]), array([2, 1, 1, 1]), array([10, 10, 10, 10]))
    """
    check_groups(groups, rule)
    proposal = _propose(groups, interior, rule, weight)
    reach = reach_of(groups, rule, weight)
    if len(proposal.edges) > len(interior):
        proposal = undo_pooled_splits(proposal, groups, reach, rule, weight)
    pools = []
    for counts, values, ends in zip(proposal.counts, groups, reach, strict=True):
        starts = pool_starts(counts, proposal.edges, values, ends, rule, weight)
        pools.append(Pools(spans_of(starts, len(counts)), np.add.reduceat(counts, starts)))
    return Join(splits=proposal.edges[proposal.from_center], pools=tuple(pools))


def spans_of(starts: IntArray, end: int) -> IntArray:
    """How many bins lie between one start and the next; the last run goes to the end."""
    spans = np.empty_like(starts)
    np.subtract(starts[1:], starts[:-1], out=spans[:-1])
    spans[-1] = end - starts[-1]
    return spans


def _propose(
    groups: Sequence[FloatArray], interior: FloatArray, rule: Rule, weight: Weight
) -> _Proposal:
    """Split every bin of the table in which the center has enough people, by the binning rule."""
    bins = len(interior) + 1
    ends = np.zeros((len(groups), bins + 1), dtype=np.int64)
    for end, values in zip(ends, groups, strict=True):
        end[1:-1] = values.searchsorted(interior, side="right")
        end[-1] = len(values)
    counts = ends[:, 1:] - ends[:, :-1]
    splits = _find_splits(groups, ends, counts, rule)
    if not splits:
        return _Proposal(np.arange(bins), counts, interior, np.zeros(bins - 1, dtype=bool))
    pieces = np.ones(bins, dtype=np.int64)
    for b, (below, _, _) in splits.items():
        pieces[b] += len(below)
    parent, last = np.arange(bins).repeat(pieces), pieces.cumsum() - 1
    edges, from_center = np.empty(len(parent) - 1), np.zeros(len(parent) - 1, dtype=bool)
    edges[last[:-1]] = interior
    split = np.empty((len(groups), len(parent)), dtype=np.int64)
    split[:, last] = counts
    for b, (below, above, inside) in splits.items():
        first = last[b] - len(below)
        split[:, first : last[b] + 1] = inside
        edges[first : last[b]] = place_boundaries(np.array(below), np.array(above), weight)
        from_center[first : last[b]] = True
    return _Proposal(parent, split, edges, from_center)


def _find_splits(
    groups: Sequence[FloatArray], ends: IntArray, counts: IntArray, rule: Rule
) -> dict[int, tuple[list[float], list[float], IntArray]]:
    """For each bin that can be split: the data values around its boundaries, and its people."""
    (enough,) = (np.add.reduce(counts) >= 2 * max(rule.k, rule.bin)).nonzero()
    if not len(enough):
        return {}
    splits = {}
    values = as_sequences(groups, few=True)
    passed_at = ends.T.tolist()
    for b in enough.tolist():
        start, end = passed_at[b : b + 2]
        if any(rule.illegal(e - s) for s, e in zip(start, end, strict=True)):
            continue
        below, passed = find_cuts(values, start, end, rule)
        if below:
            above = [next_value(values, done, end) for done in passed]
            reached = np.array([start, *passed, end])
            splits[b] = below, above, (reached[1:] - reached[:-1]).T
    return splits


def undo_pooled_splits(
    proposal: _Proposal,
    groups: Sequence[FloatArray],
    reach: Sequence[tuple[float, float]],
    rule: Rule,
    weight: Weight,
) -> _Proposal:
    """Take back every split of which a part with people would be pooled with other people.

    Otherwise the split's parts, each known to be legal, could be subtracted from the pool and
    leave a count below K. A part without people takes nothing from its pool.
    """
    while True:
        alone = np.ones(len(proposal.parent), dtype=bool)
        for counts, values, ends in zip(proposal.counts, groups, reach, strict=True):
            starts = pool_starts(counts, proposal.edges, values, ends, rule, weight)
            held = counts > 0
            sharing = np.add.reduceat(held, starts, dtype=np.int64) > 1
            alone &= ~(held & sharing.repeat(spans_of(starts, len(counts))))
        pooled = np.zeros(proposal.parent[-1] + 1, dtype=bool)
        pooled[proposal.parent[~alone]] = True
        keep = ~np.append(proposal.from_center, False) | ~pooled[proposal.parent]
        if keep.all():
            return proposal
        first = np.append(0, keep.nonzero()[0][:-1] + 1)
        proposal = _Proposal(
            parent=proposal.parent[keep],
            counts=np.add.reduceat(proposal.counts, first, axis=1),
            edges=proposal.edges[keep[:-1]],
            from_center=proposal.from_center[keep[:-1]],
        )


def reallocate(
    table: Table, joined: Join, groups: Sequence[str], limits: tuple[float, float]
) -> Table:
    """The table with another center's people added (at the coordinator).

    Old mass is shared out over a split by the new center's proportions, pooled people over their
    bins by the table's proportions; evenly where the proportions sum to zero.

    Parameters
    ----------
    table
        The table so far.
    joined
        What the new center released; one `Pools` per name in `groups`.
    groups
        The groups that the new center speaks for, a subset of the table's.
    limits
        The outer limits of the new table.
    """
    bins = table.bins + len(joined.splits)
    for pools in joined.pools:
        _check_pools(pools, bins)
    speaking = dict(zip(groups, joined.pools, strict=True))
    by_group = [speaking.get(group) for group in table.groups]
    interior, counts = table.edges[1:-1], table.counts
    if len(joined.splits):
        interior, pieces = _merge(interior, joined.splits)
        counts = np.array(
            [_split(old, pools, pieces) for old, pools in zip(counts, by_group, strict=True)]
        )
    edges = np.empty(bins + 1)
    edges[0], edges[1:-1], edges[-1] = limits[0], interior, limits[1]
    return Table(edges, _add(counts, by_group), table.groups)


def _split(old: FloatArray, new: Pools | None, pieces: IntArray) -> FloatArray:
    """One group's old mass over the pieces of its bins; evenly where nothing is told of it."""
    if new is None:
        return (old / pieces).repeat(pieces)
    return _share(old, (new.counts / new.spans).repeat(new.spans), pieces)


def _add(counts: FloatArray, by_group: Sequence[Pools | None]) -> FloatArray:
    """The counts with each group's pooled people added, all groups at once: their bins in a line.

    A group of which nothing is told is a pool of nobody.
    """
    bins = counts.shape[1]
    pools = [pool or Pools(np.array([bins]), np.array([0])) for pool in by_group]
    people = np.concatenate([pool.counts for pool in pools])
    spans = np.concatenate([pool.spans for pool in pools])
    shared = _share(people, counts.ravel(), spans).reshape(counts.shape)
    for row, pool in zip(shared, pools, strict=True):
        if len(pool.spans) == bins:  # nobody is pooled: no rounding either
            row[:] = pool.counts
    return counts + shared


def _merge(interior: FloatArray, splits: FloatArray) -> tuple[FloatArray, IntArray]:
    """All interior edges, and into how many pieces each old bin falls."""
    bins = len(interior) + 1
    merged = np.concatenate((interior, splits))
    merged.sort(kind="stable")
    if not (merged[1:] > merged[:-1]).all():
        raise ValueError("a split must not repeat an edge of the table")
    return merged, np.bincount(interior.searchsorted(splits), minlength=bins) + 1


def _check_pools(pools: Pools, bins: int) -> None:
    spans = pools.spans.tolist()
    if len(spans) != len(pools.counts) or min(spans, default=1) < 1:
        raise ValueError("pools must have one count and at least one bin each")
    if sum(spans) != bins:
        raise ValueError(f"pools must cover all {bins} bins, got {sum(spans)}")


def _share(amounts: IntArray | FloatArray, proportions: FloatArray, spans: IntArray) -> FloatArray:
    """Share each amount out over its run of bins (so many of them) by the proportions."""
    if len(spans) == len(proportions):
        return amounts.astype(np.float64)
    sums = np.add.reduceat(proportions, spans.cumsum() - spans)
    if np.count_nonzero(sums) == len(sums):
        return (amounts / sums).repeat(spans) * proportions
    even = np.repeat(sums == 0, spans)
    weights = np.where(even, 1.0 / np.repeat(spans, spans), proportions)
    return np.repeat(amounts / np.where(sums == 0, 1.0, sums), spans) * weights


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
    fixed_edges = [edges for edges in ends if edges is not None]
    splits = np.setdiff1d(np.concatenate(fixed_edges), interior) if fixed_edges else interior[:0]
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
    held = np.add.reduceat(counts, allowed)
    if not (rule.illegal_cells(held).any() or np.any(held[1:-1] == 0)):
        return allowed
    starts, pool, left = [0], 0, len(values)
    for begin, count in zip(allowed[1:].tolist(), held[:-1].tolist(), strict=True):
        pool += count
        if pool >= rule.k and left - pool >= rule.k:
            starts.append(begin)
            left, pool = left - pool, 0
    return np.array(starts, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class CenterPools:
    """What one center told: the edges between the bins then, and the pools of its groups."""

    interior: FloatArray
    groups: Mapping[str, Pools]


class Chain:
    """One center begins, the others join; what cannot be right is a ValueError and adds nobody.

    Examples
    --------
    >>> chain = Chain(("x",))
    >>> chain.begin(np.array([-np.inf, 4.0, np.inf]), {"x": np.array([10, 12])})
    >>> everybody = Pools(np.array([2]), np.array([11]))
    >>> chain.join(np.empty(0), {"x": everybody}, (-np.inf, np.inf))
    >>> chain.table.counts, len(chain.pools)
    (array([[15., 18.]]), 2)
    """

    def __init__(self, groups: tuple[str, ...]) -> None:
        self.groups = groups
        self.table: Table | None = None
        self.pools: list[CenterPools] = []

    def begin(self, edges: FloatArray, counts: Mapping[str, IntArray]) -> None:
        """The first center's own table."""
        nobody = np.zeros(len(edges) - 1)
        rows = np.array([counts.get(group, nobody) for group in self.groups], dtype=np.float64)
        bins = np.ones(len(edges) - 1, dtype=np.int64)
        self._add(
            Table(edges, rows, self.groups),
            {g: Pools(bins, people) for g, people in counts.items()},
        )

    def join(
        self, splits: FloatArray, pools: Mapping[str, Pools], limits: tuple[float, float]
    ) -> None:
        """Another center's people: its boundaries inside bins, the pools of its groups."""
        if self.table is None:
            raise ValueError("a center can join only when another has begun")
        joined = Join(splits, tuple(pools.values()))
        self._add(reallocate(self.table, joined, tuple(pools), limits), pools)

    def _add(self, table: Table, pools: Mapping[str, Pools]) -> None:
        self.table = table
        self.pools.append(CenterPools(table.edges[1:-1], pools))
