"""Survival: what a center tells of an arm, and how the coordinator asks for it."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from unpooled.analyses.conversation import Conversation
from unpooled.analyses.numbers.parallel import common_facts, read_table
from unpooled.analyses.request import Request, check_answered, group_label, in_order, refuse
from unpooled.center.data.variables import Variable
from unpooled.center.questions import (
    EVERYBODY,
    MISSING_LEVEL,
    OTHER,
    CellTable,
    FollowUpQuestion,
    Grouping,
    GroupStatuses,
    Moments,
    Reason,
    Refusal,
    SurvivalQuestion,
    SurvivalTables,
    block_levels,
)
from unpooled.errors import InputError, unknown
from unpooled.maths.lattice.lattice import Lattice, LatticeTable, nice_number
from unpooled.maths.moments import MeanSD
from unpooled.maths.ranks.effect import Interval
from unpooled.maths.survival.cox import (
    center_ratios,
    hazard_ratio,
    proportional_hazards,
    ratio_heterogeneity,
)
from unpooled.maths.survival.follow_up import FollowUp, agreed_horizon, stack
from unpooled.maths.survival.kaplan_meier import SurvivalCurve, kaplan_meier
from unpooled.maths.survival.log_rank import log_rank
from unpooled.maths.survival.pseudo_times import (
    ArmTables,
    Block,
    known_share,
    known_until,
    reconstruct,
)
from unpooled.results.provenance.record import joint_members
from unpooled.results.provenance.refusals import center_refusals
from unpooled.results.report.text import people_text
from unpooled.results.survival import (
    AdjustedRatio,
    Arm,
    ArmQuantile,
    CenterCurve,
    CenterRatio,
    MeanDifference,
    RatioResult,
    RestrictedMean,
    SurvivalAt,
    SurvivalResult,
)


@dataclass(frozen=True, slots=True)
class OutcomeRequest:
    """What the analyst asked for: the people, the event and how far to look."""

    request: Request
    event: str
    event_is: str | None
    horizon: float | None
    at: tuple[float, ...] = ()  # the times at which survival is looked at

    @classmethod
    def of(
        cls,
        request: Request,
        event: str,
        event_is: object,
        horizon: float | None,
        entry: object,
        at: Sequence[float] = (),
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
        if isinstance(event_is, list | tuple | set | dict):
            raise InputError(f"event_is must be one value, got {event_is!r}")
        meant = None if event_is is None else group_label(event_is)
        limit = None if horizon is None else float(horizon)
        return cls(request, event, meant, limit, checked_times(at, limit))

    @property
    def fields(self) -> dict[str, Any]:
        """What every question about it says."""
        return {**self.request.fields, "event": self.event, "event_is": self.event_is}


def checked_times(at: Sequence[float], horizon: float | None) -> tuple[float, ...]:
    """The times at which survival is looked at, ascending.

    Examples
    --------
    >>> checked_times([60, 12], None)
    (12.0, 60.0)
    """
    if not isinstance(at, list | tuple):
        raise InputError(f"at must be a list of times, got {at!r}. Hint: at=[12, 36, 60]")
    for time in at:
        if isinstance(time, bool) or not isinstance(time, int | float):
            raise InputError(f"at must be a list of times, got {time!r} in it")
        if not 0 < time < math.inf:
            raise InputError(f"at: times must be positive and finite, got {time:g}")
        if horizon is not None and time > horizon:
            raise InputError(f"at: {time:g} is beyond the horizon, {horizon:g}")
    return tuple(sorted({float(time) for time in at}))


@dataclass(frozen=True, slots=True)
class OutcomeTables:
    """What the centers told about an outcome, block by block.

    The groups of a block are the arm, then its levels of `strata`, then those of `covariates`.
    """

    time: str
    event: str
    by: str | None
    arms: tuple[str, ...]  # hazard ratios are those of the others to the first
    blocks: tuple[Block, ...]
    centers: tuple[str, ...]
    lattice: Lattice
    horizon: float
    agreed: bool = False  # whether the horizon is that of a coarse round
    event_is: str | None = None
    where: str | None = None
    strata: tuple[str, ...] = ()  # groupings within which arms are compared, as within centers
    covariates: tuple[str, ...] = ()  # groupings that hazard ratios are adjusted for
    refusals: tuple[tuple[str, Refusal], ...] = ()
    rounds: int = 0
    added: str | None = None  # the grouping whose arms were added up
    stratum: tuple[int, ...] = ()  # of each block; empty: its center
    left_out: tuple["LeftOut", ...] = ()
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # as declared, in order

    def of_arm(self, arm: str, number: int | None = None) -> list[Block]:
        """The blocks of an arm, of all centers or of one."""
        return [b for b in self.blocks if b.groups[0] == arm and number in (None, b.center)]


def ask_arms(
    conversation: Conversation, asked: OutcomeRequest, declared: Variable
) -> OutcomeTables:
    """One parallel round; one coarse one before where groups or the horizon are not known."""
    added = _grouping_told(conversation, asked)
    if added is not None:
        asked = replace(asked, request=replace(asked.request, by=added.by, groups=added.groups))
    horizon = _known_horizon(asked, declared, added)
    agreed = horizon is None
    if horizon is None or (asked.request.by is not None and asked.request.groups is None):
        asked, horizon = _agree(conversation, asked, horizon)
    round_ = conversation.ask(SurvivalQuestion(**asked.fields, horizon=horizon), SurvivalTables)
    refusals = list(round_.refusals)
    groups = asked.request.groups or (EVERYBODY,)
    added_up = () if added is None else (EVERYBODY,)
    least = 1 if asked.request.where is None else 0
    answers = [
        OutcomeAnswer(
            number, round_.k[center], aggregate, {g: (*added_up, g) for g in groups}, least
        )
        for number, center in enumerate(conversation.centers)
        if (aggregate := round_.aggregates.get(center)) is not None
    ]
    blocks, lattice, unreadable = read_blocks(answers, declared, horizon)
    refusals += [
        (conversation.centers[i], Refusal(reason=Reason.UNREADABLE_ANSWER)) for i in unreadable
    ]
    if not blocks or lattice is None:
        check_answered(conversation, asked.request, round_, [])
        refuse(refusals)
    there = {block.groups[0] for block in blocks}
    return OutcomeTables(
        asked.request.variable,
        asked.event,
        None if added is not None else asked.request.by,
        tuple(arm for arm in added_up or groups if arm in there),
        tuple(blocks),
        conversation.centers,
        lattice,
        horizon,
        agreed,
        asked.event_is,
        asked.request.where,
        refusals=tuple(refusals),
        rounds=conversation.rounds,
        added=None if added is None else added.by,
    )


@dataclass(frozen=True, slots=True)
class LeftOut:
    """People whose level of a grouping a center does not tell by itself, or who have none."""

    grouping: str
    center: str
    levels: tuple[str, ...]  # that are told together
    people: int
    adjusted_only: bool = False  # left out of the adjusted hazard ratios alone


@dataclass(frozen=True, slots=True)
class OutcomeAnswer:
    """A center's tables, its K, and what each of its labels means: the arm, strata, covariates.

    Labels that mean nothing here are left out.
    """

    center: int
    k: int
    tables: SurvivalTables
    meaning: Mapping[str, tuple[str, ...]]
    least: int = 1  # of a status below K; 0 where it is not said that nobody has it


def read_blocks(
    answers: Sequence[OutcomeAnswer], declared: Variable, horizon: float
) -> tuple[list[Block], Lattice | None, list[int]]:
    """The blocks, the lattice of all, and the centers whose tables do not fit one."""
    blocks, readable, unreadable = list[Block](), [], []
    for answer in answers:
        tables = answer.tables
        try:
            lattice = _follow_up_lattice(tables.scale, tables.resolution, horizon, declared)
            blocks += [
                Block(answer.center, meant, _read(group, answer.k, lattice, answer.least))
                for group in tables.groups
                if (meant := answer.meaning.get(group.group)) is not None
            ]
        except ValueError:
            unreadable.append(answer.center)
        else:
            readable.append(tables)
    if not readable:
        return [], None, unreadable
    facts = common_facts(readable)
    return (
        blocks,
        _follow_up_lattice(facts.scale, facts.resolution, horizon, declared),
        unreadable,
    )


@dataclass(frozen=True, slots=True)
class BlockAnswer:
    """What a center tells of an outcome by blocks; a joint center is one like any other.

    `members` are the centers that a joint center has people of.
    """

    center: str
    k: int
    tables: SurvivalTables
    members: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BlockView:
    """How blocks are put together: in which arms, of whom, within what, adjusted for what.

    `where` has for a grouping the levels whose people are looked at.
    """

    by: str | None = None
    groups: tuple[str, ...] | None = None
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    strata: tuple[str, ...] = ()
    covariates: tuple[str, ...] = ()

    def check(self, groupings: Sequence[Grouping]) -> None:
        """Raise where a name is no grouping of these blocks, or stands for two things."""
        names = [grouping.name for grouping in groupings]
        roles = {
            "by": () if self.by is None else (self.by,),
            "where": tuple(self.where),
            "strata": self.strata,
            "covariates": self.covariates,
        }
        for role, meant in roles.items():
            for name in meant:
                if name not in names:
                    raise InputError(f"{role}: {unknown('grouping', name, names)}")
        within = [*roles["by"], *self.strata, *self.covariates]
        twice = next((name for name in within if within.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"by, strata and covariates must differ, got {twice!r} twice")
        if self.by is None and (self.groups is not None or self.strata or self.covariates):
            raise InputError("groups, strata and covariates need by, the arms to compare")
        for grouping in groupings:
            wanted = self.where.get(grouping.name, ())
            if grouping.name == self.by:
                wanted = (*wanted, *(self.groups or ()))
            for level in wanted if grouping.names else ():
                if level not in (*grouping.names, OTHER, MISSING_LEVEL):
                    raise InputError(f"{grouping.name}: {unknown('level', level, grouping.names)}")


def outcome_of_blocks(
    question: SurvivalQuestion,
    answers: Sequence[BlockAnswer],
    view: BlockView,
    declared: Variable = Variable(),  # noqa: B008 (frozen)
    refusals: Sequence[tuple[str, Refusal]] = (),
) -> OutcomeTables:
    """An outcome told by blocks, put together by arms; asks nobody.

    Levels that a center tells together stay together: as strata they are one stratum there; as an
    arm, a condition or a covariate their people are left out, and the result says so.
    """
    groupings = question.blocks or ()
    view.check(groupings)
    left_out: list[LeftOut] = []
    meanings = [_meanings(answer, groupings, view, left_out) for answer in answers]
    meanings = _with_their_joint_center(answers, meanings)
    blocks, lattice, unreadable = read_blocks(
        [
            OutcomeAnswer(
                number,
                answer.k,
                answer.tables,
                {g: m.groups for g, m in meant.items()},
                least=0 if answer.members or joint_members(answer.center) else 1,
            )
            for number, (answer, meant) in enumerate(zip(answers, meanings, strict=True))
        ],
        declared,
        question.horizon,
    )
    centers = tuple(answer.center for answer in answers)
    bad = [(centers[i], Refusal(reason=Reason.UNREADABLE_ANSWER)) for i in unreadable]
    if not blocks or lattice is None:
        if left_out:
            raise InputError(f"nobody is left: {'; '.join(_told_together(left_out))}")
        if bad or refusals:
            refuse([*refusals, *bad])
        raise InputError("no center has people whom this describes. Hint: look at by and where")
    there = {block.groups[0] for block in blocks}
    arms = (EVERYBODY,) if view.by is None else _arms(view, groupings, there)
    missing = [arm for arm in arms if arm not in there]
    if missing:
        raise InputError(
            f"groups: no center tells {', '.join(map(repr, missing))} of {view.by!r} by itself. "
            f"There are: {', '.join(in_order(there))}"
        )
    readable = [m for i, m in enumerate(meanings) if i not in unreadable]
    return OutcomeTables(
        question.variable,
        question.event,
        view.by,
        tuple(arms),
        tuple(blocks),
        centers,
        lattice,
        question.horizon,
        event_is=question.event_is,
        where=_condition(view.where),
        strata=view.strata,
        covariates=view.covariates,
        refusals=(*refusals, *bad),
        stratum=_stratum_codes([m for meant in readable for m in meant.values()]),
        left_out=tuple(left_out),
        levels={grouping.name: grouping.names for grouping in groupings},
    )


@dataclass(frozen=True, slots=True)
class _Meaning:
    """What a block stands for: its groups, and the cells of strata that it reaches into."""

    groups: tuple[str, ...]
    cells: frozenset[tuple[str, ...]]  # the center, then a level of each stratifying grouping
    rest: frozenset[tuple[str, ...]]  # a level of each grouping but the arm's


def _meanings(
    answer: BlockAnswer,
    groupings: Sequence[Grouping],
    view: BlockView,
    left_out: list[LeftOut],
) -> dict[str, _Meaning]:
    """What each block of a center stands for, of those that are looked at."""
    place = {grouping.name: i for i, grouping in enumerate(groupings)}
    meant = {}
    for group in answer.tables.groups:
        levels = block_levels(group.group)
        if len(levels) != len(groupings):
            raise InputError(f"{answer.center}: {group.group!r} is no block of this protocol")
        of = {name: levels[i] for name, i in place.items()}
        people = group.people
        wanted = dict(view.where)
        if view.by is not None and view.groups is not None:
            both = set(view.groups).intersection(wanted.get(view.by, view.groups))
            wanted[view.by] = tuple(both)
        if any(not set(of[name]) & set(some) for name, some in wanted.items()):
            continue  # nobody of the block is looked at
        whole = {name: len(of[name]) == 1 or set(of[name]) <= set(wanted[name]) for name in wanted}
        if view.by is not None:
            if view.groups is None and set(of[view.by]) <= {OTHER, MISSING_LEVEL}:
                continue
            whole[view.by] = len(of[view.by]) == 1
        mixed = next((name for name, alone in whole.items() if not alone), None)
        if mixed is not None:
            left_out.append(LeftOut(mixed, answer.center, of[mixed], people))
            continue
        left_out += [
            LeftOut(name, answer.center, of[name], people, True)
            for name in view.covariates
            if _unclear(of[name])
        ]
        arm = EVERYBODY if view.by is None else of[view.by][0]
        more = (_TOGETHER.join(of[name]) for name in (*view.strata, *view.covariates))
        cells = product([answer.center], *(of[name] for name in view.strata))
        rest = product(*(of[name] for name in place if name != view.by))
        meant[group.group] = _Meaning((arm, *more), frozenset(cells), frozenset(rest))
    return meant


def _with_their_joint_center(
    answers: Sequence[BlockAnswer], meanings: Sequence[dict[str, _Meaning]]
) -> list[dict[str, _Meaning]]:
    """A center that tells one arm, and gives people of another to a joint center, is one stratum
    with it: else neither would be compared with those of its own center.
    """
    joined = list(meanings)
    for joint, others in zip(answers, meanings, strict=True):
        for number, answer in enumerate(answers):
            if answer.center not in joint.members:
                continue
            alone: dict[str, set[tuple[str, ...]]] = {}
            for block in (*others.values(), *meanings[number].values()):
                alone.setdefault(block.groups[0], set())
            for block in meanings[number].values():
                alone[block.groups[0]] |= block.rest
            if all(some == next(iter(alone.values())) for some in alone.values()):
                continue
            for label, block in joined[number].items():
                also = {(joint.center, *cell[1:]) for cell in block.cells}
                joined[number] = {**joined[number], label: replace(block, cells=block.cells | also)}
    return joined


_TOGETHER = " or "  # between levels that are told together


def _unclear(levels: Sequence[str]) -> bool:
    """Whether a model cannot say which level of a covariate people have."""
    return len(levels) > 1 or levels[0] == MISSING_LEVEL


def _arms(view: BlockView, groupings: Sequence[Grouping], there: set[str]) -> tuple[str, ...]:
    """In the order asked for, or else as declared, or else by name."""
    if view.groups is not None:
        return view.groups
    declared = next(grouping.names for grouping in groupings if grouping.name == view.by)
    return tuple(_as_declared(there, declared))


def _as_declared(there: Iterable[str], declared: Sequence[str]) -> list[str]:
    """Levels in their order; those that nobody declared come last."""
    some = set(there)
    return [*(name for name in declared if name in some), *in_order(some.difference(declared))]


def _condition(where: Mapping[str, tuple[str, ...]]) -> str | None:
    """In words."""
    return "; ".join(f"{name}: {', '.join(levels)}" for name, levels in where.items()) or None


def _stratum_codes(blocks: Sequence[_Meaning]) -> tuple[int, ...]:
    """Blocks that share a cell of strata are in one stratum, and so are those that these share."""
    stratum: dict[tuple[str, ...], int] = {}
    for number, block in enumerate(blocks):
        joined = {stratum[cell] for cell in block.cells if cell in stratum}
        stratum.update(dict.fromkeys(block.cells, number))
        stratum.update({cell: number for cell, code in stratum.items() if code in joined})
    return tuple(stratum[next(iter(block.cells))] for block in blocks)


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
    groups = [group for aggregate in round_.aggregates.values() for group in aggregate.moments]
    arms = in_order({group.group for group in groups})
    every_group = partial(_every_group, conversation, asked)
    check_answered(conversation, asked.request, round_, arms, every_group)
    if asked.request.by is not None and asked.request.groups is None:
        asked = replace(asked, request=replace(asked.request, groups=tuple(arms)))
    if horizon is None:
        horizons = [
            MeanSD(g.n, g.mean, g.sd) for g in groups if g.mean is not None and g.sd is not None
        ]
        if not horizons or not any(part.mean > 0 for part in horizons):
            if any(refusal.reason is Reason.WOULD_ISOLATE for _, refusal in round_.refusals):
                refuse(round_.refusals)
            raise InputError(
                "horizon: no center gave a mean time, since times take few values or earlier "
                "answers stand against it. "
                "Hint: say how long the study followed people, as in horizon=60."
            )
        horizon = agreed_horizon(horizons)
    return asked, horizon


def _every_group(conversation: Conversation, asked: OutcomeRequest) -> set[str]:
    """All groups, by the question about an outcome: sizes of everybody would be another one."""
    any_group = replace(asked, request=replace(asked.request, groups=None))
    answers = conversation.ask(FollowUpQuestion(**any_group.fields), Moments).aggregates.values()
    return {group.group for answer in answers for group in answer.moments}


def _follow_up_lattice(
    scale: float, resolution: float | None, horizon: float, declared: Variable
) -> Lattice:
    """With the resolution that centers tell, not the analyst's own."""
    return Variable(atoms=declared.atoms).follow_up_lattice(scale, horizon, resolution)


