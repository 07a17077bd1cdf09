"""The Kruskal-Wallis test [1]_ across centers: do several groups differ?

A center's rank sums are centered, T_j = R_j − n_j(N+1)/2, with Cov T = s²(diag n − n nᵀ/N) if no
group differs and s² the variance of the ranks, ties included. Over centers the statistic is
T ᵀ V⁻ T with T = Σ w T_l and V = Σ w² Cov T_l, χ² on the rank of V. With w = N/s², which is van
Elteren's 1/(N+1) [2]_ up to the ties, two groups give the square of the weighted Mann-Whitney
test. One center gives Kruskal and Wallis's H. A center takes part with the groups that it has.

References
----------
.. [1] Kruskal, Wallis (1952), Journal of the American Statistical Association 47, 583-621.
.. [2] Van Elteren (1960), Bulletin of the International Statistical Institute 37, 351-361; for
   several groups: Mack, Skillings (1980), Journal of the American Statistical Association 75,
   947-951; Landis, Heyman, Koch (1978), International Statistical Review 46, 237-254.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from unpooled.maths.group_ranks import (
    GroupRankStatistics,
    GroupTest,
    linked_groups,
)
from unpooled.maths.mann_whitney import fisher_chi2, log_chi2_survival, tied_note


def kruskal_weighted(centers: Sequence[GroupRankStatistics]) -> GroupTest:
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


def kruskal_sum(centers: Sequence[GroupRankStatistics]) -> GroupTest:
    """The plain sums of the centers' rank sums."""
    return _stratified("sum", centers, [1.0] * len(centers))


def kruskal_fisher(centers: Sequence[GroupRankStatistics]) -> GroupTest:
    """Fisher's −2 Σ log p over the centers' own tests; one with a single value has none."""
    note = tied_note([center.rank_variance for center in centers])
    logs = [kruskal_weighted([center]).log_p for center in centers if center.rank_variance > 0]
    statistic, df, log_p = fisher_chi2(logs)
    return GroupTest("fisher", statistic, log_p, note, df)


def kruskal_table(counts: npt.ArrayLike) -> GroupTest:
    """H of a federated table, a row per group, where a bin is a tie.

    Examples
    --------
    >>> kruskal_table([[12.0, 10, 5.5], [10, 10, 17.5], [10, 20, 10]]).p_value
    0.0880...
    """
    ranks = GroupRankStatistics.of_table(counts)
    test = kruskal_weighted([ranks])
    note = None if ranks.rank_variance else "everyone is in the same bin: nothing to test, p = 1"
    return GroupTest("table", test.statistic, test.log_p, note, test.df)


def _stratified(
    method: str, centers: Sequence[GroupRankStatistics], weights: Sequence[float]
) -> GroupTest:
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
        return GroupTest(method, 0.0, 0.0, note, 0)
    own = rank_sums[free]
    statistic = max(float(own @ np.linalg.solve(covariance[np.ix_(free, free)], own)), 0.0)
    return GroupTest(method, statistic, log_chi2_survival(statistic, len(free)), note, len(free))
