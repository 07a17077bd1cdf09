"""Joining another center to a federated table (the chain).

At the center (`join`): split existing bins where the center's own people allow it, then pool, per
group and from the left, neighbouring bins until each pool is legal. At the coordinator
(`reallocate`): share the old mass out over the splits and the pooled people over their bins.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unpooled.maths.arrays import FloatArray, IntArray
from unpooled.maths.binning import (
    Rule,
    Weight,
    as_sequences,
    check_groups,
    find_cuts,
    next_value,
    place_boundaries,
)
from unpooled.maths.table import Table


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


@dataclass(frozen=True, slots=True)
class _Proposal:
    """The center's bins after splitting: `parent` is the table's bin each of them lies in."""

    parent: IntArray
    counts: IntArray  # one row per group
    below: FloatArray  # the data values around the boundary at the upper end of each bin,
    above: FloatArray  # nan where that boundary is the table's own


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
    proposal = _propose(groups, interior, rule)
    splits = np.empty(0)
    if len(proposal.parent) > len(interior) + 1:
        proposal = undo_pooled_splits(proposal, rule)
        split = ~np.isnan(proposal.below)
        splits = place_boundaries(proposal.below[split], proposal.above[split], weight)
    return Join(
        splits=splits,
        pools=tuple(_pool(counts, rule) for counts in proposal.counts),
    )


def _pool(counts: IntArray, rule: Rule) -> Pools:
    start = pool_starts(counts, rule)
    return Pools(_spans(start, len(counts)), np.add.reduceat(counts, start))


def _spans(starts: IntArray, end: int) -> IntArray:
    """How many bins lie between one start and the next; the last run goes to the end."""
    spans = np.empty_like(starts)
    np.subtract(starts[1:], starts[:-1], out=spans[:-1])
    spans[-1] = end - starts[-1]
    return spans


def _propose(groups: Sequence[FloatArray], interior: FloatArray, rule: Rule) -> _Proposal:
    """Split every bin of the table in which the center has enough people, by the binning rule."""
    bins = len(interior) + 1
    ends = np.zeros((len(groups), bins + 1), dtype=np.int64)
    for end, values in zip(ends, groups, strict=True):
        end[1:-1] = values.searchsorted(interior, side="right")
        end[-1] = len(values)
    counts = ends[:, 1:] - ends[:, :-1]
    found = _find_splits(groups, ends, counts, rule)
    if not found:
        unsplit = np.full(bins, np.nan)
        return _Proposal(np.arange(bins), counts, unsplit, unsplit)
    pieces = np.ones(bins, dtype=np.int64)
    for b, (below, _, _) in found.items():
        pieces[b] += len(below)
    parent, last = np.arange(bins).repeat(pieces), pieces.cumsum() - 1
    unsplit = np.full(len(parent), np.nan)
    proposal = _Proposal(parent, np.empty((len(groups), len(parent)), int), unsplit, unsplit.copy())
    proposal.counts[:, last] = counts
    for b, (below, above, inside) in found.items():
        first = last[b] - len(below)
        proposal.counts[:, first : last[b] + 1] = inside
        proposal.below[first : last[b]] = below
        proposal.above[first : last[b]] = above
    return proposal


def _find_splits(
    groups: Sequence[FloatArray], ends: IntArray, counts: IntArray, rule: Rule
) -> dict[int, tuple[list[float], list[float], IntArray]]:
    """For each bin that can be split: the data values around its boundaries, and its people."""
    enough = np.add.reduce(counts) >= 2 * max(rule.k, rule.bin)
    (splittable,) = (enough & ~np.logical_or.reduce(rule.illegal_cells(counts))).nonzero()
    if not len(splittable):
        return {}
    found = {}
    values = as_sequences(groups)
    for b, start, end in zip(
        splittable.tolist(),
        ends[:, splittable].T.tolist(),
        ends[:, splittable + 1].T.tolist(),
        strict=True,
    ):
        below, passed = find_cuts(values, start, end, rule)
        if below:
            above = [next_value(values, done, end) for done in passed]
            reached = np.array([start, *passed, end])
            found[b] = below, above, (reached[1:] - reached[:-1]).T
    return found


def undo_pooled_splits(proposal: _Proposal, rule: Rule) -> _Proposal:
    """Take back every split of which some part would be pooled with other bins.

    Otherwise the split's parts, each known to be legal, could be subtracted from the pool and
    leave a count below K.
    """
    while True:
        alone = np.ones(len(proposal.parent), dtype=bool)
        for counts in proposal.counts:
            spans = _spans(pool_starts(counts, rule), len(counts))
            alone &= (spans == 1).repeat(spans)
        pooled = np.zeros(proposal.parent[-1] + 1, dtype=bool)
        pooled[proposal.parent[~alone]] = True
        keep = np.isnan(proposal.below) | ~pooled[proposal.parent]
        if keep.all():
            return proposal
        first = np.append(0, keep.nonzero()[0][:-1] + 1)
        proposal = _Proposal(
            parent=proposal.parent[keep],
            counts=np.add.reduceat(proposal.counts, first, axis=1),
            below=proposal.below[keep],
            above=proposal.above[keep],
        )


def pool_starts(counts: IntArray, rule: Rule) -> IntArray:
    """Where one group's pools begin: from the left, bins are pooled until the pool is legal.

    When what remains behind a pool is too small, the pool takes it in as well.

    Examples
    --------
    >>> pool_starts(np.array([3, 7, 10, 0, 12, 5]), Rule(k=10))
    array([0, 2, 3, 4])
    """
    k, zeros, people = rule.k, rule.zeros, counts.tolist()
    left, pool, starts = sum(people), 0, [0]
    for b, count in enumerate(people, 1):
        pool += count
        if pool >= k or (not pool and zeros):  # the pool is legal: it ends here
            left -= pool
            if left < k and (left or not zeros):
                break
            starts.append(b)
            pool = 0
    return np.array(starts if starts[-1] < len(people) else starts[:-1], dtype=np.int64)


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
    interior = table.edges[1:-1]
    merged, pieces = _merge(interior, joined.splits)
    pools = dict(zip(groups, joined.pools, strict=True))
    counts = np.empty((len(table.groups), len(merged) + 1))
    for row, group, old in zip(counts, table.groups, table.counts, strict=True):
        if group not in pools:
            row[:] = (old / pieces).repeat(pieces)
            continue
        new = pools[group]
        _check_pools(new, len(merged) + 1)
        spread = old
        if len(joined.splits):
            split_by = (new.counts / new.spans).repeat(new.spans)
            spread = _share(old, split_by, pieces)
        np.add(spread, _share(new.counts, spread, new.spans), out=row)
    edges = np.empty(len(merged) + 2)
    edges[0], edges[1:-1], edges[-1] = limits[0], merged, limits[1]
    return Table(edges, counts, table.groups)


def _merge(interior: FloatArray, splits: FloatArray) -> tuple[FloatArray, IntArray]:
    """All interior edges, and into how many pieces each old bin falls."""
    bins = len(interior) + 1
    if not len(splits):
        return interior, np.ones(bins, dtype=np.int64)
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
    if sums.all():
        return (amounts / sums).repeat(spans) * proportions
    even = np.repeat(sums == 0, spans)
    weights = np.where(even, 1.0 / np.repeat(spans, spans), proportions)
    return np.repeat(amounts / np.where(sums == 0, 1.0, sums), spans) * weights
