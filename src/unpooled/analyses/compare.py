"""Compare two groups: the federated Mann-Whitney tests, the effect and its heterogeneity."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import get_args

from unpooled.analyses.asking import Request, ask_groups, explain, refuse_told
from unpooled.analyses.paradox import find_table_paradox
from unpooled.analyses.parallel_compare import PooledRound
from unpooled.analyses.table import run_table, run_table_beside, table_note
from unpooled.coordinator import Conversation
from unpooled.data.variables import Variable
from unpooled.errors import InputError, RefusedError
from unpooled.maths.arrays import FloatArray
from unpooled.maths.effect import (
    Interval,
    center_effect,
    heterogeneity,
    overall_effect,
)
from unpooled.maths.heterogeneity import random_effect
from unpooled.maths.mann_whitney import (
    Alternative,
    RankStatistics,
    TestResult,
    fisher_test,
    sum_test,
    table_test,
    weighted_test,
)
from unpooled.maths.shift import shift
from unpooled.questions import Limits, Ranks, RanksQuestion, Reason, Refusal
from unpooled.results.compare import CenterComparison, CompareResult
from unpooled.results.pooled import PooledComparison
from unpooled.results.refusals import NOBODY, CenterRefusal, center_refusals, why_nothing
from unpooled.results.selection_bias import BIASED, refused_for_values
from unpooled.results.table import TableResult

BY_CENTER = {"weighted": weighted_test, "sum": sum_test, "fisher": fisher_test}
METHODS = (*BY_CENTER, "table", "parallel")


def check_methods(
    method: str | Sequence[str], known: Sequence[str], only_by_name: Sequence[str] = ()
) -> tuple[str, ...]:
    """The methods asked for, in order; "all" stands for every one but those only by name."""
    if not isinstance(method, Iterable):
        raise InputError(f"method must be one of {', '.join(known)} or all, got {method!r}")
    asked = [method] if isinstance(method, str) else list(method)
    for name in asked:
        if name not in (*known, "all"):
            raise InputError(f"method must be one of {', '.join(known)} or all, got {name!r}")
    if not asked:
        raise InputError(f"method must be one of {', '.join(known)} or all, got none")
    if "all" in asked:
        asked += [name for name in known if name not in only_by_name]
    return tuple(name for name in known if name in asked)


@dataclass(slots=True)
class _Told:
    """What the centers said, and what they refused."""

    centers: Mapping[str, RankStatistics]
    refusals: list[tuple[str, Refusal]]
    pooled: PooledComparison | None = None
    table: TableResult | None = None
    denied: list[CenterRefusal] = field(default_factory=list)
    rounds: int = 1

    def every_refusal(self) -> tuple[CenterRefusal, ...]:
        smooth = None if self.pooled is None else self.pooled.distribution
        more = [r for found in (self.table, smooth) if found is not None for r in found.refusals]
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
    values tables tell little beside ranks.
    """
    methods = check_methods(method, METHODS)
    refusals: list[tuple[str, Refusal]] = []
    told = _Told({}, refusals)
    if methods == ("table",):
        told.table = run_table(conversation, request, *shape)
    pool = PooledRound(conversation, request, alternative, declared)
    if methods == ("parallel",):
        pool.ask()
        told.centers = _ask_ranks(conversation, request, [])  # centers can do without
    else:
        told.centers = _ask_ranks(conversation, request, refusals)
    if "parallel" in methods:
        try:
            told.pooled = pool.combine(told.centers)
        except RefusedError as refused:
            if len(methods) == 1:
                raise
            told.denied += refused.refusals
    if "table" in methods and told.table is None:
        told.table = run_table_beside(conversation, request, methods, shape, told.denied)
    if not (told.centers or told.pooled or "table" in methods):
        hint = "Hint: method='table' needs no center that can compare the groups by itself."
        explain(conversation, request, refusals, hint)
    told.rounds = conversation.rounds
    return _combine(request, alternative, methods, told)


def check_alternative(alternative: Alternative) -> None:
    """Raise where this is no alternative."""
    if alternative not in get_args(Alternative):
        raise InputError(f"alternative must be two-sided, greater or less, got {alternative!r}")


