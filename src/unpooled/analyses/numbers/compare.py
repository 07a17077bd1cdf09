"""Compare two groups, or more: the federated rank tests, the effect and its heterogeneity.

Two groups are compared by Mann-Whitney tests; more by Kruskal and Wallis's and then every pair;
ordered ones by Jonckheere and Terpstra's.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from typing import NamedTuple, TypedDict

import numpy as np

from unpooled.analyses.conversation import Conversation
from unpooled.analyses.numbers.parallel import Tables, ask_tables, combine_distribution
from unpooled.analyses.numbers.table import (
    PLAINLY,
    lacking_note,
    run_table,
    run_table_beside,
    table_note,
)
from unpooled.analyses.request import (
    Request,
    ask_groups,
    explain,
    refuse,
    refuse_told,
    take_attendance,
)
from unpooled.analyses.specification import select_methods
from unpooled.center.data.variables import Variable
from unpooled.center.questions import (
    GroupRanks,
    GroupRanksQuestion,
    Limits,
    Ranks,
    RanksQuestion,
    Reason,
    Refusal,
)
from unpooled.errors import InputError, RefusedError
from unpooled.maths.arrays import FloatArray
from unpooled.maths.density.placing import Placed, place
from unpooled.maths.lattice.lattice import nearest_multiples
from unpooled.maths.multiplicity import holm
from unpooled.maths.ranks.cross_center import cross_center, hodges_lehmann
from unpooled.maths.ranks.effect import Interval, center_effect, heterogeneity, overall_effect
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
from unpooled.maths.ranks.heterogeneity import random_effect
from unpooled.maths.ranks.mann_whitney import (
    Alternative,
    RankStatistics,
    TestResult,
    fisher_test,
    sum_test,
    table_test,
    weighted_test,
)
from unpooled.maths.ranks.shift import shift
from unpooled.maths.ranks.simpson import CenterPairs, contradicts, odd_centers, table_effect, turned
from unpooled.maths.tables.test_counts import Alike, alike_by_center
from unpooled.results.numbers.compare import (
    CenterComparison,
    CompareResult,
    PairComparison,
    Paradox,
    PooledComparison,
)
from unpooled.results.numbers.distribution import DistributionResult
from unpooled.results.numbers.table import TableResult
from unpooled.results.provenance.record import joint_members
from unpooled.results.provenance.refusals import (
    BIASED,
    NOBODY,
    CenterRefusal,
    center_refusals,
    refused_for_values,
    why_nothing,
)


class CompareOptions(TypedDict, total=False):
    """What a comparison takes, of centers or of a book, of one variable or several."""

    groups: Sequence[object] | None
    ordered: bool
    alternative: Alternative
    method: str | Sequence[str]


def find_paradox(
    ranks: Sequence[RankStatistics],
    pooled: Interval,
    method: str,
    centers: Sequence[str],
    pairs: Callable[[], CenterPairs],
) -> Paradox | None:
    """None where both agree, or one of them is not there; `pairs` are of these centers."""
    if not ranks:
        return None
    within = overall_effect(ranks)
    if not contradicts(within, pooled):
        return None
    between = pairs()
    odd = odd_centers(between, within)
    names = tuple(centers[i] for i in odd)
    return Paradox(within, pooled, method, names, between.effect(odd) if odd else None)


def find_table_paradox(
    ranks: Sequence[RankStatistics],
    table: TableResult,
    counts: Alike,
    groups: tuple[str, str],
) -> Paradox | None:
    """The same by the counts of the chain's table.

    Where these leave much open they draw every effect towards ½: then only the opposite one counts.
    """
    pooled = table_effect(counts.counts)
    if ranks and counts.decided < PLAINLY and not turned(overall_effect(ranks), pooled):
        return None

    def pairs() -> CenterPairs:
        people = alike_by_center(table.pools, table.table, groups)
        return CenterPairs.of_counts(people[:, 0], people[:, 1])

    return find_paradox(ranks, pooled, "table", list(table.people), pairs)


_MOST_HIDDEN = 0.05  # share of a group that may be anywhere in a wide cell
_MOST_UNPLACED = 0.25  # and anywhere beyond an edge: of scores from 1 to 5 it is a half or more


class PooledRound:
    """One round for the tables of both groups, and what follows from it with the centers' ranks."""

    def __init__(
        self,
        conversation: Conversation,
        request: Request,
        alternative: Alternative,
        declared: Variable,
    ) -> None:
        self._conversation, self._request = conversation, request
        self._alternative, self._declared = alternative, declared
        self._tables: Tables | RefusedError | None = None

    def ask(self) -> None:
        """Ask for the tables; that nobody answers is said when they are combined."""
        try:
            self._tables = ask_tables(self._conversation, self._request, self._declared)
        except RefusedError as refused:
            self._tables = refused

    def combine(self, ranks: Mapping[str, RankStatistics]) -> PooledComparison:
        """The comparison; raises where one of the groups has no table."""
        if self._tables is None:
            self.ask()
        if isinstance(self._tables, RefusedError):
            raise self._tables
        assert self._tables is not None
        groups = self._request.groups or ("", "")
        if not all(map(self._tables.of, groups)):
            explain(self._conversation, self._request, self._tables.refusals)
        return combine_pooled(self._request, self._tables, ranks, self._alternative)


