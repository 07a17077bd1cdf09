"""Pooling one group's people over neighbouring bins, until each pool may be told."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from unpooled.maths.arrays import FloatArray, IntArray
from unpooled.maths.binning import Rule, Weight, cut, place_boundaries

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
    own = cut(groups, rule)
    boundaries = place_boundaries(own.below, own.above, weight).tolist()
    outer = [-np.inf, *boundaries, np.inf]
    reach = []
    for counts in own.counts:
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