def _read(statuses: GroupStatuses, k: int, lattice: Lattice, least: int) -> ArmTables:
    def tables(cells: CellTable | None) -> tuple[LatticeTable, ...]:
        return () if cells is None else (read_table(cells, lattice),)

    return ArmTables(
        k,
        tables(statuses.events),
        tables(statuses.censored),
        tables(statuses.either),
        statuses.below,
        least,
        statuses.followed or 0,
    )


_FEW = 0.5  # of an arm's people have a told status: where fewer do, a note says so
_QUANTILES = (0.25, 0.5, 0.75)


def run_survival(
    conversation: Conversation, asked: OutcomeRequest, declared: Variable
) -> SurvivalResult:
    """Ask for the arms and combine what the centers tell of them."""
    return combine_survival(ask_arms(conversation, asked, declared), asked.at)


def survival_of_blocks(
    question: SurvivalQuestion,
    answers: Sequence[BlockAnswer],
    view: BlockView,
    *,
    declared: Variable = Variable(),  # noqa: B008 (frozen)
    at: Sequence[float] = (),
    refusals: Sequence[tuple[str, Refusal]] = (),
) -> SurvivalResult:
    """Curves, tests and hazard ratios of an outcome that was told by blocks; asks nobody."""
    times = checked_times(at, question.horizon)
    return combine_survival(outcome_of_blocks(question, answers, view, declared, refusals), times)


