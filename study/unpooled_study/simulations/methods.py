"""The methods that a study compares, by name. A new one is a function with a decorator.

A method gets the people of one simulated federation (`Federated`), which works out once what
several methods share, and answers with the public maths: no statistic is computed here.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from unpooled.center.proposal.keyed_boundaries import keyed_draws
from unpooled.maths.arrays import FloatArray
from unpooled.maths.density.distribution import smooth
from unpooled.maths.density.placing import Placed, place
from unpooled.maths.lattice.cutting import lattice_table
from unpooled.maths.lattice.lattice import Lattice, LatticeTable, public_lattice
from unpooled.maths.moments import SD_NEEDS, Rare, telling_values
from unpooled.maths.quantiles import quantile, yeo_johnson
from unpooled.maths.ranks.cross_center import cross_center
from unpooled.maths.ranks.mann_whitney import (
    Alternative,
    RankStatistics,
    fisher_test,
    rank_statistics,
    rank_statistics_by_row,
    sum_test,
    table_test,
    weighted_test,
)
from unpooled.maths.tables.binning import Rule, Weight, cut, place_boundaries
from unpooled.maths.tables.chain import Chain, join
from unpooled.maths.tables.table import Table
from unpooled.maths.tables.test_counts import Alike, alike
from unpooled_study.simulations.families import Random
from unpooled_study.simulations.settings import Center

OPEN = (-np.inf, np.inf)
NAMES = ("x", "y")


class NoAnswer(ValueError):  # noqa: N818 - not an error of the program but what a study counts
    """Centers refuse what a method needs."""


def grow(centers: Sequence[Center], rule: Rule, weight: Weight) -> Chain:
    """The chain of these centers, largest first; a group below K is refused, others join.

    Examples
    --------
    >>> people = [[np.arange(30.0)], [np.arange(12.0)], [np.arange(9.0)]]
    >>> grow(people, Rule(k=10), lambda a, v: 0.5).table.counts
    array([[14., 14., 14.]])
    """
    groups = NAMES[: len(centers[0])]
    large = [
        {
            group: values
            for group, values in zip(groups, center, strict=True)
            if len(values) >= rule.k
        }
        for center in centers
    ]
    chain = Chain(groups)
    for people in sorted(filter(None, large), key=lambda center: -sum(map(len, center.values()))):
        values = list(people.values())
        if chain.table is None:
            cuts = cut(values, rule)
            interior = place_boundaries(cuts.below, cuts.above, weight)
            edges = np.concatenate(([OPEN[0]], interior, [OPEN[1]]))
            chain.begin(edges, dict(zip(people, cuts.counts, strict=True)))
        else:
            joined = join(values, chain.table.edges[1:-1], rule, weight)
            chain.join(joined.splits, dict(zip(people, joined.pools, strict=True)), OPEN)
    return chain


class Federated:
    """One simulated federation; what centers refuse for their people, they refuse here too."""

    def __init__(self, centers: Sequence[Center], k: int, random: Random) -> None:
        self.everybody = centers
        self.rule = Rule(k=k)
        self.paired = [c for c in centers if min(map(len, c)) >= k]  # with people to compare
        self._random = random

    @cached_property
    def pooled(self) -> list[FloatArray]:
        """All people of each group, ascending, as nobody may see them."""
        return _pool(self.everybody)

    def telling_powers(self, powers: int) -> FloatArray:
        """The people of centers that tell so many powers; together, since powers pool exactly."""
        fewest = min(len(center[0]) for center in self.everybody)
        if not self._tied and fewest >= people_for_powers(self.rule.k, powers):
            return self.pooled[0]  # nobody refuses
        telling = [c for c in self.everybody if _tells_powers(c[0], self.rule.k, powers)]
        if not telling:
            raise NoAnswer(f"no center has the people for {powers} powers")
        return _pool(telling)[0]

    @property
    def statistics(self) -> list[RankStatistics]:
        """What each answering center says about the order of its groups."""
        if not self.ranks:
            raise NoAnswer("no center could compare the groups by itself")
        return self.ranks

    @cached_property
    def ranks(self) -> list[RankStatistics]:
        """The same, also where no center answers."""
        return [rank_statistics(c[0], c[1]) for c in self.paired if not self.takes_few_values(c)]

    def takes_few_values(self, center: Center) -> bool:
        """Whether the center refuses to compare its groups, as ranks would tell on people."""
        return not all(tells_ranks(values, self.rule.k, tied=self._tied) for values in center)

    @cached_property
    def _tied(self) -> bool:
        """Whether people share a value: where nobody does, there is nothing to count."""
        return any(np.any(values[1:] == values[:-1]) for values in self.pooled)

    @cached_property
    def combined(self) -> RankStatistics:
        """What everybody's order would say."""
        return rank_statistics(self.pooled[0], self.pooled[1])

    @cached_property
    def chain(self) -> Chain:
        """The chain of all centers."""
        draw = self._random.random
        return grow(self.everybody, self.rule, lambda _below, _above: draw())

    @property
    def table(self) -> Table:
        """The federated table."""
        table = self.chain.table
        if table is None or not table.people.all():
            raise NoAnswer("no center has enough people in a group")
        return table

    @cached_property
    def lattice(self) -> Lattice:
        """The public one of a variable that nobody declared, with about this spread."""
        return public_lattice(scale=float(np.concatenate(self.pooled).std()))

    @cached_property
    def lattice_tables(self) -> list[dict[int, LatticeTable]]:
        """The parallel method's tables, group by group; a center needs two cells of K people."""
        draws = keyed_draws(self._random.bytes(32), "v")
        k = self.rule.k
        return [
            {
                number: table
                for number, center in enumerate(self.everybody)
                if len(center[group]) >= 2 * k
                and self.says_where(
                    table := lattice_table(center[group], self.lattice, k, draws, "tails")
                )
            }
            for group in range(len(self.everybody[0]))
        ]

    def says_where(self, table: LatticeTable) -> bool:
        """Whether it says where its people are; one or two open cells without means do not."""
        return len(table.counts) > 2 or not np.isnan(table.means).any()

    def placed(self, group: int) -> Placed:
        """The pseudo-people of a group, by center."""
        tables = self.lattice_tables[group]
        if not tables:
            raise NoAnswer("no center has people enough for a table")
        placed = place(list(tables.values()), self.lattice)
        return replace(placed, centers=np.array(list(tables))[placed.centers])

    def alike(self) -> Alike:
        """The counts that `compare` tests."""
        return alike(self.chain.pools, self.table, self.table.groups)


