"""Survival: what a center tells of an arm, and how the coordinator asks for it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NoReturn

import numpy as np

from unpooled.analyses.conversation import Conversation, Round
from unpooled.analyses.parallel import common_facts, read_table
from unpooled.analyses.request import Request, check_answered, group_label, in_order, refuse
from unpooled.center.data.variables import Variable
from unpooled.center.questions import (
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
from unpooled.errors import InputError, RefusedError
from unpooled.maths.lattice.lattice import Lattice, LatticeTable, nice_number
from unpooled.maths.moments import MeanSD
from unpooled.maths.survival.cox import center_ratios, hazard_ratio, ratio_heterogeneity
from unpooled.maths.survival.follow_up import FollowUp, agreed_horizon, stack
from unpooled.maths.survival.kaplan_meier import kaplan_meier
from unpooled.maths.survival.log_rank import log_rank
from unpooled.maths.survival.pseudo_times import ArmTables, known_share, known_until, pseudo_times
from unpooled.results.refusals import center_refusals, refusal_sentence
from unpooled.results.survival import (
    Arm,
    ArmQuantile,
    CenterCurve,
    CenterRatio,
    RatioResult,
    RestrictedMean,
    SurvivalResult,
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
        if event == request.variable:
            raise InputError(f"event must be another variable than time, got {event!r} for both")
        if entry is not None:
            raise InputError(
                f"entry: delayed entry is not possible, got {entry!r}. "
                "Hint: take time from the start of each person's follow-up."
            )
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


_ENOUGH = 0.5  # of an arm's people must have a told status
_QUANTILES = (0.25, 0.5, 0.75)


def run_survival(
    conversation: Conversation, asked: OutcomeRequest, declared: Variable
) -> SurvivalResult:
    """Ask for the arms and combine what the centers tell of them."""
    told = ask_arms(conversation, asked, declared)
    unclear = [group for group, arm in told.arms.items() if known_share(arm) < _ENOUGH]
    if len(unclear) == len(told.arms):
        _refuse_unclear(told)
    _check_events(told, asked)
    people = {g: pseudo_times(a, told.lattice) for g, a in told.arms.items() if g not in unclear}
    if told.added is not None:
        people = {EVERYBODY: stack(list(people.values()))}
    known = {group: known_until(_tables(told, group), told.lattice) for group in people}
    until = _followed_until([arm.until(known[group]) for group, arm in people.items()], told)
    arms = tuple(_arm(group, arm, known[group], until) for group, arm in people.items())
    compared = len(people) > 1 and not unclear
    answered = {code for arm in people.values() for code in np.unique(arm.centers).tolist()}
    return SurvivalResult(
        answered=tuple(name for code, name in enumerate(told.centers) if code in answered),
        time=asked.request.variable,
        event=asked.event,
        by=asked.request.by,
        where=asked.request.where,
        horizon=told.horizon,
        arms=arms,
        log_rank=log_rank(list(people.values())) if compared else None,
        stratified=log_rank(list(people.values()), stratified=True) if compared else None,
        ratios=_ratios(people, told.centers) if compared else (),
        centers=_center_curves(people, told),
        notes=_notes(told, unclear, known),
        refusals=center_refusals(told.refusals),
        rounds=told.rounds,
    )


def _check_events(told: ToldArms, asked: OutcomeRequest) -> None:
    tables = [tables for arm in told.arms.values() for tables in arm.values()]
    if not any(t.events or t.below is not None for t in tables):
        meant = "" if asked.event_is is None else f" = {asked.event_is!r}"
        raise InputError(
            f"event: nobody at any center has {asked.event!r}{meant}. "
            "Hint: event_is says which value of the column means the event."
        )


def _arm(group: str, people: FollowUp, known: float, until: float | None) -> Arm:
    """Its curve ends where people are known no longer; beyond, the last cells are guesses."""
    curve = kaplan_meier(people.until(known))
    mean = None if until is None else RestrictedMean(until, *curve.restricted_mean(until))
    return Arm(
        group,
        people,
        curve,
        tuple(ArmQuantile(group, p, *curve.quantile(p)) for p in _QUANTILES),
        mean,
    )


def _followed_until(arms: list[FollowUp], told: ToldArms) -> float | None:
    """The horizon, or the last round time at which every arm has K people left; None: neither.

    A restricted mean beyond it would rest on the last few people. Where tables end is chance, so it
    is rounded down to a tenth, roughly.
    """
    k = max(tables.k for arm in told.arms.values() for tables in arm.values())
    last = min(float(arm.times[arm.at_risk(arm.times) >= k][-1]) for arm in arms)
    if last in (0, told.horizon):
        return last or None
    step = nice_number(last / 10)
    return step * math.floor(last / step + 1e-9)


def _ratios(people: Mapping[str, FollowUp], centers: tuple[str, ...]) -> tuple[RatioResult, ...]:
    """Each other arm's hazard over that of the first, within centers."""
    first, *others = people
    found = []
    for other in others:
        x, y = people[first], people[other]
        ratio = hazard_ratio(x, y, stratified=True)
        own = center_ratios(x, y)
        found.append(
            RatioResult(
                first,
                other,
                None if ratio is None else ratio.interval(),
                ratio_heterogeneity(list(own.values())),
                tuple(CenterRatio(centers[c], r.interval()) for c, r in own.items()),
            )
        )
    return tuple(found)