def combine_survival(outcome: OutcomeTables, at: Sequence[float] = ()) -> SurvivalResult:
    """Curves, tests and hazard ratios from the tables of all blocks; asks nobody."""
    _check_events(outcome)
    followed = reconstruct(outcome.blocks, outcome.lattice)
    marked = _in_strata(followed, outcome)
    people, within = _by_arm(followed, outcome), _by_arm(marked, outcome)
    ends = {
        arm: known_until([block.tables for block in outcome.of_arm(arm)], outcome.lattice)
        for arm in outcome.arms
    }
    k = max(block.tables.k for block in outcome.blocks)
    until = _followed_until([arm.until(ends[group]) for group, arm in people.items()], outcome, k)
    compared = len(people) > 1
    arms = tuple(_arm(group, arm, ends[group], until, at) for group, arm in people.items())
    return SurvivalResult(
        answered=tuple(outcome.centers[i] for i in sorted({b.center for b in outcome.blocks})),
        time=outcome.time,
        event=outcome.event,
        by=outcome.by,
        where=outcome.where,
        horizon=outcome.horizon,
        k=k,
        arms=arms,
        log_rank=log_rank(list(people.values())) if compared else None,
        stratified=log_rank(list(within.values()), stratified=True) if compared else None,
        ratios=_ratios(within, people, outcome.centers) if compared else (),
        strata=outcome.strata,
        adjusted=_adjusted(marked, outcome) if compared and outcome.covariates else (),
        mean_differences=_mean_differences(arms, until),
        centers=_center_curves(people, outcome),
        notes=_notes(outcome, people, ends),
        refusals=center_refusals(outcome.refusals),
        rounds=outcome.rounds,
    )


