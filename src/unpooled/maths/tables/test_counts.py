"""The counts that tests of a federated table use: at a center, nobody's bin depends on their group.

The chain's own counts share each group's pooled people out by other people of that group, and old
people of a bin that is split by those of the new center. So a chance difference at one center is
handed on to others, and a test that takes shares for people rejects too often: 40 % of samples
without an effect where five centers have 100 and 20 people of the groups. Here the people of a pool
are shared out over its bins like everybody at their center, whatever their group: by the
distribution that makes the pools of all its groups most likely [1]_. Where these leave it open, it
is that of all centers. A test of such counts keeps its level, and rejects too seldom where groups
are small.

References
----------
.. [1] Turnbull (1976), Journal of the Royal Statistical Society B 38, 290-295.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from unpooled.maths.arrays import FloatArray, IntArray
from unpooled.maths.tables.chain import CenterPools, Pools
from unpooled.maths.tables.table import Table

_STEPS = 30  # towards the most likely distribution; what is left favours no group


@dataclass(frozen=True, slots=True)
class Alike:
    """Counts, a row per group, and the share of the ranks' variance in which groups can differ."""

    counts: FloatArray
    decided: float

    @property
    def keeps_shifts(self) -> bool:
        """Whether two groups' shift is hardly drawn towards 0 by what is left open.

        P(Y > X) − ½ loses that share, at ¾ so at most half a standard error.
        """
        n, m = self.counts.sum(axis=1)
        return bool(1 - self.decided <= 2 * np.sqrt((n + m + 1) / (12 * n * m)))


def bounds(centers: Sequence[CenterPools], table: Table) -> tuple[FloatArray, FloatArray]:
    """How many people each bin of each group has at least and at most, by what centers told.

    Examples
    --------
    >>> table = Table([-np.inf, 0.5, np.inf], [[15.0, 16.0]], ("x",))
    >>> one, other = ((np.array([2]), np.array([11])), (np.array([1, 1]), np.array([10, 10])))
    >>> pools = [CenterPools(np.array([0.5]), {"x": Pools(*own)}) for own in (one, other)]
    >>> bounds(pools, table)
    (array([[10., 10.]]), array([[21., 21.]]))
    """
    low, high = np.zeros(table.counts.shape), np.zeros(table.counts.shape)
    for center in centers:
        limits = np.concatenate(([-np.inf], center.interior, [np.inf]))
        for row, group in enumerate(table.groups):
            if group not in center.groups:
                continue
            pools = center.groups[group]
            ends = np.cumsum(pools.spans)
            first = np.searchsorted(table.edges[1:-1], limits[ends - pools.spans], "right")
            last = np.searchsorted(table.edges[1:-1], limits[ends])
            for start, end, people in zip(first, last, pools.counts.tolist(), strict=True):
                high[row, start : end + 1] += people
                low[row, start] += people if start == end else 0
    return low, high


class _Told:
    """Pools in bins of the final table, in a line: center by center, and there group by group."""

    def __init__(self, first: IntArray, people: IntArray, shape: tuple[int, int, int]) -> None:
        self._first = first
        self._spans = np.diff(first, append=np.prod(shape))
        self._people = people
        self._shape = shape  # centers, groups, bins

    def spread(self, shares: FloatArray) -> FloatArray:
        """The people of each center and group in bins of such shares, a center's own or common."""
        every = np.broadcast_to(shares[..., None, :], self._shape).flatten()
        sums = np.add.reduceat(every, self._first)
        if np.count_nonzero(sums) < len(sums):
            even = sums == 0
            every[even.repeat(self._spans)] = 1.0
            sums = np.where(even, self._spans, sums)
        every *= (self._people / sums).repeat(self._spans)
        return every.reshape(self._shape)