def tells_ranks(values: FloatArray, k: int, *, tied: bool) -> bool:
    """Whether a center that told nothing before may rank a group, which tells three numbers of it.

    So says the rule for sums (docs/guarantee.md): the two largest crowds are no witnesses. Of three
    values or fewer it tells how many people have each.
    """
    needed = max(k, 2 * RANK_NUMBERS)
    if not tied:
        return len(values) >= needed
    count = np.unique(values, return_counts=True)[1]
    if len(count) <= RANK_NUMBERS:
        return bool(count.min() >= k)
    crowds = np.sort(count[count >= CROWD])[-(RANK_NUMBERS - 1) :]
    return bool(len(values) - crowds.sum() >= needed)


RANK_NUMBERS, CROWD = 3, 3
LIKELIHOOD_POWERS = 7 + 3 + 1  # λ in the three rounds of the paper's iteration


def people_for_powers(k: int, powers: int) -> int:
    """How many people a group needs before so many powers may be told: two for each number."""
    return max(3 * k, 2 * (2 * powers + 1))


def _tells_powers(values: FloatArray, k: int, powers: int) -> bool:
    """Whether a center tells so many powers of a group."""
    needed = people_for_powers(k, powers)
    if len(values) < needed or 0 < Rare.of(values, k).people < needed:
        return False
    return not 0 < telling_values(values, k) < SD_NEEDS