def _check_events(outcome: OutcomeTables) -> None:
    if not any(b.tables.events or b.tables.below is not None for b in outcome.blocks):
        meant = "" if outcome.event_is is None else f" = {outcome.event_is!r}"
        raise InputError(
            f"event: nobody at any center has {outcome.event!r}{meant}. "
            "Hint: event_is says which value of the column means the event."
        )


def _arm(group: str, people: FollowUp, end: float, until: float | None, at: Sequence[float]) -> Arm:
    """Its curve ends where people are known no longer; beyond, the last cells are guesses."""
    curve = kaplan_meier(people.until(end))
    mean = None if until is None else RestrictedMean(until, *curve.restricted_mean(until))
    return Arm(
        group,
        people,
        curve,
        tuple(ArmQuantile(group, p, *curve.quantile(p)) for p in _QUANTILES),
        mean,
        tuple(_survival_at(group, people, curve, time) for time in at),
    )


def _survival_at(group: str, people: FollowUp, curve: SurvivalCurve, time: float) -> SurvivalAt:
    here = np.array([time])
    if time > curve.end:
        return SurvivalAt(group, time, None, float(people.at_risk(here)[0]))
    low, high = (float(limit[0]) for limit in curve.band_at(here))
    shown = Interval(float(curve.at(here)[0]), low, high)
    return SurvivalAt(group, time, shown, float(people.at_risk(here)[0]))


