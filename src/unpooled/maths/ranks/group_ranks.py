"""What is known about the order of several groups: at one center, or in a federated table.

All of it follows from the pairs of groups. With U_ij the number of pairs of people in which the
one of group j is higher minus those in which it is lower, group j's rank sum among everybody is
R_j = n_j(N+1)/2 + ½ Σ_i U_ij.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from unpooled.maths.arrays import FloatArray
from unpooled.maths.ranks.mann_whitney import (
    Alternative,
    TestResult,
    fisher_chi2,
    large_ties,
    log_chi2_survival,
    log_normal_p,
    normal_test,
    tied_note,
)

if TYPE_CHECKING:  # a center that ranks its groups places nobody
    from unpooled.maths.density.placing import Placed


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
        for (i, j), statistics in pairs.items():
            u[i, j], u[j, i] = statistics, -statistics
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


def placed_group_ranks(groups: Sequence["Placed | None"]) -> GroupRankStatistics:
    """What pseudo-people of one center say of the order of its groups; None: nobody is there.

    Examples
    --------
    >>> from unpooled.maths.density.placing import Placed
    >>> x, y = (Placed(np.arange(2.0) + s, np.ones(2), np.zeros(2, int), np.zeros(2, bool))
    ...         for s in (0, 0.5))
    >>> placed_group_ranks([x, None, y]).mean_ranks.tolist()
    [2.0, nan, 3.0]
    """
    sizes = np.array([0.0 if group is None else round(group.people) for group in groups])
    pairs = {}
    for (i, x), (j, y) in combinations(enumerate(groups), 2):
        if x is not None and y is not None:
            u, most = float(y.weights @ x.below_minus_above(y.values)), sizes[i] * sizes[j]
            pairs[i, j] = float(min(max(u, -most), most))
    tied = _tied_placed([group for group in groups if group is not None])
    return GroupRankStatistics.of_pairs(
        sizes, pairs, rank_variance(tied), trend_variance(sizes, tied)
    )


def _tied_placed(groups: Sequence["Placed"]) -> FloatArray:
    """How many people share each value; whoever shares none counts as one."""
    values, weights, shared = (
        np.concatenate([getattr(group, name) for group in groups])
        for name in ("values", "weights", "shared")
    )
    _, where = np.unique(values[shared], return_inverse=True)
    tied = np.bincount(where, weights[shared]) if shared.any() else np.zeros(0)
    alone = round(float(weights.sum() - tied.sum()))
    return np.concatenate((tied, np.ones(alone)))


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
    blocks: list[list[int]] = []
    left = set(range(len(centers[0].sizes)))
    while left:
        block = {min(left)}
        while grown := set().union(*(linked for linked in together if linked & block)) - block:
            block |= grown
        left -= block
        blocks.append(sorted(block))
    return blocks


def kruskal_weighted(centers: Sequence[GroupRankStatistics]) -> TestResult:
    """The centers' rank sums, weighted by N/s²: the most power where effects are alike.

    Examples
    --------
    >>> center = GroupRankStatistics.of_table([[9, 6, 3], [3, 9, 3], [3, 3, 12]])
    >>> test = kruskal_weighted([center, center])
    >>> round(test.statistic, 3), test.df
    (19.619, 2)
    """
    weights = [c.people / c.rank_variance if c.rank_variance else 0.0 for c in centers]
    return _stratified("weighted", centers, weights)


def kruskal_sum(centers: Sequence[GroupRankStatistics]) -> TestResult:
    """The plain sums of the centers' rank sums."""
    return _stratified("sum", centers, [1.0] * len(centers))


def kruskal_fisher(centers: Sequence[GroupRankStatistics]) -> TestResult:
    """Fisher's −2 Σ log p over the centers' own tests; one with a single value has none."""
    note = tied_note([center.rank_variance for center in centers])
    logs = [kruskal_weighted([center]).log_p for center in centers if center.rank_variance > 0]
    statistic, df, log_p = fisher_chi2(logs)
    return TestResult("fisher", statistic, log_p, note, df)


def kruskal_table(counts: npt.ArrayLike) -> TestResult:
    """H of a federated table, a row per group, where a bin is a tie.

    Examples
    --------
    >>> kruskal_table([[12.0, 10, 5.5], [10, 10, 17.5], [10, 20, 10]]).p_value
    0.0880...
    """
    ranks = GroupRankStatistics.of_table(counts)
    test = kruskal_weighted([ranks])
    note = None if ranks.rank_variance else "everyone is in the same bin: nothing to test, p = 1"
    return TestResult("table", test.statistic, test.log_p, note, test.df)


