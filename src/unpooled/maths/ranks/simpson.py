"""Simpson's paradox: the effect of all people together contradicts that within centers.

The pairs of people behind the effect of everybody are mostly pairs of different centers. Where
centers differ in their values and in the sizes of their groups, these pairs compare centers. With
U_ij of the x of center i and the y of center j, P(Y > X) of any set of centers follows from the
sums over it, so that it can be said which centers move it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from unpooled.maths.arrays import FloatArray
from unpooled.maths.density.placing import Placed
from unpooled.maths.ranks.effect import Interval
from unpooled.maths.ranks.group_ranks import GroupRankStatistics

_NORMAL = 1.96


@dataclass(frozen=True, slots=True)
class CenterPairs:
    """U between the x of each center (row) and the y of each (column), and their numbers."""

    u: FloatArray
    n_x: FloatArray
    n_y: FloatArray

    @classmethod
    def of_counts(cls, x: FloatArray, y: FloatArray) -> "CenterPairs":
        """Of people in the bins of a table, a row per center.

        Examples
        --------
        >>> x, y = np.array([[9.0, 1, 0], [0, 0, 90]]), np.array([[10.0, 80, 0], [0, 0, 10]])
        >>> CenterPairs.of_counts(x, y).u
        array([[  710.,   100.],
               [-8100.,     0.]])
        """
        n_x = x.sum(axis=1)
        reached = 2 * x.cumsum(axis=1) - x - n_x[:, None]
        return cls(reached @ y.T, n_x, y.sum(axis=1))

    @classmethod
    def of_placed(cls, x: Sequence[Placed], y: Sequence[Placed]) -> "CenterPairs":
        """Of placed people, center by center."""
        u = [[float(b.weights @ a.below_minus_above(b.values)) for b in y] for a in x]
        n_x, n_y = (np.array([one.people for one in group]) for group in (x, y))
        return cls(np.array(u), n_x, n_y)

    def effect(self, left_out: Sequence[int] = ()) -> float | None:
        """P(Y > X) + ½P(Y = X) of all people but those of some centers; None without pairs."""
        kept = np.setdiff1d(np.arange(len(self.n_x)), left_out)
        pairs = float(self.n_x[kept].sum() * self.n_y[kept].sum())
        return (float(self.u[np.ix_(kept, kept)].sum()) / pairs + 1) / 2 if pairs > 0 else None


def contradicts(within: Interval, pooled: Interval) -> bool:
    """Whether one finds an effect, and the other none like it or the opposite.

    Examples
    --------
    >>> contradicts(Interval(0.58, 0.54, 0.62), Interval(0.41, 0.38, 0.44))
    True
    >>> contradicts(Interval(0.58, 0.54, 0.62), Interval(0.55, 0.52, 0.58))
    False
    >>> contradicts(Interval(0.51, 0.46, 0.56), Interval(0.49, 0.46, 0.52))  # neither finds one
    False
    """
    if turned(within, pooled):
        return is_clear(within) or is_clear(pooled)
    return any(
        is_clear(one) and not is_clear(other) and not other.low <= one.estimate <= other.high
        for one, other in ((within, pooled), (pooled, within))
    )


def turned(within: Interval, pooled: Interval) -> bool:
    """Whether they lie on different sides of ½."""
    return (within.estimate - 0.5) * (pooled.estimate - 0.5) < 0


def is_clear(effect: Interval) -> bool:
    """Whether the interval leaves ½ out."""
    return effect.low > 0.5 or effect.high < 0.5


def odd_centers(pairs: CenterPairs, within: Interval) -> tuple[int, ...]:
    """The fewest centers, found one by one, without which everybody is like within centers.

    That is: at most half as far from it as before and, where it is clear, on its side of ½.
    Nobody where that takes more than half of the centers.

    Examples
    --------
    The x of the last center are many and high.

    >>> x = np.array([[9.0, 1, 0], [9, 1, 0], [9, 1, 0], [0, 0, 90]])
    >>> y = np.array([[20.0, 20, 0], [20, 20, 0], [20, 20, 0], [0, 0, 10]])
    >>> odd_centers(CenterPairs.of_counts(x, y), Interval(0.65, 0.6, 0.7))
    (3,)
    """
    whole = pairs.effect()
    if whole is None:
        return ()
    left_out: list[int] = []
    for _ in range(len(pairs.n_x) // 2):
        left = [i for i in range(len(pairs.n_x)) if i not in left_out]
        tried = [(i, pairs.effect([*left_out, i])) for i in left]
        moves = [(abs(e - within.estimate), i, e) for i, e in tried if e is not None]
        if not moves:
            return ()
        distance, center, effect = min(moves)
        left_out.append(center)
        same_side = (effect - 0.5) * (within.estimate - 0.5) >= 0
        if distance <= abs(whole - within.estimate) / 2 and (same_side or not is_clear(within)):
            return tuple(left_out)
    return ()


def table_effect(counts: FloatArray) -> Interval:
    """P(Y > X) + ½P(Y = X) of a table's two rows, with the limits of a test that nothing differs.

    Examples
    --------
    >>> table_effect(np.array([[20.0, 20, 10], [10, 20, 20]]))
    Interval(estimate=0.64, low=0.53..., high=0.74...)
    """
    ranks = GroupRankStatistics.of_table(counts)
    n, m = ranks.sizes.tolist()
    estimate = min(max((float(ranks.u[0, 1]) / (n * m) + 1) / 2, 0.0), 1.0)
    margin = _NORMAL * sqrt(ranks.rank_variance / (n * m * (n + m)))  # half of √V/(n·m)
    return Interval(estimate, max(estimate - margin, 0.0), min(estimate + margin, 1.0))
