"""The Mann-Whitney test on all people, as if pooled, from one round of released tables.

Pairs of people of the same center are compared at the center: its U is exact. Pairs of people of
different centers are compared at the coordinator, by the pseudo-people of their tables; how far
these miss the exact U within centers corrects the U between them (`calibrating`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unpooled.maths.arrays import FloatArray
from unpooled.maths.density.placing import Placed
from unpooled.maths.ranks.effect import Interval
from unpooled.maths.ranks.mann_whitney import Alternative, RankStatistics, TestResult, sum_test

BoolArray = npt.NDArray[np.bool_]
_LEFT = np.array([1 / 6, 1 / 6 - 1 / 15, 1 / 6 - 1 / 15 - 1 / 35])  # a group's part of c


def correction(x: Placed, y: Placed, missed: dict[int, float]) -> float:
    """What to add to the U between centers, when centers' own U are missed by so much.

    Examples
    --------
    >>> cells, told = np.repeat([0, 1], 20), np.zeros(40, int)
    >>> v, one, no = np.arange(40.0), np.ones(40), np.zeros(40, bool)
    >>> x, y = (Placed(a, one, cells, no, cells, told, a) for a in (v, v + 0.5))
    >>> correction(x, y, {0: 20.0, 1: 0.0}) >= 0
    True
    """
    if not len(x.cells) or not len(y.cells):
        return 0.0
    centers = 1 + int(max(x.centers.max(), y.centers.max()))
    parts = x.by_center(centers), y.by_center(centers)
    var, cov = np.zeros(centers), np.zeros(centers)
    for one, other, split in ((x, y, parts), (y, x, parts[::-1])):
        within, everyone = _compared(one, *split), other.below_minus_above(one.values)
        g, h = (_left_over(one, values) for values in (within, everyone - within))
        var += np.bincount(one.centers, one.weights * g * g, centers)
        cov += np.bincount(one.centers, one.weights * g * h, centers)
    total = 0.0
    for center, miss in missed.items():
        if miss and cov[center] > 0:
            pairs = _second_order(parts[0][center], parts[1][center])
            total += miss * cov[center] / (var[center] + pairs)
    return total


def _compared(placed: Placed, mine: list[Placed], theirs: list[Placed]) -> FloatArray:
    """The same among people of the own center."""
    compared = np.empty(len(placed.values))
    pairs = zip(mine, theirs, strict=True)
    parts = [other.below_minus_above(part.values) for part, other in pairs]
    compared[np.argsort(placed.centers, kind="stable")] = np.concatenate(parts)
    return compared


def _left_over(placed: Placed, f: FloatArray) -> FloatArray:
    """f less its weighted regression, in each cell, on 1 and the moments that the cell tells."""
    cell, weights = placed.cells, placed.weights
    people = np.maximum(np.bincount(cell, weights), 1e-300)

    def less(f: FloatArray, on: FloatArray, where: BoolArray) -> FloatArray:
        square = np.bincount(cell, weights * on * on, len(people))
        slope = np.bincount(cell, weights * f * on, len(people)) / np.maximum(square, 1e-300)
        return np.asarray(f - np.where(where, slope[cell] * on, 0.0))

    one = np.ones(len(f))
    everywhere = np.ones(len(f), dtype=np.bool_)
    v = less(placed.scaled, one, everywhere)
    spread = np.sqrt(np.bincount(cell, weights * v * v, len(people)) / people)
    v = v / np.where(spread > 0, spread, 1.0)[cell]
    square = less(less(v * v, one, everywhere), v, everywhere)
    f = less(f, one, everywhere)
    return less(less(f, v, placed.moments > 0), square, placed.moments > 1)


def _second_order(x: Placed, y: Placed) -> float:
    """Σ w w′ c over the pieces that cells of x and y have in common."""
    cuts = np.sort(np.concatenate([_starts(part) for part in (x, y)]))
    pieces = [np.searchsorted(cuts, part.values, "right") for part in (x, y)]
    (people_x, left_x), (people_y, left_y) = (
        (np.bincount(piece, part.weights, len(cuts) + 1),
         np.bincount(piece, part.weights * _LEFT[part.moments], len(cuts) + 1))
        for piece, part in zip(pieces, (x, y), strict=True)
    )  # fmt: skip
    return float(left_x @ people_y + people_x @ left_y)


def _starts(placed: Placed) -> FloatArray:
    """The least value in each cell; cells of one center do not overlap."""
    first = np.flatnonzero(np.diff(placed.cells, prepend=-1))
    return placed.values[first]


@dataclass(frozen=True, slots=True)
class CrossCenter:
    """U of everybody with its variances; `statistics` has them as those of one large center."""

    statistics: RankStatistics

    def test(self, alternative: Alternative) -> TestResult:
        """The test of the combined data."""
        result = sum_test([self.statistics], alternative)
        return TestResult("parallel", result.statistic, result.log_p, result.note)


def cross_center(x: Placed, y: Placed, centers: Sequence[RankStatistics | None]) -> CrossCenter:
    """U = Σ exact U within centers + U across centers from pseudo-people, corrected by the former.

    Parameters
    ----------
    x, y
        The groups' pseudo-people; `centers` of either count the same list of centers.
    centers
        What each center says of its own two groups, None where it has one of them only.

    Examples
    --------
    >>> from unpooled.maths.ranks.mann_whitney import rank_statistics
    >>> a, b = np.array([1.0, 2.0, 4.0]), np.array([3.0, 5.0])
    >>> x = Placed(a, np.ones(3), np.array([0, 0, 1]), np.zeros(3, bool))
    >>> y = Placed(b, np.ones(2), np.array([0, 1]), np.zeros(2, bool))
    >>> own = [rank_statistics(a[:2], b[:1]), rank_statistics(a[2:], b[1:])]
    >>> cross_center(x, y, own).statistics.u, rank_statistics(a, b).u
    (4.0, 4.0)
    """
    u = _u(x, y)
    missed = {}
    parts = zip(x.by_center(len(centers)), y.by_center(len(centers)), centers, strict=True)
    for i, (own_x, own_y, center) in enumerate(parts):
        if center is not None:
            missed[i] = center.u - _u(own_x, own_y)
    u += sum(missed.values()) + correction(x, y, missed)
    return CrossCenter(_statistics(x, y, u))


def placed_ranks(x: Placed, y: Placed) -> RankStatistics:
    """What pseudo-people of one center say of its two groups, where it has told no ranks itself.

    Examples
    --------
    >>> x, y = (Placed(np.arange(3.0) + s, np.ones(3), np.zeros(3, int), np.zeros(3, bool))
    ...         for s in (0, 0.5))
    >>> placed_ranks(x, y).u
    3.0
    """
    return _statistics(x, y, _u(x, y))


def _statistics(x: Placed, y: Placed, u: float) -> RankStatistics:
    n_x, n_y = round(x.people), round(y.people)
    u = min(max(u, -float(n_x * n_y)), float(n_x * n_y))
    return RankStatistics(n_x, n_y, u, _null_variance(x, y), _effect_variance(x, y))


def hodges_lehmann(x: Placed, y: Placed, level: float = 0.95, u: float | None = None) -> Interval:
    """The shift of Y against X with its interval: shifts that the test does not reject.

    Where the U of everybody is known better (`cross_center`), it corrects that of pseudo-people.

    Examples
    --------
    >>> a = np.linspace(0, 1, 50)
    >>> x = Placed(a, np.ones(50), np.zeros(50, int), np.zeros(50, bool))
    >>> y = Placed(a + 0.3, np.ones(50), np.zeros(50, int), np.zeros(50, bool))
    >>> round(hodges_lehmann(x, y).estimate, 3)
    0.3
    """
    from scipy.special import ndtri

    if not 0 < level < 1:
        raise ValueError(f"level must lie in (0, 1), got {level}. Hint: for 95 % use 0.95.")
    margin = float(ndtri((1 + level) / 2)) * math.sqrt(_null_variance(x, y))
    pairs = x.people * y.people
    centre = 0.0 if u is None else _u(x, y) - u
    if margin >= pairs:
        low, high = -math.inf, math.inf
    else:
        low, high = _balance(x, y, centre + margin), _balance(x, y, centre - margin)
    tiny = 1e-9 * pairs  # the middle of the shifts that balance equally well
    estimate = (_balance(x, y, centre + tiny) + _balance(x, y, centre - tiny)) / 2
    return Interval(estimate, min(low, estimate), max(high, estimate))


def _balance(x: Placed, y: Placed, target: float) -> float:
    """The shift s at which U(Y − s, X) falls below the target."""
    span = max(float(x.values[-1] - x.values[0] + y.values[-1] - y.values[0]), 1e-300)
    middle = float(np.median(y.values) - np.median(x.values))
    low, high = middle - 2 * span, middle + 2 * span
    for _ in range(60):
        tried = (low + high) / 2
        above = _u(x, y, tried) > target
        low, high = (tried, high) if above else (low, tried)
    return _nearest_difference(x, y, (low + high) / 2)


def _nearest_difference(x: Placed, y: Placed, shift: float) -> float:
    """U is a step function of the shift: it falls where a y and an x are just so far apart."""
    above = np.searchsorted(x.values, y.values - shift)
    last = len(x.values) - 1
    beside = np.concatenate(
        [x.values[np.clip(above - 1, 0, last)], x.values[np.minimum(above, last)]]
    )
    nearest = np.tile(y.values, 2) - beside
    return float(nearest[np.argmin(np.abs(nearest - shift))])


def _u(x: Placed, y: Placed, shift: float = 0.0) -> float:
    return float(y.weights @ x.below_minus_above(y.values - shift))


def _null_variance(x: Placed, y: Placed) -> float:
    """n·m·(N + 1)/3, less what people who share a value take away."""
    values = np.concatenate((x.values, y.values))
    weights = np.concatenate((x.weights, y.weights))
    tied = np.concatenate((x.shared, y.shared))
    _, where = np.unique(values[tied], return_inverse=True)
    people = np.bincount(where, weights[tied]) if tied.any() else np.zeros(0)
    n, m = x.people, y.people
    total = n + m
    ties = float(np.sum(people**3 - people)) / (total**3 - total)
    return max(n * m * (total + 1) / 3 * (1 - ties), 0.0)


def _effect_variance(x: Placed, y: Placed) -> float:
    """DeLong's variance of P(Y > X) from the placements of pseudo-people."""

    def part(one: Placed, other: Placed) -> float:
        placement = (other.below_minus_above(one.values) / other.people + 1) / 2
        mean = float(one.weights @ placement) / one.people
        square = float(one.weights @ (placement - mean) ** 2)
        return square / max(one.people - 1, 1) / one.people

    return part(x, y) + part(y, x)
