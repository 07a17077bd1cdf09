"""Joining another center to a federated table (the chain).

At the center (`join`): split existing bins where the center's own people allow it, then pool, per
group and from the left, neighbouring bins until each pool is legal. At the coordinator
(`reallocate`): share the old mass out over the splits and the pooled people over their bins.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unpooled.maths.arrays import FloatArray, IntArray
from unpooled.maths.binning import Rule, Weight, check_groups, cut, place_boundaries
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
    proposal = undo_pooled_splits(_propose(groups, interior, rule), rule)
    starts = [pool_starts(counts, rule) for counts in proposal.counts]
    split = np.flatnonzero(~np.isnan(proposal.below))
    return Join(
        splits=place_boundaries(proposal.below[split], proposal.above[split], weight),
        pools=tuple(
            Pools(
                spans=np.diff(start, append=len(counts)),
                counts=np.add.reduceat(counts, start),
            )
            for start, counts in zip(starts, proposal.counts, strict=True)
        ),
    )


def _propose(groups: Sequence[FloatArray], interior: FloatArray, rule: Rule) -> _Proposal:
    """Split every bin of the table in which the center has enough people, by the binning rule."""
    ends = np.array(
        [[0, *np.searchsorted(values, interior, side="right"), len(values)] for values in groups],
        dtype=np.int64,
    )
    counts = np.diff(ends, axis=1)
    legal = ~rule.illegal_cells(counts).any(axis=0)
    splittable = np.flatnonzero(legal & (counts.sum(axis=0) >= 2 * max(rule.k, rule.bin)))
    found = {}
    for b in splittable.tolist():
        cuts = cut([values[e[b] : e[b + 1]] for values, e in zip(groups, ends, strict=True)], rule)
        if len(cuts.below):
            found[b] = cuts
    bins = counts.shape[1]
    pieces = np.ones(bins, dtype=np.int64)
    for b, cuts in found.items():
        pieces[b] += len(cuts.below)
    parent = np.repeat(np.arange(bins), pieces)
    last = np.cumsum(pieces) - 1
    proposed = np.zeros((len(groups), len(parent)), dtype=np.int64)
    proposed[:, last] = counts
    below, above = np.full(len(parent), np.nan), np.full(len(parent), np.nan)
    for b, cuts in found.items():
        first = last[b] + 1 - pieces[b]
        proposed[:, first : last[b] + 1] = cuts.counts
        below[first : last[b]] = cuts.below
        above[first : last[b]] = cuts.above
    return _Proposal(parent, proposed, below, above)


def undo_pooled_splits(proposal: _Proposal, rule: Rule) -> _Proposal:
    """Take back every split of which some part would be pooled with other bins.

    Otherwise the split's parts, each known to be legal, could be subtracted from the pool and
    leave a count below K.
    """
    while True:
        alone = np.ones(len(proposal.parent), dtype=bool)
        for counts in proposal.counts:
            spans = np.diff(pool_starts(counts, rule), append=len(counts))
            alone &= np.repeat(spans == 1, spans)
        pooled_parents = np.unique(proposal.parent[~alone])
        keep = np.isnan(proposal.below) | ~np.isin(proposal.parent, pooled_parents)
        if keep.all():
            return proposal
        first = np.concatenate(([0], np.flatnonzero(keep)[:-1] + 1))
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
    reached = np.concatenate(([0], np.cumsum(counts)))
    total = reached[-1]
    joined = np.zeros(len(counts), dtype=bool)  # to the pool of the bin before
    position = 0
    for start in np.flatnonzero(rule.illegal_cells(counts)).tolist():
        if start >= position:
            position = int(np.searchsorted(reached, reached[start] + rule.k))
            joined[start + 1 : position] = True
    starts = np.flatnonzero(~joined)
    ends = np.append(starts[1:], len(counts))
    short = np.flatnonzero(rule.illegal_cells(total - reached[ends]) & (ends < len(counts)))
    return starts[: short[0] + 1] if len(short) else starts


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
    merged = np.union1d(interior, joined.splits)
    if len(merged) != len(interior) + len(joined.splits):
        raise ValueError("a split must not repeat an edge of the table")
    parent = np.searchsorted(interior, np.append(merged, np.inf), side="left")
    pieces = np.bincount(parent, minlength=table.bins)
    pools = dict(zip(groups, joined.pools, strict=True))
    rows = []
    for group, old in zip(table.groups, table.counts, strict=True):
        if group not in pools:
            rows.append(np.repeat(old / pieces, pieces))
            continue
        new = pools[group]
        _check_pools(new, len(parent))
        split_by = np.repeat(new.counts / new.spans, new.spans)
        spread = _share(old, split_by, np.cumsum(pieces) - pieces)
        rows.append(spread + _share(new.counts, spread, np.cumsum(new.spans) - new.spans))
    return Table(np.concatenate(([limits[0]], merged, [limits[1]])), np.array(rows), table.groups)


def _check_pools(pools: Pools, bins: int) -> None:
    if len(pools.spans) != len(pools.counts) or pools.spans.min(initial=1) < 1:
        raise ValueError("pools must have one count and at least one bin each")
    if pools.spans.sum() != bins:
        raise ValueError(f"pools must cover all {bins} bins, got {pools.spans.sum()}")


def _share(amounts: IntArray | FloatArray, proportions: FloatArray, starts: IntArray) -> FloatArray:
    """Share each amount out over its run of bins (beginning at `starts`) by the proportions."""
    spans = np.diff(starts, append=len(proportions))
    sums = np.add.reduceat(proportions, starts)
    even = np.repeat(sums == 0, spans)
    weights = np.where(even, 1.0 / np.repeat(spans, spans), proportions)
    return np.repeat(amounts / np.where(sums == 0, 1.0, sums), spans) * weights
