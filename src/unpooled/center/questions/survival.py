"""How long people are followed up until an event: tables of times by status."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from unpooled.center.questions.lattice import CellTable, check_facts
from unpooled.center.questions.message import (
    Aggregate,
    CohortQuestion,
    Disclosure,
    Message,
    OutcomeQuestion,
    People,
    Terms,
    numbers_in,
)
from unpooled.errors import GateError
from unpooled.maths.arrays import BoolArray, Places

EVENT, CENSORED = 1, 2  # statuses


class SurvivalQuestion(OutcomeQuestion, frozen=True, tag="survival", tag_field="ask", kw_only=True):
    """Tables of each group's event times and censoring times, cut at a public horizon."""

    horizon: float

    @property
    def has_meaning(self) -> bool:
        """The horizon is positive and finite."""
        return super().has_meaning and 0 < self.horizon < float("inf")


class GroupStatuses(Message, frozen=True):
    """One group's follow-up: tables of those with the event and of the censored, or of all.

    Where fewer than K people have one of the two statuses, or nobody where that may not leave,
    neither is released: `either` then describes all of them, and `below` says which status it was.
    A table is None where nobody has the status.

    Who is still followed at the horizon is censored there. Where statuses are not released, K such
    people or more are a part of their own, `followed`; `either` and `below` then speak of those who
    left before.
    """

    group: str
    events: CellTable | None
    censored: CellTable | None
    either: CellTable | None
    below: Literal["events", "censored", "both"] | None
    followed: int | None = None

    @property
    def people(self) -> int:
        """How many people it speaks for."""
        return (self.followed or 0) + sum(sum(table.counts) for _, table in self.tables())

    def tables(self) -> tuple[tuple[int, CellTable], ...]:
        """Each table and its status; 0 is either."""
        some = ((EVENT, self.events), (CENSORED, self.censored), (0, self.either))
        return tuple((status, table) for status, table in some if table is not None)


class SurvivalTables(Aggregate, frozen=True, tag="survival", tag_field="say"):
    """Each group's follow-up on one lattice; `scale` and `resolution` as in `LatticeTables`.

    Times begin at 0 and end at the question's horizon, which closes the last cell.
    """

    scale: float
    groups: tuple[GroupStatuses, ...]
    resolution: float | None = None

    def labels(self) -> Sequence[str]:
        """Every group that is named."""
        return [group.group for group in self.groups]

    def tells(self, question: CohortQuestion, people: People) -> Iterable[Disclosure]:
        """Up to three numbers of each group, status and cell."""
        assert isinstance(question, SurvivalQuestion)  # the gate looked
        for group in self.groups:
            yield from by_status(group, question, people)

    def limits(self, question: CohortQuestion, terms: Terms) -> Iterable[float]:
        """Both statuses of a group have K people, or neither is released."""
        assert isinstance(question, SurvivalQuestion)  # the gate looked
        check_facts(self.scale, self.resolution, terms.declared, question.horizon)
        lattice = terms.declared.follow_up_lattice(self.scale, question.horizon, self.resolution)
        for group in self.groups:
            _check_statuses(group, terms.zeros and question.where is None)
            for _, table in group.tables():
                table.check(lattice, terms.moments, terms.k, terms.k)
            terms.check_people(group.people)
            left = group.people - (group.followed or 0)
            if group.below == "both" and left > 2 * (terms.k - 1):
                raise GateError(
                    f"both statuses cannot have fewer than {terms.k} people among {left}"
                )
            if group.followed is not None:
                terms.check_people(group.followed)
        tables = (table for group in self.groups for _, table in group.tables())
        measures = (number for table in tables for number in table.measures())
        return numbers_in(self.scale, self.resolution, measures)

    def sentence(self) -> str:
        """What a steward reads."""
        return ", ".join(map(_sentence, self.groups))


def _sentence(group: GroupStatuses) -> str:
    events, censored, either = (
        0 if table is None else sum(table.counts)
        for table in (group.events, group.censored, group.either)
    )
    if group.below is None:
        return f"{group.group} {events} events, {censored} censored"
    few = {"both": "either status"}.get(group.below, group.below)
    if group.followed is None:
        return f"{group.group} {either} people, fewer than K {few}"
    return (
        f"{group.group} {either} people who left before the horizon, fewer than K {few}, and "
        f"{group.followed} still followed there"
    )


def _check_statuses(group: GroupStatuses, zeros: bool) -> None:
    by_status = [table for table in (group.events, group.censored) if table is not None]
    if group.below is None:
        if group.either is not None or not by_status:
            raise GateError("both statuses must be given, or neither")
        if len(by_status) < 2 and not zeros:
            raise GateError("that nobody has a status must not be said")
    elif by_status or group.either is None:
        raise GateError("where a status has too few people, neither may be given")
    if group.below is None and group.followed is not None:
        raise GateError("where statuses are given, people at the horizon are in their table")


def by_status(group: GroupStatuses, question: SurvivalQuestion, people: People) -> list[Disclosure]:
    """One group by status and cell; who has no status or no time is a part that is not released.

    A cell's mean counts who is followed beyond the horizon with the horizon in place of their time.
    Together with a longer horizon, or the mean time, that would tell by how much they exceed it. So
    the cell is judged as if it released the others' mean, and how many those are.
    """
    members, status = people.members(group.group), people.status()
    times, horizon = people.value(), question.horizon
    counted = members & (status > 0) & ~np.isnan(times)
    events = counted & (status == EVENT) & (times <= horizon)
    at_end = counted & ~events & (times >= horizon)
    part, first = np.zeros(len(members), dtype=np.int32), 0
    counts: list[int | None] = []
    numbers: list[int] = []
    splits = False
    for wanted, table in group.tables():
        seen = {EVENT: events, CENSORED: counted & ~events}.get(wanted, counted)
        if group.followed is not None:
            seen = seen & ~at_end
        cut = np.minimum(times[seen], horizon)
        part[seen] = first + np.searchsorted(np.array(table.edges), cut) + 1
        first += len(table.counts)
        counts += table.counts
        numbers += table.numbers()
        splits |= numbers[-1] > 1 and bool((seen & (times > horizon)).any())
    apart = part
    if group.followed is not None or splits:
        apart = np.where(at_end, first + 1, part).astype(np.int32)
        numbers.append(1)
    if group.followed is not None:
        part = apart
        counts.append(group.followed)
    rest = members & (part == 0)
    disclosures = [_by_part(question, part, counts, numbers[: len(counts)], rest)]
    if splits:
        none: list[int | None] = [None] * len(numbers)
        ones = [1] * len(counts)
        disclosures = [
            _by_part(question, apart, none, numbers, rest),
            _by_part(question, part, counts, ones, rest),
        ]
    edges = sorted({edge for _, table in group.tables() for edge in table.edges})
    return [replace(disclosures[0], edges=tuple(edges)), *disclosures[1:]]


def _by_part(
    question: SurvivalQuestion,
    part: Places,
    counts: Sequence[int | None],
    numbers: Sequence[int],
    rest: BoolArray,
) -> Disclosure:
    if rest.any():
        part = np.where(rest, len(counts) + 1, part).astype(np.int32)
        counts, numbers = [*counts, None], [*numbers, 1]
    each = {question.variable: tuple(numbers), question.event: (1,) * len(numbers)}
    return Disclosure(part, tuple(counts), each)
