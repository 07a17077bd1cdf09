"""Survival: what a center tells of an arm, and how the coordinator asks for it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from unpooled.analyses.asking import Request, check_answered, group_label, in_order, refuse
from unpooled.analyses.lattice_facts import common_facts
from unpooled.analyses.parallel import read_table
from unpooled.coordinator import Conversation, Round
from unpooled.data.variables import Variable
from unpooled.errors import InputError
from unpooled.maths.horizon import agreed_horizon
from unpooled.maths.lattice import Lattice, LatticeTable
from unpooled.maths.moments import MeanSD
from unpooled.maths.pseudo_times import ArmTables
from unpooled.questions import (
    EVERYBODY,
    CellTable,
    FollowUpQuestion,
    GroupStatuses,
    Moments,
    Reason,
    Refusal,
    SurvivalQuestion,
    SurvivalTables,
)


@dataclass(frozen=True, slots=True)
class OutcomeRequest:
    """What the analyst asked for: the people, the event and how far to look."""

    request: Request
    event: str
    event_is: str | None
    horizon: float | None

    @classmethod
    def of(
        cls, request: Request, event: str, event_is: object, horizon: float | None, entry: object
    ) -> "OutcomeRequest":
        """Check the analyst's words before any center is asked."""
        if not isinstance(event, str):
            raise InputError(f"event must be the name of a variable, got {event!r}")
        if event == request.variable:
            raise InputError(f"event must be another variable than time, got {event!r} for both")
        if entry is not None:
            raise InputError(
                f"entry: delayed entry is not possible, got {entry!r}. "
                "Hint: take time from the start of each person's follow-up."
            )
        if isinstance(horizon, bool) or not isinstance(horizon, int | float | None):
            raise InputError(f"horizon must be a number, got {horizon!r}")
        if horizon is not None and not 0 < horizon < math.inf:
            raise InputError(f"horizon must be positive and finite, got {horizon:g}")
        meant = None if event_is is None else group_label(event_is)
        return cls(request, event, meant, None if horizon is None else float(horizon))

    @property
    def fields(self) -> dict[str, Any]:
        """What every question about it says."""
        return {**self.request.fields, "event": self.event, "event_is": self.event_is}


@dataclass(frozen=True, slots=True)
class ToldArms:
    """What the centers told: arm → number of the center → its tables."""

    request: Request
    horizon: float
    agreed: bool  # whether the horizon is that of a coarse round
    lattice: Lattice
    arms: Mapping[str, Mapping[int, ArmTables]]
    centers: tuple[str, ...]
    refusals: tuple[tuple[str, Refusal], ...]
    rounds: int
    added: str | None = None  # the grouping whose arms were added up


def ask_arms(conversation: Conversation, asked: OutcomeRequest, declared: Variable) -> ToldArms:
    """One parallel round; one coarse one before where groups or the horizon are not known."""
    added = _grouping_told(conversation, asked)
    if added is not None:
        asked = replace(asked, request=replace(asked.request, by=added.by, groups=added.groups))
    horizon = _known_horizon(asked, declared, added)
    agreed = horizon is None
    if horizon is None or (asked.request.by is not None and asked.request.groups is None):
        asked, horizon = _agree(conversation, asked, horizon)
    told = conversation.ask(SurvivalQuestion(**asked.fields, horizon=horizon), SurvivalTables)
    refusals = list(told.refusals)
    arms, readable = _arms(conversation.centers, told, declared, horizon, refusals)
    if not arms:
        check_answered(conversation, asked.request, told, [])
    facts = common_facts(readable)
    lattice = _follow_up_lattice(facts.scale, facts.resolution, horizon, declared)
    named = asked.request.groups or (EVERYBODY,)
    return ToldArms(
        asked.request,
        horizon,
        agreed,
        lattice,
        {group: arms[group] for group in named if group in arms},
        conversation.centers,
        tuple(refusals),
        conversation.rounds,
        None if added is None else added.by,
    )