def combine_pooled(
    request: Request,
    tables: Tables,
    ranks: Mapping[str, RankStatistics],
    alternative: Alternative,
) -> PooledComparison:
    """Everybody of two groups, placed by all tables; within a center by its own ranks."""
    smooth = combine_distribution(request, tables)
    x, y = request.groups or ("", "")
    centers = list(dict.fromkeys((*tables.groups[x], *tables.groups[y])))
    by_ranks = [_own(ranks.get(center), tables, center, (x, y)) for center in centers]
    ranked = {
        center
        for center, ranked_pair in zip(centers, by_ranks, strict=True)
        if ranked_pair is not None
    }
    _refuse_hidden(tables, (x, y), ranked)
    placed = [_placed(tables, group, centers) for group in (x, y)]
    together = cross_center(placed[0], placed[1], by_ranks)
    differ = together.statistics.variance > 0  # not everybody has the same value
    test = together.test(alternative)
    effect = center_effect(together.statistics)
    parts = partial(_pairs, placed, by_ranks)
    return PooledComparison(
        paradox=find_paradox(list(ranks.values()), effect, "parallel", centers, parts),
        test=replace(test, note=test.note or _note(smooth)),
        effect=effect,
        shift=_pooled_shift(placed, together.statistics.u, tables.lattice.resolution)
        if differ
        else None,
        distribution=smooth,
    )


def _pairs(placed: Sequence[Placed], by_ranks: Sequence[RankStatistics | None]) -> CenterPairs:
    """Each center's x against each one's y; within a center as it says itself."""
    pairs = CenterPairs.of_placed(*(group.by_center(len(by_ranks)) for group in placed))
    for i, center in enumerate(by_ranks):
        if center is not None:
            pairs.u[i, i] = center.u
    return pairs


def _note(smooth: DistributionResult) -> str | None:
    """What to know about the test."""
    biased = BIASED if refused_for_values(smooth.refusals) else None
    lacking = lacking_note(smooth.people, smooth.groups)
    return "; ".join(filter(None, (smooth.rests_on(), biased, lacking))) or None


def _refuse_hidden(tables: Tables, groups: tuple[str, str], ranked: Set[str]) -> None:
    """Raise where tables do not say where many people of a group are.

    Whether few values are released depends on the values: what is withheld would look like an
    effect. At centers whose ranks are exact, these say what outer cells do not.
    """
    for group in groups:
        people = sum(table.people for table in tables.of(group))
        unplaced = {c: n for c, n in tables.unplaced[group].items() if c not in ranked}
        for lost, most in ((tables.hidden[group], _MOST_HIDDEN), (unplaced, _MOST_UNPLACED)):
            if sum(lost.values()) > most * people:
                reason = Refusal(reason=Reason.HIDDEN_PEOPLE, name=group)
                refuse((center, reason) for center, people in lost.items() if people)


def _placed(tables: Tables, group: str, centers: Sequence[str]) -> Placed:
    """A group's pseudo-people, each with the number of its center."""
    people = place(tables.of(group), tables.lattice)
    number = {center: i for i, center in enumerate(centers)}
    numbers = [
        number[center]
        for center, tables_there in tables.groups[group].items()
        for _ in tables_there
    ]
    people = replace(people, centers=np.array(numbers, dtype=np.int64)[people.centers])
    resolution = tables.lattice.resolution
    return people if resolution is None else people.on_grid(resolution)