def _stratified(
    method: str, centers: Sequence[GroupRankStatistics], weights: Sequence[float]
) -> TestResult:
    note = tied_note([center.rank_variance for center in centers])
    groups = len(centers[0].sizes)
    rank_sums, covariance = np.zeros(groups), np.zeros((groups, groups))
    for center, weight in zip(centers, weights, strict=True):
        shared = np.outer(center.sizes, center.sizes) / center.people
        spread = weight**2 * center.rank_variance
        covariance += spread * (np.diag(center.sizes) - shared)
        rank_sums += weight * center.u.sum(axis=0) / 2
    # Within a block of linked groups the rank sums add up to 0: one of them says nothing new.
    free = [group for block in linked_groups(centers) for group in block[1:]]
    if not free:
        return TestResult(method, 0.0, 0.0, note, 0)
    part = rank_sums[free]
    statistic = max(float(part @ np.linalg.solve(covariance[np.ix_(free, free)], part)), 0.0)
    return TestResult(method, statistic, log_chi2_survival(statistic, len(free)), note, len(free))


def trend_weighted(centers: Sequence[GroupRankStatistics], alternative: Alternative) -> TestResult:
    """Σ a Z/√(Σ a²) with Z = J/√V and a = Σ (j−i) n_i n_j/√V.

    These weights have the most power where every step of the order raises P(Y > X) alike. Two
    groups give the weighted Mann-Whitney test.

    Examples
    --------
    >>> center = GroupRankStatistics.of_table([[9, 6, 3], [3, 9, 3], [3, 3, 12]])
    >>> trend_weighted([center, center], "greater").p_value
    2.50...e-06
    """
    note = tied_note([center.rank_variance for center in centers])
    varying = [(_steps(c), _trend(c), _variance(c)) for c in centers if _variance(c) > 0]
    weighted = sum(steps * j / variance for steps, j, variance in varying)
    squares = sum(steps**2 / variance for steps, _, variance in varying)
    return _normal(normal_test("weighted", weighted, squares, alternative, note))


def trend_sum(centers: Sequence[GroupRankStatistics], alternative: Alternative) -> TestResult:
    """Σ J/√(Σ V)."""
    note = tied_note([center.rank_variance for center in centers])
    j, variance = sum(map(_trend, centers)), sum(map(_variance, centers))
    return _normal(normal_test("sum", j, variance, alternative, note))


def trend_fisher(centers: Sequence[GroupRankStatistics], alternative: Alternative) -> TestResult:
    """Fisher's −2 Σ log p over the centers' own trend tests; one with a single value has none."""
    note = tied_note([center.rank_variance for center in centers])
    logs = [log_normal_p(_trend(center), _variance(center), alternative) for center in centers]
    varying = [log_p for log_p, center in zip(logs, centers, strict=True) if _variance(center) > 0]
    statistic, df, log_p = fisher_chi2(varying)
    return TestResult("fisher", statistic, log_p, note, df)


def trend_table(counts: npt.ArrayLike, alternative: Alternative) -> TestResult:
    """J/√V of a federated table, a row per group in their order, where a bin is a tie.

    Examples
    --------
    >>> trend_table([[12.0, 10, 5.5], [10, 15, 10], [10, 10, 17.5]], "greater").p_value
    0.0149...
    """
    ranks = GroupRankStatistics.of_table(counts)
    note = None if ranks.rank_variance else "everyone is in the same bin: nothing to test, p = 1"
    return _normal(normal_test("table", _trend(ranks), _variance(ranks), alternative, note))


def _normal(test: TestResult) -> TestResult:
    return TestResult(test.method, test.statistic, test.log_p, test.note, None)


def _trend(center: GroupRankStatistics) -> float:
    return float(np.triu(center.u, 1).sum())


def _variance(center: GroupRankStatistics) -> float:
    if center.trend_variance is None:
        raise ValueError("a trend needs every center's trend_variance")
    return center.trend_variance


def _steps(center: GroupRankStatistics) -> float:
    """Pairs of people of different groups, counted by how many places apart these are."""
    place = np.arange(len(center.sizes), dtype=np.float64)
    apart = np.triu(place[None, :] - place[:, None], 1)
    return float(center.sizes @ apart @ center.sizes)