def _followed_until(arms: list[FollowUp], outcome: OutcomeTables, k: int) -> float | None:
    """The horizon, or the last round time at which every arm has K people left; None: neither.

    A restricted mean beyond it would rest on the last few people. Where tables end is chance, so it
    is rounded down to a tenth, roughly.
    """
    left = [arm.times[arm.at_risk(arm.times) >= k] for arm in arms]
    last = min(float(times[-1]) if len(times) else 0.0 for times in left)
    if last in (0, outcome.horizon):
        return last or None
    step = nice_number(last / 10)
    return step * math.floor(last / step + 1e-9)


def _mean_differences(arms: Sequence[Arm], until: float | None) -> tuple[MeanDifference, ...]:
    """How much longer than in the first arm people live within `until`, on average."""
    if until is None:
        return ()
    first, *others = arms
    return tuple(
        MeanDifference(
            first.group,
            arm.group,
            until,
            *arm.curve.restricted_mean_minus(first.curve, until),
        )
        for arm in others
    )


def _in_strata(followed: Sequence[FollowUp], outcome: OutcomeTables) -> list[FollowUp]:
    """The people of each block, marked by center and further strata."""
    codes = outcome.stratum or [block.center for block in outcome.blocks]
    return [
        people.in_strata(np.full(len(people.times), code))
        for people, code in zip(followed, codes, strict=True)
    ]


