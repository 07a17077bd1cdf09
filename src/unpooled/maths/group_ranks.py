"""What is known about the order of several groups: at one center, or in a federated table.

All of it follows from the pairs of groups. With U_ij the number of pairs of people in which the
one of group j is higher minus those in which it is lower, group j's rank sum among everybody is
R_j = n_j(N+1)/2 + ½ Σ_i U_ij.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unpooled.maths.arrays import FloatArray
from unpooled.maths.mann_whitney import TestResult, large_ties


@dataclass(frozen=True, slots=True)
class GroupTest(TestResult):
    """A test of several groups; `df` is None where the statistic is a normal one."""

    df: int | None


@dataclass(frozen=True, slots=True)
class GroupRankStatistics:
    """The order of several groups, at a center or in a table.

    `sizes` has the people of each group, 0 where there are none; `u[i, j]` counts the pairs with
    group j higher minus those with group j lower; `rank_variance` is that of everybody's rank
    (÷ N − 1), `trend_variance` that of the sum of `u` above its diagonal if no group differs.
    """

    sizes: FloatArray
    u: FloatArray
    rank_variance: float
    trend_variance: float | None = None

    def __post_init__(self) -> None:
        if self.u.shape != (len(self.sizes), len(self.sizes)):
            raise ValueError(f"u must have a row and a column per group, got {self.u.shape}")
        if not (np.all(self.sizes >= 0) and np.count_nonzero(self.sizes) >= 2):
            raise ValueError("sizes must not be negative, and two groups must have people")
        if not np.all(np.abs(self.u) <= np.outer(self.sizes, self.sizes) * (1 + 1e-12)):
            raise ValueError("u must not exceed the number of pairs")
        for name in ("rank_variance", "trend_variance"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < math.inf:
                raise ValueError(f"{name} must be finite and not negative, got {value}")

    @property
    def people(self) -> float:
        """Everybody."""
        return float(self.sizes.sum())

    @property
    def mean_ranks(self) -> FloatArray:
        """Each group's mean rank among everybody; NaN where a group has nobody."""
        above = np.full(len(self.sizes), math.nan)
        np.divide(self.u.sum(axis=0), 2 * self.sizes, out=above, where=self.sizes > 0)
        mean: FloatArray = above + (self.people + 1) / 2
        return mean

    @classmethod
    def of_pairs(
        cls,
        sizes: npt.ArrayLike,
        pairs: Mapping[tuple[int, int], float],
        rank_variance: float,
        trend_variance: float | None = None,
    ) -> "GroupRankStatistics":
        """From U of each pair of groups (i, j) that has people.

        Examples
        --------
        >>> GroupRankStatistics.of_pairs([2, 2], {(0, 1): 3.0}, 1.5).mean_ranks
        array([1.75, 3.25])
        """
        people = np.asarray(sizes, dtype=np.float64)
        u = np.zeros((len(people), len(people)))
        for (i, j), own in pairs.items():
            u[i, j], u[j, i] = own, -own
        return cls(people, u, rank_variance, trend_variance)

    @classmethod
    def of_table(cls, counts: npt.ArrayLike) -> "GroupRankStatistics":
        """Of a table's counts, a row per group; a bin is a tie, and counts need not be whole.

        Examples
        --------
        >>> GroupRankStatistics.of_table([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]]).mean_ranks
        array([1.75, 3.25, 5.  ])
        """
        table = np.asarray(counts, dtype=np.float64)
        if table.ndim != 2 or not (np.all(np.isfinite(table)) and np.all(table >= 0)):
            raise ValueError("counts must be a row per group, finite and not negative")
        sizes, tied = table.sum(axis=1), table.sum(axis=0)
        placed = 2 * table.cumsum(axis=1) - table - sizes[:, None]
        u = placed @ table.T
        np.fill_diagonal(u, 0.0)
        return cls(sizes, u, rank_variance(tied), trend_variance(sizes, tied))


def tied_people(groups: Sequence[FloatArray]) -> FloatArray:
    """How many people share each distinct value, over all groups.

    Examples
    --------
    >>> tied_people([np.array([1.0, 2.0]), np.array([2.0, 3.0])])
    array([1., 2., 1.])
    """
    pooled = np.sort(np.concatenate(groups), kind="stable")  # merges runs that are sorted already
    starts = np.flatnonzero(np.concatenate(([True], pooled[1:] != pooled[:-1])))
    return np.diff(starts, append=len(pooled)).astype(np.float64)


def rank_variance(tied: FloatArray, *, k: int = 1) -> float:
    """The variance (÷ N − 1) of everybody's rank, where ties share their mean rank.

    Ties of fewer than k people count as none, as in `rank_statistics`.

    Examples
    --------
    >>> rank_variance(np.array([1.0, 2.0, 1.0]))  # of 1, 2.5, 2.5 and 4
    1.5
    """
    total = float(tied.sum())
    if np.count_nonzero(tied) < 2:
        return 0.0
    tied = large_ties(tied, k)
    ties = float((tied * (tied * tied - 1)).sum()) / (total * (total * total - 1))
    return max(total * (total + 1) / 12 * (1 - ties), 0.0)


def trend_variance(sizes: FloatArray, tied: FloatArray, *, k: int = 1) -> float:
    """The variance of Σ U_ij over i < j if no group differs, with the correction for ties [1]_.

    Ties of fewer than k people count as none, as in `rank_statistics`.

    References
    ----------
    .. [1] Kendall (1948), Rank Correlation Methods; Hollander, Wolfe, Chicken (2014),
       Nonparametric Statistical Methods, section 6.2.

    Examples
    --------
    >>> trend_variance(np.array([2.0, 2.0]), np.ones(4))  # that of U alone: 2·2·5/3
    6.666...
    """
    total = float(tied.sum())
    if total < 3 or np.count_nonzero(tied) < 2:
        return 0.0
    tied = large_ties(tied, k)

    def single(x: FloatArray) -> float:
        return float((x * (x - 1) * (2 * x + 5)).sum())

    def triples(x: FloatArray) -> float:
        return float((x * (x - 1) * (x - 2)).sum())

    def pairs(x: FloatArray) -> float:
        return float((x * (x - 1)).sum())

    whole = np.array([total])
    variance = (single(whole) - single(sizes) - single(tied)) / 18
    variance += triples(sizes) * triples(tied) / (9 * triples(whole))
    variance += pairs(sizes) * pairs(tied) / (2 * pairs(whole))
    return max(variance, 0.0)


def linked_groups(centers: Sequence[GroupRankStatistics]) -> list[list[int]]:
    """Which groups the centers link: two are linked by a center that has both, or by a third.

    A center in which everybody is tied links nothing. A group that stands alone is compared with
    no other.

    Examples
    --------
    >>> center = GroupRankStatistics(np.array([9.0, 0.0, 9.0]), np.zeros((3, 3)), 28.5)
    >>> linked_groups([center])
    [[0, 2], [1]]
    """
    together = [set(np.flatnonzero(c.sizes).tolist()) for c in centers if c.rank_variance > 0]
    found: list[list[int]] = []
    left = set(range(len(centers[0].sizes)))
    while left:
        block = {min(left)}
        while grown := set().union(*(own for own in together if own & block)) - block:
            block |= grown
        left -= block
        found.append(sorted(block))
    return found
