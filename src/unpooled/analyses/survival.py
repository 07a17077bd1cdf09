"""Survival: what a center tells of an arm, and how the coordinator asks for it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from unpooled.analyses.asking import Request, check_answered, group_label, in_order
from unpooled.analyses.lattice_facts import center_facts, common_facts
from unpooled.analyses.parallel import cell_table, read_table
from unpooled.analyses.parts import TablePart
from unpooled.center.cohort import Selection
from unpooled.center.outcome import Outcome
from unpooled.center.policy import Policy, empty_status_told
from unpooled.coordinator import Coordinator, Round
from unpooled.data.variables import Variable
from unpooled.errors import InputError
from unpooled.maths.arrays import FloatArray
from unpooled.maths.cutting import Draws, status_table
from unpooled.maths.event_shares import Below
from unpooled.maths.horizon import agreed_horizon
from unpooled.maths.lattice import Lattice, LatticeTable
from unpooled.maths.moments import MeanSD
from unpooled.maths.pseudo_times import ArmTables
from unpooled.questions import (
    EVERYBODY,
    CellMoments,
    CellTable,
    FollowUpQuestion,
    GroupStatuses,
    Moments,
    Reason,
    Refusal,
    SurvivalQuestion,
    SurvivalTables,
)

# --- at a center -------------------------------------------------------------------------------


def summarise_survival(
    question: SurvivalQuestion,
    selection: Selection,
    outcome: Outcome,
    policy: Policy,
    draws: Draws,
) -> SurvivalTables:
    """Each group's tables of events and of censorings, or one of all its people."""
    facts = center_facts(selection, question.variable, policy, question.horizon)
    zeros = empty_status_told(question, policy)
    declared = selection.cohort.declared
    lattice = declared.follow_up_lattice(facts.scale, question.horizon, facts.resolution)
    cutter = _Cutter(lattice, selection.ks, draws, policy.moments)
    return SurvivalTables(
        scale=facts.scale,
        groups=tuple(
            _statuses(group, *outcome.times(group, question.horizon), cutter, zeros)
            for group in selection.groups
        ),
        resolution=facts.resolution,
    )


@dataclass(frozen=True, slots=True)
class _Cutter:
    """Cuts sorted times into cells."""

    lattice: Lattice
    ks: tuple[int, int]
    draws: Draws
    moments: CellMoments

    @property
    def k(self) -> int:
        """How many people a cell needs."""
        return max(self.ks)

    def cells(self, times: FloatArray) -> tuple[CellTable, ...]:
        """One table; none where there is nobody."""
        if not len(times):
            return ()
        part = TablePart(times, None)
        draws, told = self.draws, self.moments
        return (cell_table(part, self.lattice, self.ks, draws, told, cut=status_table),)


def _statuses(
    group: str, events: FloatArray, censored: FloatArray, cutter: _Cutter, zeros: bool
) -> GroupStatuses:
    """All or nothing: n and one of the two would give the other away."""
    few = [len(times) < cutter.k and (len(times) > 0 or not zeros) for times in (events, censored)]
    if not any(few):
        tables = cutter.cells(events), cutter.cells(censored)
        return GroupStatuses(
            group=group, events=tables[0], censored=tables[1], either=None, below=None
        )
    below: Below = "both" if all(few) else "events" if few[0] else "censored"
    everybody = np.sort(np.concatenate((events, censored)))
    return GroupStatuses(
        group=group, events=None, censored=None, either=cutter.cells(everybody), below=below
    )


# --- at the coordinator ------------------------------------------------------------------------


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


def ask_arms(coordinator: Coordinator, asked: OutcomeRequest, declared: Variable) -> ToldArms:
    """One parallel round; one coarse one before where groups or the horizon are not known."""
    added = _grouping_told(coordinator, asked)
    if added is not None:
        asked = replace(asked, request=replace(asked.request, by=added.by, groups=added.groups))
    horizon = _known_horizon(asked, declared, added)
    rounds = 1
    agreed = horizon is None
    if horizon is None or (asked.request.by is not None and asked.request.groups is None):
        asked, horizon = _agree(coordinator, asked, horizon)
        rounds = 2
    told = coordinator.ask(SurvivalQuestion(**asked.fields, horizon=horizon), SurvivalTables)
    refusals = list(told.refusals)
    arms, readable = _arms(coordinator.link.centers, told, declared, horizon, refusals)
    if not arms:
        check_answered(coordinator, asked.request, told, [])
    facts = common_facts(readable)
    lattice = _follow_up_lattice(facts.scale, facts.resolution, horizon, declared)
    named = asked.request.groups or (EVERYBODY,)
    return ToldArms(
        asked.request,
        horizon,
        agreed,
        lattice,
        {group: arms[group] for group in named if group in arms},
        coordinator.link.centers,
        tuple(refusals),
        rounds,
        None if added is None else added.by,
    )


def _known_horizon(
    asked: OutcomeRequest, declared: Variable, added: SurvivalQuestion | None
) -> float | None:
    if asked.horizon is not None:
        return asked.horizon
    return declared.upper if added is None else added.horizon


def _grouping_told(coordinator: Coordinator, asked: OutcomeRequest) -> SurvivalQuestion | None:
    """An earlier question by groups whose arms together are the people asked for now."""
    if asked.request.by is not None:
        return None
    people = (asked.request.variable, asked.event, asked.event_is, asked.request.where)
    for received in coordinator.received:
        question = received.question
        if isinstance(question, SurvivalQuestion) and people == (
            question.variable,
            question.event,
            question.event_is,
            question.where,
        ):
            return None if question.by is None else question
    return None


def _agree(
    coordinator: Coordinator, asked: OutcomeRequest, horizon: float | None
) -> tuple[OutcomeRequest, float]:
    """The coarse round: which groups are there, and a horizon beyond the bulk of their times."""
    round_ = coordinator.ask(FollowUpQuestion(**asked.fields), Moments)
    groups = [group for said in round_.aggregates.values() for group in said.moments]
    found = in_order({group.group for group in groups})
    every_group = partial(_every_group, coordinator, asked)
    check_answered(coordinator, asked.request, round_, found, every_group)
    if asked.request.by is not None and asked.request.groups is None:
        asked = replace(asked, request=replace(asked.request, groups=tuple(found)))
    if horizon is None:
        told = [
            MeanSD(g.n, g.mean, g.sd) for g in groups if g.mean is not None and g.sd is not None
        ]
        if not told or not any(part.mean > 0 for part in told):
            raise InputError(
                "horizon: the centers' times take too few values to agree on one. "
                "Hint: say how long the study followed people, as in horizon=60."
            )
        horizon = agreed_horizon(told)
    return asked, horizon


def _every_group(coordinator: Coordinator, asked: OutcomeRequest) -> set[str]:
    """All groups, by the question about an outcome: sizes of everybody would be another one."""
    any_group = replace(asked, request=replace(asked.request, groups=None))
    answers = coordinator.ask(FollowUpQuestion(**any_group.fields), Moments).aggregates.values()
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
    def tables(cells: Sequence[CellTable] | None) -> tuple[LatticeTable, ...]:
        return tuple(read_table(cell, lattice) for cell in cells or ())

    return ArmTables(k, tables(said.events), tables(said.censored), tables(said.either), said.below)