def _by_arm(followed: Sequence[FollowUp], outcome: OutcomeTables) -> dict[str, FollowUp]:
    pairs = list(zip(followed, outcome.blocks, strict=True))
    return {
        arm: stack([people for people, block in pairs if block.groups[0] == arm])
        for arm in outcome.arms
    }


def _ratios(
    within: Mapping[str, FollowUp], people: Mapping[str, FollowUp], centers: tuple[str, ...]
) -> tuple[RatioResult, ...]:
    """Each other arm's hazard over that of the first, within centers and further strata."""
    first, *others = people
    ratios = []
    for other in others:
        ratio = hazard_ratio(within[first], within[other], stratified=True)
        of_centers = center_ratios(people[first], people[other])
        ratios.append(
            RatioResult(
                first,
                other,
                None if ratio is None else ratio.interval(),
                ratio_heterogeneity(
                    [r for c, r in of_centers.items() if not joint_members(centers[c])]
                ),
                tuple(CenterRatio(centers[c], r.interval()) for c, r in of_centers.items()),
            )
        )
    return tuple(ratios)


def _adjusted(marked: Sequence[FollowUp], outcome: OutcomeTables) -> tuple[AdjustedRatio, ...]:
    """Cox's model of arm and covariates, within centers and strata: people alike are a group."""
    places = (0, *range(1 + len(outcome.strata), 1 + len(outcome.strata) + len(outcome.covariates)))
    names = (outcome.by or "", *outcome.covariates)
    alike: dict[tuple[str, ...], list[FollowUp]] = {}
    together = {
        (out.center, out.grouping, _TOGETHER.join(out.levels))
        for out in outcome.left_out
        if out.adjusted_only
    }
    for people, block in zip(marked, outcome.blocks, strict=True):
        levels = zip(names[1:], (block.groups[i] for i in places[1:]), strict=True)
        unclear = any((outcome.centers[block.center], *level) in together for level in levels)
        if block.groups[0] in outcome.arms and not unclear:
            alike.setdefault(tuple(block.groups[i] for i in places), []).append(people)
    orders = [outcome.arms] + [
        tuple(_as_declared({key[i] for key in alike}, outcome.levels.get(names[i], ())))
        for i in range(1, len(places))
    ]
    terms = [(i, level) for i, levels in enumerate(orders) for level in levels[1:]]
    design = np.array([[float(key[i] == level) for i, level in terms] for key in alike])
    ratios = proportional_hazards(
        [stack(people) for people in alike.values()], design, stratified=True
    )
    return tuple(
        AdjustedRatio(names[i], level, orders[i][0], None if r is None else r.interval())
        for (i, level), r in zip(terms, ratios, strict=True)
    )


