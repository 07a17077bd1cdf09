"""Survival curves and their comparison, from what the centers told of each arm."""

import math
from collections.abc import Mapping
from typing import NoReturn

import numpy as np

from unpooled.analyses.survival import OutcomeRequest, ToldArms, ask_arms
from unpooled.coordinator import Conversation
from unpooled.data.variables import Variable
from unpooled.errors import InputError, RefusedError
from unpooled.maths.cox import center_ratios, hazard_ratio, ratio_heterogeneity
from unpooled.maths.follow_up import FollowUp, stack
from unpooled.maths.lattice import nice_number
from unpooled.maths.log_rank import log_rank
from unpooled.maths.pseudo_times import ArmTables, known_share, known_until, pseudo_times
from unpooled.maths.survival import kaplan_meier
from unpooled.questions import EVERYBODY
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