def _pooled_shift(placed: Sequence[Placed], u: float, resolution: float | None) -> Interval:
    """Hodges and Lehmann's; of rounded data with no more digits than their differences have."""
    estimated = hodges_lehmann(placed[0], placed[1], u=u)
    if resolution is None:
        return estimated
    ends = np.array([estimated.estimate, estimated.low, estimated.high])
    return Interval(*nearest_multiples(ends, resolution / 2).tolist())


def _own(
    ranks: RankStatistics | None, tables: Tables, center: str, groups: tuple[str, str]
) -> RankStatistics | None:
    """A center's own comparison, where it is of the very people that its tables tell of."""
    people = [sum(t.people for t in tables.groups[g].get(center, ())) for g in groups]
    return ranks if ranks is not None and people == [ranks.n_x, ranks.n_y] else None


BY_CENTER = {"weighted": weighted_test, "sum": sum_test, "fisher": fisher_test}
METHODS = (*BY_CENTER, "table", "parallel")


class Unit(NamedTuple):
    """Whose people are compared with each other alone: a center's, or those of a stratum there."""

    center: str
    stratum: str | None = None


@dataclass(slots=True)
class Comparing:
    """What the centers said, and what they refused."""

    centers: Mapping[Unit, RankStatistics]
    refusals: list[tuple[str, Refusal]]
    pooled: PooledComparison | None = None
    table: TableResult | None = None
    denied: list[CenterRefusal] = field(default_factory=list)
    rounds: int = 1
    strata: tuple[str, ...] = ()

    def every_refusal(self) -> tuple[CenterRefusal, ...]:
        smooth = None if self.pooled is None else self.pooled.distribution
        more = [r for part in (self.table, smooth) if part is not None for r in part.refusals]
        return tuple(dict.fromkeys((*center_refusals(self.refusals), *self.denied, *more)))


def run_compare(
    conversation: Conversation,
    request: Request,
    alternative: Alternative,
    method: str | Sequence[str],
    shape: tuple[int | None, Limits],
    declared: Variable,
) -> CompareResult:
    """Two named groups: a round for ranks, one for "parallel", the chain for "table".

    In this order: ranks are what is relied on, and a chain can take the edges of tables on a
    lattice, not the other way. A method that is asked for alone comes first: of few different
    values tables add little to ranks.
    """
    methods = select_methods(method, METHODS)
    refusals: list[tuple[str, Refusal]] = []
    parts = Comparing({}, refusals)
    if methods == ("table",):
        parts.table = run_table(conversation, request, *shape)
    pool = PooledRound(conversation, request, alternative, declared)
    if methods == ("parallel",):
        pool.ask()
        parts.centers = _ask_ranks(conversation, request, [])  # centers can do without
    else:
        parts.centers = _ask_ranks(conversation, request, refusals)
    if "parallel" in methods:
        try:
            parts.pooled = pool.combine(
                {unit.center: statistics for unit, statistics in parts.centers.items()}
            )
        except RefusedError as refused:
            if len(methods) == 1:
                raise
            parts.denied += refused.refusals
    if "table" in methods and parts.table is None:
        parts.table = run_table_beside(conversation, request, methods, shape, parts.denied)
    if not (parts.centers or parts.pooled or "table" in methods):
        hint = "Hint: method='table' needs no center that can compare the groups by itself."
        explain(conversation, request, refusals, hint)
    parts.rounds = conversation.rounds
    return combine_comparison(request, alternative, methods, parts)


def name_groups(conversation: Conversation, request: Request) -> Request:
    """The request with its groups named, at least two."""
    named, _ = ask_groups(conversation, request)
    groups = named.groups or ()
    if len(groups) == 1:
        only = f"compare needs two groups of {request.by!r}, got only {groups[0]!r}"
        if request.groups is not None:
            raise InputError(only)
        if conversation.refusals:  # others may be there
            refuse(conversation.refusals, only)
        raise InputError(f"{only}: no other has enough people at any center")
    return named


def _ask_ranks(
    conversation: Conversation, request: Request, refusals: list[tuple[str, Refusal]]
) -> dict[Unit, RankStatistics]:
    round_ = conversation.ask(RanksQuestion(**request.fields), Ranks)
    refusals += round_.refusals
    centers = {}
    for center, aggregate in round_.aggregates.items():
        try:
            centers[Unit(center)] = RankStatistics(
                aggregate.n_x,
                aggregate.n_y,
                aggregate.u,
                aggregate.variance,
                aggregate.effect_variance,
            )
        except ValueError:
            refusals.append((center, Refusal(reason=Reason.UNREADABLE_ANSWER)))
    return centers