def _known_horizon(
    asked: OutcomeRequest, declared: Variable, added: SurvivalQuestion | None
) -> float | None:
    if asked.horizon is not None:
        return asked.horizon
    return declared.upper if added is None else added.horizon


def _grouping_told(conversation: Conversation, asked: OutcomeRequest) -> SurvivalQuestion | None:
    """An earlier question by groups whose arms together are the people asked for now."""
    if asked.request.by is not None:
        return None
    people = (asked.request.variable, asked.event, asked.event_is, asked.request.where)
    for release in conversation.ever_received:
        question = release.question
        if isinstance(question, SurvivalQuestion) and people == (
            question.variable,
            question.event,
            question.event_is,
            question.where,
        ):
            return None if question.by is None else question
    return None


def _agree(
    conversation: Conversation, asked: OutcomeRequest, horizon: float | None
) -> tuple[OutcomeRequest, float]:
    """The coarse round: which groups are there, and a horizon beyond the bulk of their times."""
    round_ = conversation.ask(FollowUpQuestion(**asked.fields), Moments)
    groups = [group for said in round_.aggregates.values() for group in said.moments]
    found = in_order({group.group for group in groups})
    every_group = partial(_every_group, conversation, asked)
    check_answered(conversation, asked.request, round_, found, every_group)
    if asked.request.by is not None and asked.request.groups is None:
        asked = replace(asked, request=replace(asked.request, groups=tuple(found)))
    if horizon is None:
        told = [
            MeanSD(g.n, g.mean, g.sd) for g in groups if g.mean is not None and g.sd is not None
        ]
        if not told or not any(part.mean > 0 for part in told):
            if any(refusal.reason is Reason.WOULD_ISOLATE for _, refusal in round_.refusals):
                refuse(round_.refusals)
            raise InputError(
                "horizon: no center gave a mean time, since times take few values or earlier "
                "answers stand against it. "
                "Hint: say how long the study followed people, as in horizon=60."
            )
        horizon = agreed_horizon(told)
    return asked, horizon


def _every_group(conversation: Conversation, asked: OutcomeRequest) -> set[str]:
    """All groups, by the question about an outcome: sizes of everybody would be another one."""
    any_group = replace(asked, request=replace(asked.request, groups=None))
    answers = conversation.ask(FollowUpQuestion(**any_group.fields), Moments).aggregates.values()
    return {group.group for said in answers for group in said.moments}


def _follow_up_lattice(
    scale: float, resolution: float | None, horizon: float, declared: Variable
) -> Lattice:
    """With the resolution that centers tell, not the analyst's own."""
    return Variable(atoms=declared.atoms).follow_up_lattice(scale, horizon, resolution)


def _arms(
    centers: Sequence[str],
    told: Round[SurvivalTables],
    declared: Variable,
    horizon: float,
    refusals: list[tuple[str, Refusal]],
) -> tuple[dict[str, dict[int, ArmTables]], list[SurvivalTables]]:
    """The arms by center, and the answers that could be read."""
    arms: dict[str, dict[int, ArmTables]] = {}
    readable = []
    for number, center in enumerate(centers):
        said = told.aggregates.get(center)
        if said is None:
            continue
        try:
            lattice = _follow_up_lattice(said.scale, said.resolution, horizon, declared)
            own = {group.group: _read(group, told.k[center], lattice) for group in said.groups}
        except ValueError:
            refusals.append((center, Refusal(reason=Reason.UNREADABLE_ANSWER)))
            continue
        readable.append(said)
        for group, tables in own.items():
            arms.setdefault(group, {})[number] = tables
    return arms, readable


def _read(said: GroupStatuses, k: int, lattice: Lattice) -> ArmTables:
    def tables(cells: CellTable | None) -> tuple[LatticeTable, ...]:
        return () if cells is None else (read_table(cells, lattice),)

    return ArmTables(k, tables(said.events), tables(said.censored), tables(said.either), said.below)