def _pool(centers: Sequence[Center]) -> list[FloatArray]:
    groups = [np.concatenate(parts) for parts in zip(*centers, strict=True)]
    for values in groups:
        values.sort(kind="stable")  # merges what the centers have sorted
    return groups


def _ranks_by_row(groups: Iterable[Sequence[FloatArray]]) -> list[RankStatistics]:
    x, y = (np.array(group) for group in groups)
    return rank_statistics_by_row(x, y)


def take_statistics(federations: Sequence[Federated]) -> None:
    """Work out `ranks` and `combined` of federations of the same sizes, all at once."""
    ranks = [
        _ranks_by_row(zip(*people, strict=True))
        for people in zip(*(one.paired for one in federations), strict=True)
    ]
    pooled = zip(*(one.pooled for one in federations), strict=True)
    combined = _ranks_by_row(pooled)
    for i, one in enumerate(federations):
        by_center = zip(ranks, one.paired, strict=True)
        one.ranks = [rows[i] for rows, center in by_center if not one.takes_few_values(center)]
        one.combined = combined[i]


Test = Callable[[Federated, Alternative], float]
"""Gives the natural logarithm of the p-value for an alternative; `NoAnswer` where it has none."""
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
    """As `compare` tests: people are shared out like everybody at their center."""
    counts_x, counts_y = people.alike().counts
    return table_test(counts_x, counts_y, alternative).log_p


@test_method("paper-table")
def _paper_table(people: Federated, alternative: Alternative) -> float:
    """As the paper tests: the chain's counts are taken for people."""
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


@test_method("parallel")
def _parallel(people: Federated, alternative: Alternative) -> float:
    ranks: list[RankStatistics | None] = []
    for number, center in enumerate(people.everybody):
        both = all(number in tables for tables in people.lattice_tables)
        may = both and not people.takes_few_values(center)
        ranks.append(rank_statistics(center[0], center[1]) if may else None)
    return cross_center(people.placed(0), people.placed(1), ranks).test(alternative).log_p


@quantile_method("parallel")
def _parallel_quantiles(people: Federated, p: FloatArray) -> FloatArray:
    tables = list(people.lattice_tables[0].values())
    if not tables:
        raise NoAnswer("no center has people enough for a table")
    return smooth(tables, people.lattice).quantile(p)


@quantile_method("sample")
def _sample(people: Federated, p: FloatArray) -> FloatArray:
    return np.quantile(people.pooled[0], p)


@quantile_method("loss")
def _loss(people: Federated, p: FloatArray) -> FloatArray:
    values = people.pooled[0]

    def evaluate(q: FloatArray, at: FloatArray) -> quantile.PinballLoss:
        return quantile.pinball(values, q, at)

    estimates = [quantile.minimise_loss(evaluate, one, *_around(values, one)) for one in p.tolist()]
    return np.concatenate([result.estimate for result in estimates])


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
    values = people.telling_powers(LIKELIHOOD_POWERS)
    fit = yeo_johnson.fit_likelihood(lambda lambdas: yeo_johnson.power_moments(values, lambdas))
    return fit.quantile(p)


@quantile_method("yj-grid")
def _yj_grid(people: Federated, p: FloatArray) -> FloatArray:
    grid = yeo_johnson.DEFAULT_GRID
    values = people.telling_powers(len(grid))
    return yeo_johnson.fit_grid(yeo_johnson.power_moments(values, grid)).quantile(p)


@quantile_method("yj-table")
def _yj_table(people: Federated, p: FloatArray) -> FloatArray:
    table = people.table
    return quantile.yj_table_quantiles(table.edges, table.counts[0], p).estimate


@quantile_method("interpolation")
def _interpolation(people: Federated, p: FloatArray) -> FloatArray:
    table = people.table
    return quantile.interpolation_quantiles(table.edges, table.counts[0], p).estimate
