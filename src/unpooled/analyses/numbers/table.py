"""The federated table: each center's people in bins, added up center by center (the chain)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from unpooled.analyses.conversation import Conversation
from unpooled.analyses.request import Attendance, Request, refuse, take_attendance
from unpooled.center.questions import (
    CenterJoin,
    CenterTable,
    JoinQuestion,
    Limits,
    Reason,
    Refusal,
    TableQuestion,
)
from unpooled.errors import MessageError, RefusedError
from unpooled.maths.arrays import IntArray
from unpooled.maths.tables.chain import Chain, Pools
from unpooled.maths.tables.table import Table
from unpooled.results.numbers.table import TableResult
from unpooled.results.provenance.refusals import CenterRefusal, center_refusals

PLAINLY = 0.9  # of the ranks' variance: a table that tells less makes effects look smaller


def run_table_beside(
    conversation: Conversation,
    request: Request,
    methods: Sequence[str],
    shape: tuple[int | None, Limits],
    denied: list[CenterRefusal],
) -> TableResult | None:
    """The table for one of several methods; None where it is refused and others are left."""
    try:
        return run_table(conversation, request, *shape)
    except RefusedError as refused:
        if len(methods) == 1:
            raise
        denied += refused.refusals
        return None


def lacking_note(people: Mapping[str, Mapping[str, int]], groups: Sequence[str]) -> str | None:
    """A group that only some centers have differs from the others as these centers do."""
    lacking = sum(
        not all(groups_here.get(group) for group in groups) for groups_here in people.values()
    )
    if not lacking:
        return None
    return f"{lacking} of {len(people)} centers lack a group: their differences count as well"


def table_note(table: TableResult, share: float) -> str | None:
    """What to know about a test of the table; `share` is that of the ranks' variance."""
    lacking = lacking_note(table.people, table.groups)
    if lacking or share >= PLAINLY:
        return lacking
    return (
        f"groups are small, with {1 - share:.0%} of the ranking unknown: the test is conservative"
    )


def run_table(
    conversation: Conversation, request: Request, max_bins: int | None, limits: Limits
) -> TableResult:
    """Begin with the largest center, then let the others join one by one."""
    attendance = take_attendance(conversation, request)
    chain = _Chain(conversation, attendance, max_bins, limits)
    for center in attendance.centers:
        chain.add(center)
    refusals = (*attendance.refusals, *chain.refusals)
    table = chain.grown.table
    if table is None:
        refuse(refusals)
    return TableResult(
        variable=request.variable,
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
        conversation: Conversation,
        attendance: Attendance,
        max_bins: int | None,
        limits: Limits,
    ) -> None:
        self._conversation = conversation
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
        round_ = self._conversation.ask(question, CenterTable, [center])
        self.refusals += round_.refusals
        if center not in round_.aggregates:
            return
        aggregate = round_.aggregates[center]
        counts = {group.group: _integers(group.counts) for group in aggregate.groups}
        self._check_groups(counts)
        lower, upper = _outer(aggregate)
        self.grown.begin(np.array([lower, *aggregate.edges, upper]), counts)
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
        round_ = self._conversation.ask(question, CenterJoin, [center])
        self.refusals += round_.refusals
        if center not in round_.aggregates:
            return
        aggregate = round_.aggregates[center]
        pools = {g.group: Pools(_integers(g.spans), _integers(g.counts)) for g in aggregate.groups}
        self._check_groups(pools)
        self.grown.join(np.array(aggregate.splits, dtype=np.float64), pools, _outer(aggregate))
        self.people[center] = {group: int(p.counts.sum()) for group, p in pools.items()}

    def _check_groups(self, answered: Mapping[str, object]) -> None:
        if not set(answered) <= set(self._groups):
            raise MessageError("the center answered for groups that were not asked for")


def _outer(aggregate: CenterTable | CenterJoin) -> tuple[float, float]:
    """The outer limits; infinite where they are open."""
    return (
        -np.inf if aggregate.lower is None else aggregate.lower,
        np.inf if aggregate.upper is None else aggregate.upper,
    )


def _integers(values: tuple[int, ...]) -> IntArray:
    return np.array(values, dtype=np.int64)