def _center_curves(
    people: Mapping[str, FollowUp], outcome: OutcomeTables
) -> tuple[CenterCurve, ...]:
    """The centers' own curves, where they told who had the event."""
    curves = []
    for number, center in enumerate(outcome.centers):
        for group, arm in people.items():
            tables = [block.tables for block in outcome.of_arm(group, number)]
            here = arm.part(arm.centers == number)
            if here is not None and all(t.below is None for t in tables) and here.event_total > 0:
                end = known_until(tables, outcome.lattice)
                curves.append(CenterCurve(center, group, here, kaplan_meier(here.until(end))))
    return tuple(curves)


def _notes(
    outcome: OutcomeTables, people: Mapping[str, FollowUp], ends: Mapping[str, float]
) -> tuple[str, ...]:
    notes = [note for arm in outcome.arms for note in _unknown(arm, outcome, people[arm])]
    notes += _told_together(outcome.left_out)
    if outcome.added is not None:
        notes.append(
            f"the arms of {outcome.added}, answered before, were added up; nothing new left"
        )
    if outcome.agreed:
        notes.append(
            f"the centers agreed on the horizon {outcome.horizon:g}; time beyond it is cut"
        )
    if min(ends.values()) < outcome.horizon:
        notes.append(_ends(ends, outcome.agreed))
    vague = _without_moments(outcome)
    if vague:
        notes.append(
            f"precision is poor: {', '.join(vague)} gave no moments of their cells, so that times "
            "within them are guesses"
        )
    return tuple(notes)


