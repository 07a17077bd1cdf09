"""The trend test of Jonckheere and Terpstra [1]_ across centers: do values rise with the order?

J = Σ U_ij over the groups i before j, positive where later groups are higher. A center takes part
with the groups that it has.

References
----------
.. [1] Jonckheere (1954), Biometrika 41, 133-145; Terpstra (1952), Indagationes Mathematicae 14,
   327-333.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from unpooled.maths.group_ranks import GroupRankStatistics, GroupTest
from unpooled.maths.mann_whitney import (
    Alternative,
    TestResult,
    fisher_chi2,
    log_normal_p,
    normal_test,
    tied_note,
)


def trend_weighted(centers: Sequence[GroupRankStatistics], alternative: Alternative) -> GroupTest:
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


def trend_sum(centers: Sequence[GroupRankStatistics], alternative: Alternative) -> GroupTest:
    """Σ J/√(Σ V)."""
    note = tied_note([center.rank_variance for center in centers])
    j, variance = sum(map(_trend, centers)), sum(map(_variance, centers))
    return _normal(normal_test("sum", j, variance, alternative, note))


def trend_fisher(centers: Sequence[GroupRankStatistics], alternative: Alternative) -> GroupTest:
    """Fisher's −2 Σ log p over the centers' own trend tests; one with a single value has none."""
    note = tied_note([center.rank_variance for center in centers])
    logs = [log_normal_p(_trend(center), _variance(center), alternative) for center in centers]
    varying = [log_p for log_p, center in zip(logs, centers, strict=True) if _variance(center) > 0]
    statistic, df, log_p = fisher_chi2(varying)
    return GroupTest("fisher", statistic, log_p, note, df)


def trend_table(counts: npt.ArrayLike, alternative: Alternative) -> GroupTest:
    """J/√V of a federated table, a row per group in their order, where a bin is a tie.

    Examples
    --------
    >>> trend_table([[12.0, 10, 5.5], [10, 15, 10], [10, 10, 17.5]], "greater").p_value
    0.0149...
    """
    ranks = GroupRankStatistics.of_table(counts)
    note = None if ranks.rank_variance else "everyone is in the same bin: nothing to test, p = 1"
    return _normal(normal_test("table", _trend(ranks), _variance(ranks), alternative, note))


def _normal(test: TestResult) -> GroupTest:
    return GroupTest(test.method, test.statistic, test.log_p, test.note, None)


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
