"""Compare several groups: Kruskal-Wallis or, if ordered, Jonckheere-Terpstra; then every pair."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from unpooled.analyses.conversation import Conversation
from unpooled.analyses.numbers.compare import (
    BY_CENTER,
    Unit,
    name_groups,
    run_compare,
)
from unpooled.analyses.numbers.table import run_table, run_table_beside, table_note
from unpooled.analyses.request import Request, explain, refuse, take_attendance
from unpooled.analyses.specification import select_methods
from unpooled.center.data.variables import Variable
from unpooled.center.questions import (
    GroupRanks,
    GroupRanksQuestion,
    Limits,
    Reason,
    Refusal,
)
from unpooled.errors import InputError
from unpooled.maths.arrays import FloatArray
from unpooled.maths.multiplicity import holm
from unpooled.maths.ranks.effect import heterogeneity, overall_effect
from unpooled.maths.ranks.group_ranks import (
    GroupRankStatistics,
    kruskal_fisher,
    kruskal_sum,
    kruskal_table,
    kruskal_weighted,
    linked_groups,
    trend_fisher,
    trend_sum,
    trend_table,
    trend_weighted,
)
from unpooled.maths.ranks.mann_whitney import (
    Alternative,
    RankStatistics,
    TestResult,
    table_test,
)
from unpooled.results.numbers.compare import CenterComparison, CompareResult, PairComparison
from unpooled.results.numbers.table import TableResult
from unpooled.results.provenance.record import joint_members
from unpooled.results.provenance.refusals import (
    BIASED,
    CenterRefusal,
    center_refusals,
    refused_for_values,
)

Pair = tuple[str, str]
KRUSKAL = {"weighted": kruskal_weighted, "sum": kruskal_sum, "fisher": kruskal_fisher}
TREND = {"weighted": trend_weighted, "sum": trend_sum, "fisher": trend_fisher}
RANK_METHODS = (*KRUSKAL, "table")


@dataclass(frozen=True, slots=True)
class UnitRanks:
    """What a center said, or is known of a stratum there: its groups, and its pairs of them."""

    ranks: GroupRankStatistics
    pairs: Mapping[Pair, RankStatistics]


@dataclass(frozen=True, slots=True)
class GroupTests:
    """The tests of one question: of a trend in this direction, or of any difference."""

    ordered: bool
    alternative: Alternative

    def by_center(self, method: str, centers: Sequence[GroupRankStatistics]) -> TestResult:
        if self.ordered:
            return TREND[method](centers, self.alternative)
        return KRUSKAL[method](centers)

    def by_table(self, counts: FloatArray) -> TestResult:
        return trend_table(counts, self.alternative) if self.ordered else kruskal_table(counts)

    def pair(
        self, method: str, ranks: Sequence[RankStatistics], counts: FloatArray | None
    ) -> TestResult | None:
        """By this method; by the table where no center has both groups; None where none can."""
        if method in BY_CENTER and ranks:
            return BY_CENTER[method](ranks, self.alternative)
        if counts is None or not all(counts.sum(axis=1) > 0):
            return None
        return table_test(counts[0], counts[1], self.alternative)


def run_groups(
    conversation: Conversation,
    request: Request,
    ordered: bool,
    alternative: Alternative,
    method: str | Sequence[str],
    shape: tuple[int | None, Limits],
) -> CompareResult:
    """One parallel round for the centers' ranks; the chain only for the table.

    The chain comes first where nothing else is asked for, as for two groups.
    """
    if "parallel" in ((method,) if isinstance(method, str) else method):
        raise InputError(
            "method='parallel' compares two groups, without an order, got "
            f"{', '.join(request.groups or ())}. Hint: name two of them in groups, or use "
            "method='table'"
        )
    methods = select_methods(method, RANK_METHODS)
    if alternative != "two-sided" and not ordered:
        raise InputError(
            f"alternative must be two-sided for {len(request.groups or ())} groups, "
            f"got {alternative!r}. Hint: ordered=True asks whether they rise or fall in their order"
        )
    refusals: list[tuple[str, Refusal]] = []
    table, denied = None, list[CenterRefusal]()
    if methods == ("table",):
        table = run_table(conversation, request, *shape)
    centers = _ask_group_ranks(conversation, request, ordered, refusals)
    _check_groups(conversation, request, centers)
    if "table" in methods and table is None:
        table = run_table_beside(conversation, request, methods, shape, denied)
    elif table is None and not centers:
        hint = "Hint: method='table' needs no center that can compare the groups by itself."
        explain(conversation, request, refusals, hint)
    tests = GroupTests(ordered, alternative)
    units = {Unit(center): ranks for center, ranks in centers.items()}
    result = combine_groups(request, tests, methods, units, table, refusals, conversation.rounds)
    return replace(result, refusals=tuple(dict.fromkeys((*result.refusals, *denied))))


def _ask_group_ranks(
    conversation: Conversation,
    request: Request,
    ordered: bool,
    refusals: list[tuple[str, Refusal]],
) -> dict[str, UnitRanks]:
    round_ = conversation.ask(GroupRanksQuestion(**request.fields, ordered=ordered), GroupRanks)
    refusals += round_.refusals
    centers = {}
    for center, aggregate in round_.aggregates.items():
        try:
            centers[center] = _read(aggregate, request.groups or (), ordered)
        except (KeyError, ValueError):
            refusals.append((center, Refusal(reason=Reason.UNREADABLE_ANSWER)))
    return centers


def _read(aggregate: GroupRanks, groups: Sequence[str], ordered: bool) -> UnitRanks:
    """What a center said, in the order of the groups; raises where it makes no sense."""
    people = {group.group: group.n for group in aggregate.groups}
    places = {group: place for place, group in enumerate(groups)}
    if not people.keys() <= places.keys() or (ordered and aggregate.trend_variance is None):
        raise ValueError("a center must speak of the groups that were asked for")
    pairs: dict[Pair, RankStatistics] = {}
    for pair in aggregate.pairs:
        x, y, u = pair.x, pair.y, pair.u
        if places[x] > places[y]:
            x, y, u = y, x, -u
        statistics = RankStatistics(people[x], people[y], u, pair.variance, pair.effect_variance)
        pairs[x, y] = statistics
    ranks = GroupRankStatistics.of_pairs(
        [people.get(group, 0) for group in groups],
        {(places[x], places[y]): statistics.u for (x, y), statistics in pairs.items()},
        aggregate.rank_variance,
        aggregate.trend_variance,
    )
    return UnitRanks(ranks, pairs)


def _check_groups(
    conversation: Conversation, request: Request, centers: Mapping[str, UnitRanks]
) -> None:
    """Raise where a group is nowhere."""
    ranked = {group for center in centers.values() for pair in center.pairs for group in pair}
    if ranked != set(request.groups or ()):
        take_attendance(conversation, request)


def combine_groups(
    request: Request,
    tests: GroupTests,
    methods: Sequence[str],
    centers: Mapping[Unit, UnitRanks],
    table: TableResult | None,
    refusals: Sequence[tuple[str, Refusal]],
    rounds: int,
    strata: tuple[str, ...] = (),
) -> CompareResult:
    """Several groups, from what centers told."""
    groups = request.groups or ()
    ranks = [center.ranks for center in centers.values()]
    biased = bool(ranks) and refused_for_values(center_refusals(refusals))
    results = [tests.by_center(m, ranks) for m in methods if m in KRUSKAL and ranks]
    if biased:
        results = [replace(test, note=test.note or BIASED) for test in results]
    if table is not None and np.count_nonzero(table.counts.sum(axis=1)) > 1:
        all_alike = table.alike(table.groups)
        test = tests.by_table(all_alike.counts)
        results.append(replace(test, note=test.note or table_note(table, all_alike.decided)))
    if not results:
        refuse(refusals)
    every_refusal = center_refusals(refusals)
    if table is not None:
        every_refusal = tuple(dict.fromkeys((*every_refusal, *table.refusals)))
    result = CompareResult(
        variable=request.variable,
        by=request.by or "",
        where=request.where,
        groups=groups,
        ordered=tests.ordered,
        alternative=tests.alternative,
        methods=tuple(results),
        pairs=(),
        centers=tuple(
            CenterComparison(
                unit.center,
                groups,
                ranks_here.pairs,
                ranks_here.ranks,
                tests.by_center("weighted", [ranks_here.ranks]),
                unit.stratum,
            )
            for unit, ranks_here in centers.items()
        ),
        linked=_linked(groups, ranks),
        refusals=every_refusal,
        table=table,
        rounds=rounds,
        biased=tuple(KRUSKAL) if biased else (),
        strata=strata,
    )
    return replace(result, pairs=_pairs(tests, result))


def _linked(
    groups: tuple[str, ...], ranks: Sequence[GroupRankStatistics]
) -> tuple[tuple[str, ...], ...]:
    """Which groups are compared within centers; all of them where everybody is tied."""
    if not any(center.rank_variance for center in ranks):
        return (groups,)
    return tuple(tuple(groups[place] for place in block) for block in linked_groups(ranks))


def _pairs(tests: GroupTests, result: CompareResult) -> tuple[PairComparison, ...]:
    """Every two groups, by the method of the result's own test, with Holm's adjustment."""
    pairs = [_pair_comparison(tests, result, x, y) for x, y in combinations(result.groups, 2)]
    tested = [pair for pair in pairs if pair.test is not None]
    adjusted = holm([pair.test.log_p for pair in tested if pair.test is not None])
    by_groups = {pair.groups: float(p) for pair, p in zip(tested, adjusted, strict=True)}
    return tuple(replace(pair, log_holm=by_groups.get(pair.groups)) for pair in pairs)


def _pair_comparison(tests: GroupTests, result: CompareResult, x: str, y: str) -> PairComparison:
    ranks = [center.pairs[x, y] for center in result.centers if (x, y) in center.pairs]
    counts = None if result.table is None else result.table.alike((x, y)).counts
    alone = [
        center.pairs[x, y]
        for center in result.centers
        if (x, y) in center.pairs and not joint_members(center.center)
    ]
    return PairComparison(
        groups=(x, y),
        ranks=tuple(ranks),
        test=tests.pair(result.test.method, ranks, counts),
        log_holm=None,
        effect=overall_effect(ranks) if ranks else None,
        heterogeneity=heterogeneity(alone) if alone else None,
    )


def run_comparison(
    conversation: Conversation,
    request: Request,
    ordered: bool,
    alternative: Alternative,
    method: str | Sequence[str],
    shape: tuple[int | None, Limits],
    declared: Variable,
) -> CompareResult:
    """Two groups by Mann-Whitney; more, or ordered ones, by tests of several groups."""
    _check_ordered(ordered, request)
    request = name_groups(conversation, request)
    if ordered or len(request.groups or ()) > 2:
        return run_groups(conversation, request, ordered, alternative, method, shape)
    return run_compare(conversation, request, alternative, method, shape, declared)


def _check_ordered(ordered: bool, request: Request) -> None:
    if ordered and request.groups is None and request.cuts is None:
        raise InputError(
            "ordered needs groups, from the lowest to the highest. "
            "Hint: groups=('none', 'low', 'high'), ordered=True"
        )
