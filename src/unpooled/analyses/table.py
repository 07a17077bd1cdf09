"""The federated table: each center's people in bins, added up center by center (the chain)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from unpooled.analyses.asking import Attendance, Request, refuse, take_attendance
from unpooled.analyses.parts import Parts, fixed_edges
from unpooled.center.cohort import RefusedQuestion, Selection
from unpooled.coordinator import Coordinator
from unpooled.errors import InputError, MessageError, RefusedError
from unpooled.maths.arrays import FloatArray, IntArray
from unpooled.maths.binning import Rule, Weight, buffer, coarsen, cut, place_boundaries
from unpooled.maths.chain import Chain
from unpooled.maths.joining import Join, Pools, join
from unpooled.maths.rejoining import join_again
from unpooled.maths.table import Table
from unpooled.questions import (
    CenterJoin,
    CenterTable,
    GroupCounts,
    GroupPools,
    JoinQuestion,
    Limits,
    Reason,
    Refusal,
    TableQuestion,
)
from unpooled.results.refusals import CenterRefusal, center_refusals
from unpooled.results.table import TableResult

PLAINLY = 0.9  # of the ranks' variance: a table that tells less makes effects look smaller

# --- at a center -------------------------------------------------------------------------------


def summarise_table(
    question: TableQuestion, selection: Selection, weight: Weight, parts: Parts, coarser: int
) -> CenterTable:
    """The center's own table; where edges are fixed already, at those."""
    values = selection.values()
    rule = _rule(selection, values, question.room, coarser)
    if all(part.edges is None for own in parts.values() for part in own):
        cuts = cut(values, rule)
        edges = place_boundaries(cuts.below, cuts.above, weight)
    else:
        edges = _told_edges(values, parts, rule)
    told = [v.searchsorted(edges, "right") for v in values]
    counts = [np.diff(t, prepend=0, append=len(v)) for t, v in zip(told, values, strict=True)]
    lower, upper = _outer_limits(question.limits, selection, values, edges)
    return CenterTable(
        lower=lower,
        edges=tuple(edges.tolist()),
        upper=upper,
        groups=tuple(
            GroupCounts(group=group, counts=tuple(people.tolist()))
            for group, people in zip(selection.groups, counts, strict=True)
        ),
    )


def _told_edges(values: Sequence[FloatArray], parts: Parts, rule: Rule) -> FloatArray:
    """The edges that all groups may be told at; also people who get their first table there."""
    fixed = [fixed_edges(own) for own in parts.values()]
    common = reduce(np.intersect1d, [edges for edges in fixed if edges is not None])
    new = [p.values for own in parts.values() if len(own) > 1 for p in own if p.edges is None]
    if not len(common):
        raise RefusedQuestion(Reason.WOULD_DIFFER, limit=rule.k)
    return coarsen([*values, *new], common, rule)


def summarise_join(
    question: JoinQuestion, selection: Selection, weight: Weight, parts: Parts, coarser: int
) -> CenterJoin:
    """What the center adds to the table so far; where edges are fixed already, at those."""
    values = selection.values()
    interior = np.array(question.edges, dtype=np.float64)
    if not np.all(np.isfinite(interior)) or np.any(np.diff(interior) <= 0):
        raise RefusedQuestion(Reason.UNREADABLE_QUESTION)
    rule = _rule(selection, values, question.room, coarser)
    fixed = [fixed_edges(own) for own in parts.values()]
    if all(edges is None for edges in fixed):
        joined = join(values, interior, rule, weight)
    else:
        joined = _join_again(question, values, parts, rule, weight)
    edges = np.union1d(interior, joined.splits)
    lower, upper = _outer_limits(question.limits, selection, values, edges)
    return CenterJoin(
        lower=_wider(lower, question.lower, min),
        splits=tuple(joined.splits.tolist()),
        upper=_wider(upper, question.upper, max),
        groups=tuple(
            GroupPools(
                group=group, spans=tuple(pools.spans.tolist()), counts=tuple(pools.counts.tolist())
            )
            for group, pools in zip(selection.groups, joined.pools, strict=True)
        ),
    )


def _join_again(
    question: JoinQuestion, values: list[FloatArray], parts: Parts, rule: Rule, weight: Weight
) -> Join:
    interior, fixed = np.array(question.edges), [fixed_edges(own) for own in parts.values()]
    if any(len(own) > 1 and any(part.edges is None for part in own) for own in parts.values()):
        raise RefusedQuestion(Reason.WOULD_DIFFER, limit=rule.k)
    joined = join_again(values, interior, fixed, rule, weight, question.room)
    told = np.union1d(interior, joined.splits)
    if not all(edges is None or np.isin(edges, told).any() for edges in fixed):
        raise RefusedQuestion(Reason.WOULD_DIFFER, limit=rule.k)
    return joined