def combine_comparison(
    request: Request, alternative: Alternative, methods: Sequence[str], parts: Comparing
) -> CompareResult:
    """Two named groups, from what centers released."""
    ranks, table, pooled = list(parts.centers.values()), parts.table, parts.pooled
    alone = [some for unit, some in parts.centers.items() if not joint_members(unit.center)]
    x, y = request.groups or ("", "")
    biased = _biased(parts)
    tests = [BY_CENTER[m](ranks, alternative) for m in methods if m in BY_CENTER and ranks]
    if "weighted" in biased:
        tests = [replace(test, note=test.note or BIASED) for test in tests]
    moved, paradox = None, None
    if table is not None and "table" in methods:
        counts = table.alike((x, y))
        if counts.counts.sum(axis=1).all():
            test = table_test(counts.counts[0], counts.counts[1], alternative)
            tests.append(replace(test, note=test.note or table_note(table, counts.decided)))
            paradox = find_table_paradox(ranks, table, counts, (x, y))
            if counts.keeps_shifts:
                moved = _shift(table.edges, counts.counts[0], counts.counts[1])
    if pooled is not None:
        tests.append(pooled.test)
        moved, paradox = pooled.shift, pooled.paradox
    if not tests:
        refuse_told(parts.every_refusal())
    pair = PairComparison(
        groups=(x, y),
        ranks=tuple(ranks),
        test=None,
        log_holm=None,
        effect=_effect(ranks, methods, pooled),
        heterogeneity=heterogeneity(alone) if alone else None,
    )
    result = CompareResult(
        variable=request.variable,
        by=request.by or "",
        where=request.where,
        groups=(x, y),
        ordered=False,
        alternative=alternative,
        methods=tuple(tests),
        pairs=(pair,),
        centers=tuple(
            CenterComparison(unit.center, (x, y), {(x, y): statistics}, stratum=unit.stratum)
            for unit, statistics in parts.centers.items()
        ),
        refusals=parts.every_refusal(),
        table=table,
        rounds=parts.rounds,
        linked=((x, y),),
        biased=biased,
        unanswered=_unanswered(methods, tests, parts),
        shift=moved,
        random=random_effect(ranks) if ranks else None,
        pooled=pooled,
        paradox=paradox,
        strata=parts.strata,
    )
    tested = replace(pair, test=result.test, log_holm=result.test.log_p)
    return replace(result, pairs=(tested,))


def _unanswered(
    methods: Sequence[str], tests: Sequence[TestResult], parts: Comparing
) -> dict[str, str]:
    """The methods that were asked for and have no test, and why."""
    answered = {test.method for test in tests}
    return {
        method: why_nothing(parts.denied) if method == "parallel" else NOBODY
        for method in methods
        if method not in answered
    }


def _biased(parts: Comparing) -> tuple[str, ...]:
    """The methods that rest on centers of which the outcome decided which they are."""
    within = bool(parts.centers) and refused_for_values(center_refusals(parts.refusals))
    centers = list(BY_CENTER) if within else []
    if parts.pooled is not None and refused_for_values(parts.pooled.distribution.refusals):
        centers.append("parallel")
    return tuple(centers)


def _effect(
    ranks: Sequence[RankStatistics], methods: Sequence[str], pooled: PooledComparison | None
) -> Interval | None:
    """Within centers; of everybody where only that was asked for, or can be answered."""
    if pooled is not None and (not ranks or tuple(methods) == ("parallel",)):
        return pooled.effect
    return overall_effect(ranks) if ranks else None


def _shift(edges: FloatArray, x: FloatArray, y: FloatArray) -> Interval | None:
    """None where the table is too coarse to tell."""
    try:
        return shift(edges, x, y)
    except ValueError:
        return None


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
    """Several groups, from what centers released."""
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
    return replace(result, pairs=_every_pair(tests, result))


def _linked(
    groups: tuple[str, ...], ranks: Sequence[GroupRankStatistics]
) -> tuple[tuple[str, ...], ...]:
    """Which groups are compared within centers; all of them where everybody is tied."""
    if not any(center.rank_variance for center in ranks):
        return (groups,)
    return tuple(tuple(groups[place] for place in block) for block in linked_groups(ranks))


def _every_pair(tests: GroupTests, result: CompareResult) -> tuple[PairComparison, ...]:
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
