"""The methods that a study compares, by name. A new one is a function with a decorator.

A method gets the people of one simulated federation (`Federated`), which works out once what
several methods share, and answers with the public maths: no statistic is computed here.
"""

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from unpooled.maths import quantile, yeo_johnson
from unpooled.maths.arrays import FloatArray
from unpooled.maths.binning import Rule, Weight, cut, place_boundaries
from unpooled.maths.joining import join, reallocate
from unpooled.maths.mann_whitney import (
    Alternative,
    RankStatistics,
    fisher_test,
    rank_statistics,
    rank_statistics_by_row,
    sum_test,
    table_test,
    weighted_test,
)
from unpooled.maths.table import Table
from unpooled.study.families import Random
from unpooled.study.settings import Center

OPEN = (-np.inf, np.inf)
NAMES = ("x", "y")


def chain(centers: Sequence[Center], rule: Rule, weight: Weight) -> Table:
    """The federated table of these centers' groups, largest center first.

    Examples
    --------
    >>> people = [[np.arange(30.0)], [np.arange(12.0)]]
    >>> chain(people, Rule(k=10), lambda a, v: 0.5).counts
    array([[14., 14., 14.]])
    """
    first, *others = sorted(centers, key=lambda groups: -sum(map(len, groups)))
    groups = NAMES[: len(first)]
    cuts = cut(first, rule)
    interior = place_boundaries(cuts.below, cuts.above, weight)
    edges = np.concatenate(([OPEN[0]], interior, [OPEN[1]]))
    table = Table(edges, cuts.counts.astype(np.float64), groups)
    for center in others:
        joined = join(center, table.edges[1:-1], rule, weight)
        table = reallocate(table, joined, groups, OPEN)
    return table


class Federated:
    """One simulated federation. A center with a group below K is refused, as it would be."""

    def __init__(self, centers: Sequence[Center], k: int, random: Random) -> None:
        self.everybody = centers
        self.rule = Rule(k=k)
        self.answering = [c for c in centers if min(map(len, c)) >= k]
        self._random = random

    @cached_property
    def pooled(self) -> list[FloatArray]:
        """All people of each group, ascending, as nobody may see them."""
        groups = [np.concatenate(own) for own in zip(*self.everybody, strict=True)]
        for values in groups:
            values.sort(kind="stable")  # merges what the centers have sorted
        return groups

    @cached_property
    def statistics(self) -> list[RankStatistics]:
        """What each answering center says about the order of its groups."""
        return [rank_statistics(*groups) for groups in self.answering]

    @cached_property
    def combined(self) -> RankStatistics:
        """What everybody's order would say."""
        return rank_statistics(*self.pooled)

    @cached_property
    def table(self) -> Table:
        """The federated table."""
        draw = self._random.random
        return chain(self.answering, self.rule, lambda _below, _above: draw())


def take_statistics(federations: Sequence[Federated]) -> None:
    """Work out `statistics` and `combined` of federations of the same sizes, all at once."""
    said = [
        rank_statistics_by_row(*(np.array(own) for own in zip(*people, strict=True)))
        for people in zip(*(one.answering for one in federations), strict=True)
    ]
    pooled = zip(*(one.pooled for one in federations), strict=True)
    combined = rank_statistics_by_row(*(np.array(own) for own in pooled))
    for i, one in enumerate(federations):
        one.statistics = [rows[i] for rows in said]
        one.combined = combined[i]


Test = Callable[[Federated, Alternative], float]
"""Gives the natural logarithm of the p-value for an alternative."""
Estimator = Callable[[Federated, FloatArray], FloatArray]
"""Gives an estimate for each p; NaN where it has none."""

TEST_METHODS: dict[str, Test] = {}
QUANTILE_METHODS: dict[str, Estimator] = {}


def test_method(name: str) -> Callable[[Test], Test]:
    """Make a test known by this name."""

    def register(method: Test) -> Test:
        TEST_METHODS[name] = method
        return method

    return register


def quantile_method(name: str) -> Callable[[Estimator], Estimator]:
    """Make an estimator known by this name."""

    def register(method: Estimator) -> Estimator:
        QUANTILE_METHODS[name] = method
        return method

    return register


@test_method("combined")
def _combined(people: Federated, alternative: Alternative) -> float:
    return sum_test([people.combined], alternative).log_p


@test_method("table")
def _table(people: Federated, alternative: Alternative) -> float:
    counts_x, counts_y = people.table.counts
    return table_test(counts_x, counts_y, alternative).log_p


@test_method("fisher")
def _fisher(people: Federated, alternative: Alternative) -> float:
    return fisher_test(people.statistics, alternative).log_p


@test_method("sum")
def _sum(people: Federated, alternative: Alternative) -> float:
    return sum_test(people.statistics, alternative).log_p


@test_method("weighted")
def _weighted(people: Federated, alternative: Alternative) -> float:
    return weighted_test(people.statistics, alternative).log_p


@quantile_method("sample")
def _sample(people: Federated, p: FloatArray) -> FloatArray:
    return np.quantile(people.pooled[0], p)


@quantile_method("loss")
def _loss(people: Federated, p: FloatArray) -> FloatArray:
    values = people.pooled[0]

    def evaluate(q: FloatArray, at: FloatArray) -> quantile.PinballLoss:
        return quantile.pinball(values, q, at)

    found = [quantile.minimise_loss(evaluate, one, *_around(values, one)) for one in p.tolist()]
    return np.concatenate([result.estimate for result in found])


def _around(values: FloatArray, p: float) -> tuple[float, float]:
    """Where to look for a quantile: a few people around it, or everywhere if they are tied.

    A federation cannot know these people; here they save rounds and change no result.
    """
    n, wanted = len(values), len(values) * p
    low, high = values[max(int(wanted) - 3, 0)], values[min(int(wanted) + 3, n - 1)]
    if values.searchsorted(low, "right") < wanted - 1 and values.searchsorted(high) > wanted + 1:
        return float(low), float(high)
    return float(values[0]) - 1.0, float(values[-1]) + 1.0


@quantile_method("yj-likelihood")
def _yj_likelihood(people: Federated, p: FloatArray) -> FloatArray:
    values = people.pooled[0]  # the centers' moments pool exactly, so they are taken at once
    fit = yeo_johnson.fit_likelihood(lambda lambdas: yeo_johnson.power_moments(values, lambdas))
    return fit.quantile(p)


@quantile_method("yj-grid")
def _yj_grid(people: Federated, p: FloatArray) -> FloatArray:
    grid = yeo_johnson.DEFAULT_GRID
    return yeo_johnson.fit_grid(yeo_johnson.power_moments(people.pooled[0], grid)).quantile(p)


@quantile_method("yj-table")
def _yj_table(people: Federated, p: FloatArray) -> FloatArray:
    table = people.table
    return quantile.yj_table_quantiles(table.edges, table.counts[0], p).estimate


@quantile_method("interpolation")
def _interpolation(people: Federated, p: FloatArray) -> FloatArray:
    table = people.table
    return quantile.interpolation_quantiles(table.edges, table.counts[0], p).estimate
