"""Binning one center: the smallest cells that speak for at least K people.

The rule (the paper's section "Binning the largest center", as corrected): from the left, the next
boundary is the smallest data value `a` such that every group has 0 or at least K values in
(previous, a], at least one group has that many, and every group has 0 or at least K values left
above `a`, not all zero. What remains is the last bin. Every cell is legal by construction.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from unpooled.maths.arrays import FloatArray, IntArray

_SMALL = 10_000  # people in a group that is read as a list

Weight = Callable[[float, float], float]
"""Gives w in (0, 1) for a boundary w·a + (1−w)·v between the data values a < v."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What a legal cell is.

    `k` people per non-empty cell; `bin` people in every bin, all groups together (bounds the
    number of bins); `zeros` says whether a cell may be empty.
    """

    k: int
    bin: int = 1
    zeros: bool = True

    def __post_init__(self) -> None:
        if self.k < 1 or self.bin < 1:
            raise ValueError(f"k and bin must be at least 1, got k={self.k}, bin={self.bin}")

    def illegal(self, count: int) -> bool:
        """Whether a cell of `count` people may not be released."""
        return count < self.k and (count > 0 or not self.zeros)

    def illegal_cells(self, counts: IntArray) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """`illegal`, cell by cell."""
        return (counts < self.k) & ((counts > 0) | (not self.zeros))


@dataclass(frozen=True, slots=True)
class Cuts:
    """Where sorted groups are cut: boundary b lies between the data values below[b] < above[b]."""

    below: FloatArray
    above: FloatArray
    counts: IntArray  # one row per group, one column per bin (one more than boundaries)


def check_groups(groups: Sequence[FloatArray], rule: Rule) -> list[int]:
    """How many people each group has; raises where that itself is an illegal cell."""
    totals = [len(values) for values in groups]
    for total in totals:
        if rule.illegal(total):
            raise ValueError(f"a group must have 0 or at least k={rule.k} people, got {total}")
    return totals


def cut(groups: Sequence[FloatArray], rule: Rule) -> Cuts:
    """Cut sorted groups into the smallest legal bins.

    Parameters
    ----------
    groups
        One ascending float64 array per group.
    rule
        What a legal cell is; each group must have a legal number of people itself.

    Examples
    --------
    >>> cuts = cut([np.arange(1.0, 8.0), np.array([6.5, 6.5, 6.5, 9.0])], Rule(k=3))
    >>> cuts.below, cuts.above
    (array([3.]), array([4.]))
    >>> cuts.counts
    array([[3, 4],
           [0, 4]])
    """
    totals = check_groups(groups, rule)
    nobody = [0] * len(groups)
    below, ends = find_cuts(as_sequences(groups), nobody, totals, rule)
    edges = np.array([nobody, *ends, totals], dtype=np.int64)
    above = np.full(len(below), np.inf)
    for values, passed in zip(groups, edges[1:-1].T, strict=True):
        following = values[passed[passed < len(values)]]
        least = above[: len(following)]
        np.copyto(least, following, where=following < least)
    return Cuts(np.array(below), above, (edges[1:] - edges[:-1]).T)


def coarsen(groups: Sequence[FloatArray], edges: FloatArray, rule: Rule) -> FloatArray:
    """Of these edges, as many as leave legal bins only.

    Examples
    --------
    >>> coarsen([np.arange(12.0)], np.array([1.5, 4.5, 8.5]), Rule(k=4))
    array([4.5])
    """
    places = [np.searchsorted(edges, values) for values in groups]
    counts = np.array([np.bincount(place, minlength=len(edges) + 1) for place in places])
    if not rule.illegal_cells(counts).any() and counts.sum(axis=0).min() >= rule.bin:
        return edges
    cuts = cut([place.astype(np.float64) for place in places], rule)
    return np.asarray(edges[cuts.below.astype(np.int64)])


def as_sequences(groups: Sequence[FloatArray], few: bool = False) -> list[Sequence[float]]:
    """The groups in the form whose single values are read fastest.

    A list, where copying costs little; for large groups, or to read a few, the array's own memory.
    """
    return [
        values.tolist() if len(values) <= _SMALL and not few else np.ascontiguousarray(values).data
        for values in groups
    ]


def find_cuts(
    groups: Sequence[Sequence[float]], passed: Sequence[int], totals: Sequence[int], rule: Rule
) -> tuple[list[float], list[list[int]]]:
    """The boundaries between the people already passed and the totals, and how many each passes.

    Examples
    --------
    >>> find_cuts([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]], [1], [5], Rule(k=2))
    ([3.0], [[3]])
    """
    below: list[float] = []
    ends: list[list[int]] = []
    while (following := _next_boundary(groups, passed, totals, rule)) is not None:
        boundary, passed = following
        below.append(boundary)
        ends.append(passed)
    return below, ends


def _next_boundary(
    groups: Sequence[Sequence[float]], passed: Sequence[int], totals: Sequence[int], rule: Rule
) -> tuple[float, list[int]] | None:
    """The smallest legal data value above the people already passed, and how many it passes."""
    k, zeros, least = rule.k, rule.zeros, rule.bin
    boundary = _first_candidate(groups, passed, totals, k)
    while boundary is not None:
        counts = []
        needed = boundary
        inside = left = 0
        for x, p, total in zip(groups, passed, totals, strict=True):
            count = bisect_right(x, boundary, p, total)
            counts.append(count)
            inside += count - p
            left += total - count
            if count - p < k and (count > p or not zeros) and x[p + k - 1] > needed:
                needed = x[p + k - 1]
            if total - count < k:
                if not zeros:
                    return None
                if count < total and x[total - 1] > needed:
                    needed = x[total - 1]  # the group's last few cannot stay behind
        if left < least:
            return None
        if inside < least:
            needed = max(needed, _lower_bound(groups, counts, totals, least - inside))
        if needed == boundary:
            return boundary, counts
        boundary = needed
    return None


def _first_candidate(
    groups: Sequence[Sequence[float]], passed: Sequence[int], totals: Sequence[int], k: int
) -> float | None:
    """Some group must pass k people, or all of them where fewer than k would stay behind.

    So must every other group that has begun by then. None where every group can only pass as a
    whole, and none ends before all have begun.
    """
    first, begun, whole = math.inf, -math.inf, True
    for x, p, total in zip(groups, passed, totals, strict=True):
        if total - p >= 2 * k:
            value = x[p + k - 1]
            whole = False
        elif total - p >= k:
            value = x[total - 1]
            if x[p] > begun:
                begun = x[p]
        else:
            continue
        if value < first:
            first = value
    if whole and first >= begun:
        return None
    needed = first
    for x, p, total in zip(groups, passed, totals, strict=True):
        if p < total and x[p] <= first and x[p + k - 1] > needed:
            needed = x[p + k - 1]
    return needed


def _lower_bound(
    groups: Sequence[Sequence[float]], counts: Sequence[int], totals: Sequence[int], lacking: int
) -> float:
    """A value that must be reached to pass so many more: some group passes its share of them."""
    share = -(-lacking // len(groups))
    return min(
        x[count + share - 1]
        for x, count, total in zip(groups, counts, totals, strict=True)
        if count + share <= total
    )


def next_value(
    groups: Sequence[Sequence[float]], passed: Sequence[int], totals: Sequence[int]
) -> float:
    """The smallest data value not yet passed."""
    least = math.inf
    for values, done, total in zip(groups, passed, totals, strict=True):
        if done < total and values[done] < least:
            least = values[done]
    return least


def place_boundaries(below: FloatArray, above: FloatArray, weight: Weight) -> FloatArray:
    """Boundaries c = w·a + (1−w)·v that are no data values, with a ≤ c < v after rounding.

    Examples
    --------
    >>> place_boundaries(np.array([3.0]), np.array([4.0]), lambda a, v: 0.5)
    array([3.5])
    """
    if not len(below):
        return below
    pairs = zip(below.tolist(), above.tolist(), strict=True)
    w = np.array([weight(a, v) for a, v in pairs], dtype=np.float64)
    placed = w * below + (1.0 - w) * above
    return np.minimum(np.maximum(placed, below), np.nextafter(above, below))


def buffer(values: FloatArray) -> float:
    """The paper's privacy buffer: the mean gap between the sorted values of an extreme bin."""
    return float(values[-1] - values[0]) / max(len(values) - 1, 1)