def _center_curves(people: Mapping[str, FollowUp], told: ToldArms) -> tuple[CenterCurve, ...]:
    """The centers' own curves, where they told who had the event."""
    curves = []
    for number, center in enumerate(told.centers):
        for group, arm in people.items():
            tables = _tables(told, group, number)
            own = arm.part(arm.centers == number)
            if own is not None and all(t.below is None for t in tables) and own.event_total > 0:
                known = known_until(tables, told.lattice)
                curves.append(CenterCurve(center, group, own, kaplan_meier(own.until(known))))
    return tuple(curves)


def _tables(told: ToldArms, group: str, number: int | None = None) -> list[ArmTables]:
    """What one center told of a curve's people, or all did."""
    arms = told.arms.values() if told.added is not None else [told.arms[group]]
    return [own for arm in arms for code, own in arm.items() if number in (None, code)]


def _refuse_unclear(told: ToldArms) -> NoReturn:
    refused = center_refusals(told.refusals)
    why = (
        f"fewer than half of the people told in {', '.join(told.arms)} have a told status: their "
        "centers have fewer than K people with the event, or without it, and tell times alone"
    )
    lines = [f"  {refusal_sentence(refusal)}" for refusal in refused]
    raise RefusedError("\n".join([why, *lines]), refused)


def _notes(told: ToldArms, unclear: list[str], known: Mapping[str, float]) -> tuple[str, ...]:
    notes = [
        f"{group}: fewer than half of its people have a told status; its curve and the comparison "
        "are refused"
        for group in unclear
    ]
    if told.added is not None:
        notes.append(f"the arms of {told.added}, told before, added up; nothing new left")
    if told.agreed:
        notes.append(f"the centers agreed on the horizon {told.horizon:g}; time beyond it is cut")
    if min(known.values()) < told.horizon:
        notes.append(_ends(known, told.agreed))
    vague = _without_moments(told)
    if vague:
        notes.append(
            f"precision is poor: {', '.join(vague)} told no moments of their cells, so that times "
            "within them are guesses"
        )
    return tuple(notes)


def _ends(known: Mapping[str, float], agreed: bool) -> str:
    ends = ", ".join(f"{end:.4g} ({group})" for group, end in known.items())
    hint = ". Hint: where follow-up ended at a known time, declare it, as in horizon=60"
    return f"people are known up to {ends}; curves end there{hint if agreed else ''}"


def _without_moments(told: ToldArms) -> list[str]:
    """The centers that told counts alone."""
    vague = []
    for number, center in enumerate(told.centers):
        tables = [arm[number] for arm in told.arms.values() if number in arm]
        cells = [c for t in tables for c in (*t.events, *t.censored, *t.either)]
        if cells and all(np.isnan(cell.means).all() for cell in cells):
            vague.append(center)
    return vague