def name_groups(conversation: Conversation, request: Request) -> Request:
    """The request with its groups named, at least two."""
    if request.by is None:
        raise InputError("compare needs by, the variable that says who belongs to which group")
    request, _ = ask_groups(conversation, request)
    groups = request.groups or ()
    if len(groups) == 1:
        raise InputError(f"compare needs two groups of {request.by!r}, got only {groups[0]!r}")
    return request


def _ask_ranks(
    conversation: Conversation, request: Request, refusals: list[tuple[str, Refusal]]
) -> dict[str, RankStatistics]:
    round_ = conversation.ask(RanksQuestion(**request.fields), Ranks)
    refusals += round_.refusals
    centers = {}
    for center, said in round_.aggregates.items():
        try:
            centers[center] = RankStatistics(
                said.n_x, said.n_y, said.u, said.variance, said.effect_variance
            )
        except ValueError:
            refusals.append((center, Refusal(reason=Reason.UNREADABLE_ANSWER)))
    return centers


def _combine(
    request: Request, alternative: Alternative, methods: Sequence[str], told: _Told
) -> CompareResult:
    ranks, table, pooled = list(told.centers.values()), told.table, told.pooled
    x, y = request.groups or ("", "")
    biased = _biased(told)
    tests = [BY_CENTER[m](ranks, alternative) for m in methods if m in BY_CENTER and ranks]
    if "weighted" in biased:
        tests = [replace(test, note=test.note or BIASED) for test in tests]
    moved, paradox = None, None
    if table is not None and "table" in methods:
        found = table.alike((x, y))
        if found.counts.sum(axis=1).all():
            test = table_test(found.counts[0], found.counts[1], alternative)
            tests.append(replace(test, note=test.note or table_note(table, found.told)))
            paradox = find_table_paradox(ranks, table, found, (x, y))
            if found.keeps_shifts:
                moved = _shift(table.edges, found.counts[0], found.counts[1])
    if pooled is not None:
        tests.append(pooled.test)
        moved, paradox = pooled.shift, pooled.paradox
    if not tests:
        refuse_told(told.every_refusal())
    return CompareResult(
        value=request.variable,
        by=request.by or "",
        where=request.where,
        groups=(x, y),
        alternative=alternative,
        methods=tuple(tests),
        unanswered=_unanswered(methods, tests, told),
        effect=_effect(ranks, methods, pooled),
        shift=moved,
        heterogeneity=heterogeneity(ranks) if ranks else None,
        centers=tuple(CenterComparison(c, r, center_effect(r)) for c, r in told.centers.items()),
        refusals=told.every_refusal(),
        table=table,
        rounds=told.rounds,
        random=random_effect(ranks) if ranks else None,
        pooled=pooled,
        paradox=paradox,
        biased=biased,
    )


def _unanswered(methods: Sequence[str], tests: Sequence[TestResult], told: _Told) -> dict[str, str]:
    """The methods that were asked for and have no test, and why."""
    known = {test.method for test in tests}
    return {
        method: why_nothing(told.denied) if method == "parallel" else NOBODY
        for method in methods
        if method not in known
    }


def _biased(told: _Told) -> tuple[str, ...]:
    """The methods that rest on centers of which the outcome decided which they are."""
    within = bool(told.centers) and refused_for_values(center_refusals(told.refusals))
    found = list(BY_CENTER) if within else []
    if told.pooled is not None and refused_for_values(told.pooled.distribution.refusals):
        found.append("parallel")
    return tuple(found)


def _effect(
    ranks: Sequence[RankStatistics], methods: Sequence[str], pooled: PooledComparison | None
) -> Interval | None:
    """Within centers; of everybody where only that was asked for, or can be told."""
    if pooled is not None and (not ranks or tuple(methods) == ("parallel",)):
        return pooled.effect
    return overall_effect(ranks) if ranks else None


def _shift(edges: FloatArray, x: FloatArray, y: FloatArray) -> Interval | None:
    """None where the table is too coarse to tell."""
    try:
        return shift(edges, x, y)
    except ValueError:
        return None