def _unknown(arm: str, outcome: OutcomeTables, people: FollowUp) -> Iterator[str]:
    """What is estimated of an arm, where centers told no statuses."""
    blocks = outcome.of_arm(arm)
    centers = {block.center for block in blocks if block.tables.below is not None}
    if not centers:
        return
    share = 1 - known_share([block.tables for block in blocks])
    counted = "1 center gives" if len(centers) == 1 else f"{len(centers)} centers give"
    yield (
        f"{arm}: {counted} times without statuses, since fewer than K people have the event, or "
        f"lack it: {share:.0%} of its people. Their events, about "
        f"{people.events[people.drawn.any(axis=1)].sum():.0f}, are estimated from all centers; "
        "intervals and tests allow for that"
    )
    if share > 1 - _FEW:
        yield f"{arm}: precision is poor: the status is known for fewer than half of its people"


def _told_together(left_out: Iterable[LeftOut]) -> list[str]:
    """Who is left out because levels are told together."""
    whom: dict[tuple[str, bool], list[LeftOut]] = {}
    for out in left_out:
        whom.setdefault((out.grouping, out.adjusted_only), []).append(out)
    return [
        f"{grouping}: {people_text(sum(out.people for out in some))} are left out"
        f"{' of the adjusted hazard ratios' if adjusted else ''}, since they have no level of "
        f"it that stands alone ({', '.join(dict.fromkeys(map(_where_together, some)))})"
        for (grouping, adjusted), some in whom.items()
    ]


def _where_together(out: LeftOut) -> str:
    return f"{out.center}: {_TOGETHER.join(out.levels)}"


def _ends(by_arm: Mapping[str, float], agreed: bool) -> str:
    ends = ", ".join(f"{end:.4g} ({group})" for group, end in by_arm.items())
    hint = ". Hint: where follow-up ended at a known time, declare it, as in horizon=60"
    return f"people are known up to {ends}; curves end there{hint if agreed else ''}"


def _without_moments(outcome: OutcomeTables) -> list[str]:
    """The centers that told counts alone."""
    vague = []
    for number, center in enumerate(outcome.centers):
        tables = [block.tables for block in outcome.blocks if block.center == number]
        cells = [c for t in tables for c in t.tables]
        if cells and all(np.isnan(cell.means).all() for cell in cells):
            vague.append(center)
    return vague
