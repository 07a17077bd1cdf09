"""Binning one center: the smallest cells that speak for at least K people.

The rule (the paper's section "Binning the largest center", as corrected): from the left, the next
boundary is the smallest data value `a` such that every group has 0 or at least K values in
(previous, a], at least one group has that many, and every group has 0 or at least K values left
above `a`, not all zero. What remains is the last bin. Every cell is legal by construction.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from unpooled.maths.arrays import FloatArray, IntArray

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
    views = [np.ascontiguousarray(values).data for values in groups]
    passed = [0] * len(groups)
    ends: list[list[int]] = []
    below: list[float] = []
    while (found := _next_boundary(views, passed, totals, rule)) is not None:
        boundary, passed = found
        below.append(boundary)
        ends.append(passed)
    above = [_next_value(views, end, totals) for end in ends]
    edges = np.array([[0] * len(groups), *ends, totals], dtype=np.int64)
    return Cuts(np.array(below), np.array(above), np.diff(edges, axis=0).T)


def _next_boundary(
    groups: Sequence[Sequence[float]], passed: list[int], totals: list[int], rule: Rule
) -> tuple[float, list[int]] | None:
    """The smallest legal data value above the people already passed, and how many it passes."""
    k, zeros = rule.k, rule.zeros
    boundary = min(
        (x[p + k - 1] for x, p, t in zip(groups, passed, totals, strict=True) if t - p >= k),
        default=None,
    )
    while boundary is not None:
        counts = [bisect_right(x, boundary, p) for x, p in zip(groups, passed, strict=True)]
        if sum(totals) - sum(counts) < rule.bin:
            return None
        needed = boundary
        for x, p, count, total in zip(groups, passed, counts, totals, strict=True):
            inside, left = count - p, total - count
            if inside < k and (inside or not zeros):
                needed = max(needed, x[p + k - 1])
            if left < k and not zeros:
                return None
            if 0 < left < k:  # the group's last few cannot stay behind: take them all
                needed = max(needed, x[total - 1])
        lacking = rule.bin - (sum(counts) - sum(passed))
        if lacking > 0:
            needed = max(needed, _lower_bound(groups, counts, totals, lacking))
        if needed == boundary:
            return boundary, counts
        boundary = needed
    return None


def _lower_bound(
    groups: Sequence[Sequence[float]], counts: list[int], totals: list[int], lacking: int
) -> float:
    """A value that must be reached to pass so many more: some group passes its share of them."""
    share = -(-lacking // len(groups))
    return min(
        x[count + share - 1]
        for x, count, total in zip(groups, counts, totals, strict=True)
        if count + share <= total
    )


def _next_value(groups: Sequence[Sequence[float]], passed: list[int], totals: list[int]) -> float:
    """The smallest data value not yet passed."""
    return min(
        values[done]
        for values, done, total in zip(groups, passed, totals, strict=True)
        if done < total
    )


def place_boundaries(below: FloatArray, above: FloatArray, weight: Weight) -> FloatArray:
    """Boundaries c = w·a + (1−w)·v that are no data values, with a ≤ c < v after rounding.

    Examples
    --------
    >>> place_boundaries(np.array([3.0]), np.array([4.0]), lambda a, v: 0.5)
    array([3.5])
    """
    pairs = zip(below.tolist(), above.tolist(), strict=True)
    w = np.fromiter((weight(a, v) for a, v in pairs), dtype=np.float64, count=len(below))
    return np.clip(w * below + (1.0 - w) * above, below, np.nextafter(above, below))


def buffer(values: FloatArray) -> float:
    """The paper's privacy buffer: the mean gap between the sorted values of an extreme bin."""
    return float(values[-1] - values[0]) / max(len(values) - 1, 1)