def alike(centers: Sequence[CenterPools], table: Table, groups: Sequence[str]) -> Alike:
    """The people of these groups in the bins of the table; its own where nobody was shared out.

    Examples
    --------
    One center tells where all stand, another only that ten people of y lie anywhere: like x there.

    >>> one, all_ = np.array([1, 1]), np.array([2])
    >>> first = CenterPools(
    ...     np.array([5.0]), {"x": Pools(one, np.array([20, 10])), "y": Pools(one, 3 * 10 * one)}
    ... )
    >>> second = CenterPools(
    ...     np.array([5.0]),
    ...     {"x": Pools(one, np.array([10, 30])), "y": Pools(all_, np.array([10]))},
    ... )
    >>> chain = Table(
    ...     np.array([-np.inf, 5, np.inf]), np.array([[30.0, 40], [35, 35]]), ("x", "y")
    ... )
    >>> alike([first, second], chain, ("x", "y")).counts
    array([[30. , 40. ],
           [32.5, 37.5]])
    """
    rows = table.counts[[table.groups.index(group) for group in groups]]
    interior = table.edges[1:-1]
    if all(_settled(center, interior, dict(zip(groups, rows, strict=True))) for center in centers):
        return Alike(rows, 1.0)
    everybody, people = _shared_out(_in_line(centers, interior, groups), table.bins)
    return Alike(people.sum(axis=0), _told(centers, interior, groups, everybody))


def alike_by_center(
    centers: Sequence[CenterPools], table: Table, groups: Sequence[str]
) -> FloatArray:
    """The same people center by center: counts by center, group and bin."""
    return _shared_out(_in_line(centers, table.edges[1:-1], groups), table.bins)[1]


def _shared_out(pools: "_Told", bins: int) -> tuple[FloatArray, FloatArray]:
    """Everybody's distribution, and the people of each center and group by that of the center."""
    everybody = np.ones(bins)
    for _ in range(_STEPS):
        everybody = pools.spread(everybody).sum(axis=(0, 1))
    here = everybody
    for _ in range(_STEPS):
        here = pools.spread(here).sum(axis=1)  # at each center
    return everybody, pools.spread(here)


def _settled(center: CenterPools, interior: FloatArray, counts: Mapping[str, FloatArray]) -> bool:
    """Whether each pool has one bin only in which anybody of its group is."""
    for group, people in counts.items():
        if group in center.groups:
            first = _first_bins(center, interior, _starts(center.groups[group]))
            if np.any(np.add.reduceat(people > 0, first, dtype=np.int64) > 1):
                return False
    return True


def _in_line(centers: Sequence[CenterPools], interior: FloatArray, groups: Sequence[str]) -> _Told:
    """The centers' pools; a group that a center lacks is a pool of nobody."""
    bins, begin = len(interior) + 1, 0
    first, people = [], []
    for center in centers:
        for group in groups:
            pools = center.groups.get(group, Pools(np.array([bins]), np.array([0])))
            first.append(_first_bins(center, interior, _starts(pools)) + begin)
            people.append(pools.counts)
            begin += bins
    shape = len(centers), len(groups), bins
    return _Told(np.concatenate(first), np.concatenate(people), shape)


def _told(
    centers: Sequence[CenterPools],
    interior: FloatArray,
    groups: Sequence[str],
    everybody: FloatArray,
) -> float:
    """The variance of ranks averaged over pools that groups have in common, as a share of all.

    It is about what is left of an effect.
    """
    ranks = np.cumsum(everybody) - everybody / 2 - everybody.sum() / 2
    left, whole = 0.0, 0.0
    for center in centers:
        pools = [_parted(center.groups[group]) for group in groups if group in center.groups]
        if pools:
            common = reduce(np.intersect1d, map(_starts, pools))
            first = _first_bins(center, interior, common)
            parts = [np.searchsorted(_starts(pool), common) for pool in pools]
            people = np.sum(
                [np.add.reduceat(o.counts, at) for o, at in zip(pools, parts, strict=True)], axis=0
            )
            spread = _Told(first, people, (1, 1, len(ranks))).spread(everybody).ravel()
            means = np.add.reduceat(spread * ranks, first) / np.maximum(people, 1)
            left += float(people @ means**2)
            whole += float(spread @ ranks**2)
    return left / whole if whole > 0 else 1.0


def _parted(pools: Pools) -> Pools:
    """The same people; where nobody is, each bin is a pool."""
    pieces = np.where(pools.counts == 0, pools.spans, 1)
    spans = np.where(pools.counts == 0, 1, pools.spans)
    return Pools(spans.repeat(pieces), pools.counts.repeat(pieces))


def _starts(pools: Pools) -> IntArray:
    return np.cumsum(pools.spans) - pools.spans


def _first_bins(center: CenterPools, interior: FloatArray, starts: IntArray) -> IntArray:
    """Which bins of the final table begin where these bins of the center's began."""
    limits = np.concatenate(([-np.inf], center.interior))[starts]
    return np.searchsorted(interior, limits, "right")