def _rule(selection: Selection, values: list[FloatArray], room: int | None, coarser: int) -> Rule:
    """The rule that makes (or adds) at most `room` bins: each holds n / room people.

    `coarser` bins have so many times more people at least.
    """
    people = sum(map(len, values))
    least = 1 if room is None else -(-people // room) if room > 0 else people + 1
    if coarser > 1:
        least = max(least, coarser * selection.rule.k)
    return replace(selection.rule, bin=least)


def _outer_limits(
    asked: Limits, selection: Selection, values: list[FloatArray], edges: FloatArray
) -> tuple[float | None, float | None]:
    match asked:
        case "open":
            return None, None
        case "natural":
            declared = selection.cohort.declared
            if declared.lower is None and declared.upper is None:
                raise RefusedQuestion(Reason.NO_LIMITS)
            return declared.lower, declared.upper
        case "buffer":
            together = np.sort(np.concatenate(values))
            k = selection.rule.k
            first = max(int(np.searchsorted(together, edges[:1], "right").sum()), k)
            last = min(int(np.searchsorted(together, edges[-1:], "right").sum()), len(together) - k)
            return (
                float(together[0]) - buffer(together[:first]),
                float(together[-1]) + buffer(together[last:]),
            )


def _wider(own: float | None, so_far: float | None, pick: Any) -> float | None:
    """An outer limit that holds both; open where either is."""
    return None if own is None or so_far is None else float(pick(own, so_far))


# --- at the coordinator ------------------------------------------------------------------------


def run_table_beside(
    coordinator: Coordinator,
    request: Request,
    methods: Sequence[str],
    shape: tuple[int | None, Limits],
    denied: list[CenterRefusal],
) -> TableResult | None:
    """The table for one of several methods; None where it is refused and others are left."""
    try:
        return run_table(coordinator, request, *shape)
    except RefusedError as refused:
        if len(methods) == 1:
            raise
        denied += refused.refusals
        return None


def lacking_note(people: Mapping[str, Mapping[str, int]], groups: Sequence[str]) -> str | None:
    """A group that only some centers have differs from the others as these centers do."""
    lacking = sum(not all(own.get(group) for group in groups) for own in people.values())
    if not lacking:
        return None
    return f"{lacking} of {len(people)} centers lack a group: their differences count as well"


def table_note(table: TableResult, told: float) -> str | None:
    """What to know about a test of the table; `told` is the share of the ranks' variance."""
    lacking = lacking_note(table.people, table.groups)
    if lacking or told >= PLAINLY:
        return lacking
    return f"small groups leave {1 - told:.0%} of the ranks open: it rejects too seldom"


def run_table(
    coordinator: Coordinator, request: Request, max_bins: int | None, limits: Limits
) -> TableResult:
    """Begin with the largest center, then let the others join one by one."""
    if max_bins is not None and (not isinstance(max_bins, int) or max_bins < 1):
        raise InputError(f"max_bins must be a whole number of at least 1, got {max_bins!r}")
    attendance = take_attendance(coordinator, request)
    chain = _Chain(coordinator, attendance, max_bins, limits)
    for center in attendance.centers:
        chain.add(center)
    refusals = (*attendance.refusals, *chain.refusals)
    table = chain.grown.table
    if table is None:
        refuse(refusals)
    return TableResult(
        value=request.variable,
        by=request.by,
        where=request.where,
        table=table,
        people=chain.people,
        pools=tuple(chain.grown.pools),
        refusals=center_refusals(refusals),
        rounds=1 + len(attendance.centers),
    )


class _Chain:
    """The centers' answers, one after the other."""

    def __init__(
        self,
        coordinator: Coordinator,
        attendance: Attendance,
        max_bins: int | None,
        limits: Limits,
    ) -> None:
        self._coordinator = coordinator
        self._max_bins = max_bins
        self._asked: dict[str, Any] = {**attendance.request.fields, "limits": limits}
        self._groups = attendance.groups
        self.grown = Chain(attendance.groups)
        self.people: dict[str, dict[str, int]] = {}
        self.refusals: list[tuple[str, Refusal]] = []

    def add(self, center: str) -> None:
        """Add one center's people; a center that refuses or answers nonsense adds nobody."""
        try:
            if self.grown.table is None:
                self._begin(center)
            else:
                self._join(center, self.grown.table)
        except (ValueError, MessageError):
            self.refusals.append((center, Refusal(reason=Reason.UNREADABLE_ANSWER)))

    def _begin(self, center: str) -> None:
        question = TableQuestion(**self._asked, room=self._max_bins)
        round_ = self._coordinator.ask(question, CenterTable, [center])
        self.refusals += round_.refusals
        if center not in round_.aggregates:
            return
        said = round_.aggregates[center]
        counts = {group.group: _integers(group.counts) for group in said.groups}
        self._check_groups(counts)
        lower, upper = _outer(said)
        self.grown.begin(np.array([lower, *said.edges, upper]), counts)
        self.people[center] = {group: int(people.sum()) for group, people in counts.items()}

    def _join(self, center: str, table: Table) -> None:
        lower, *interior, upper = table.edges.tolist()
        question = JoinQuestion(
            **self._asked,
            room=None if self._max_bins is None else self._max_bins - table.bins,
            edges=tuple(interior),
            lower=None if np.isinf(lower) else lower,
            upper=None if np.isinf(upper) else upper,
        )
        round_ = self._coordinator.ask(question, CenterJoin, [center])
        self.refusals += round_.refusals
        if center not in round_.aggregates:
            return
        said = round_.aggregates[center]
        pools = {g.group: Pools(_integers(g.spans), _integers(g.counts)) for g in said.groups}
        self._check_groups(pools)
        self.grown.join(np.array(said.splits, dtype=np.float64), pools, _outer(said))
        self.people[center] = {group: int(p.counts.sum()) for group, p in pools.items()}

    def _check_groups(self, answered: Mapping[str, object]) -> None:
        if not set(answered) <= set(self._groups):
            raise MessageError("the center answered for groups that were not asked for")


def _outer(said: CenterTable | CenterJoin) -> tuple[float, float]:
    """The outer limits; infinite where they are open."""
    return (
        -np.inf if said.lower is None else said.lower,
        np.inf if said.upper is None else said.upper,
    )


def _integers(values: tuple[int, ...]) -> IntArray:
    return np.array(values, dtype=np.int64)
