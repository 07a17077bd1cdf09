"""Outcomes in two groups, times to an event and proportions: what is simulated, and how.

Centers tell alone what they can, or everybody in a joint center.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import msgspec
import numpy as np

from unpooled.analyses.survival import BlockAnswer, BlockView, OutcomeTables, outcome_of_blocks
from unpooled.center.data.variables import Variable
from unpooled.center.policy import Joint
from unpooled.center.proposal.keyed_boundaries import keyed_draws
from unpooled.center.questions import (
    CellTable,
    Grouping,
    GroupStatuses,
    SurvivalQuestion,
    SurvivalTables,
    block_label,
)
from unpooled.center.questions.joint import LEAST_MEMBERS, MOST_POINTS, JointOutcome
from unpooled.maths.arrays import BoolArray, FloatArray, IntArray
from unpooled.maths.categories.mantel_haenszel import cochran_mantel_haenszel, risk_difference
from unpooled.maths.joint.cutting import DRAW, joint_cells
from unpooled.maths.lattice.cells import Moments
from unpooled.maths.lattice.cutting import status_table
from unpooled.maths.lattice.lattice import Lattice, LatticeTable, nice_number
from unpooled.maths.survival.follow_up import FollowUp, stack
from unpooled.maths.survival.kaplan_meier import kaplan_meier
from unpooled.maths.survival.log_rank import log_rank
from unpooled.maths.survival.pseudo_times import Below, known_until, reconstruct
from unpooled_study.simulations.families import Random

OUTCOME_METHODS = ("pooled", "alone", "joint")
"""Everybody's rows; what centers tell alone; what a joint center of all of them tells."""


class SurvivalSetting(msgspec.Struct, frozen=True, tag="survival", forbid_unknown_fields=True):
    """Exponential times, followed up to `follow_up`, `dropout` of the people lost before, evenly.

    Centers' log hazards have SD `center_sd`, their log hazard ratios SD `effect_sd`. A simulation
    gives the log p-value of the log-rank test within centers by each method, then by each method
    the error of the median of group x and of group y (NaN: not reached).
    """

    n_x: tuple[int, ...]
    n_y: tuple[int, ...]
    ratio: float
    median: float
    follow_up: float
    dropout: float = 0.0
    center_sd: float = 0.0
    effect_sd: float = 0.0
    k: int = 10

    methods: ClassVar[tuple[str, ...]] = OUTCOME_METHODS

    @property
    def columns(self) -> int:
        """How many numbers a simulation gives."""
        return 3 * len(OUTCOME_METHODS)

    @property
    def name(self) -> str:
        """What simulations are seeded by; the same people for every K."""
        return (
            f"survival {_sizes(self.n_x)} {_sizes(self.n_y)} ratio {self.ratio:g} median "
            f"{self.median:g} follow-up {self.follow_up:g} dropout {self.dropout:g} "
            f"center {self.center_sd:g} effect {self.effect_sd:g}"
        )


class ProportionSetting(msgspec.Struct, frozen=True, tag="proportion", forbid_unknown_fields=True):
    """People who have something or not; SDs are of the centers' log odds and log odds ratios.

    A simulation gives the log p-value of the Cochran-Mantel-Haenszel test by each method, then by
    each method the error of the difference of risks within centers (NaN: none).
    """

    n_x: tuple[int, ...]
    n_y: tuple[int, ...]
    p_x: float
    p_y: float
    center_sd: float = 0.0
    effect_sd: float = 0.0
    k: int = 10

    methods: ClassVar[tuple[str, ...]] = OUTCOME_METHODS

    @property
    def columns(self) -> int:
        """How many numbers a simulation gives."""
        return 2 * len(OUTCOME_METHODS)

    @property
    def name(self) -> str:
        """What simulations are seeded by; the same people for every K."""
        return (
            f"proportion {_sizes(self.n_x)} {_sizes(self.n_y)} p {self.p_x:g} {self.p_y:g} "
            f"center {self.center_sd:g} effect {self.effect_sd:g}"
        )


def _sizes(sizes: tuple[int, ...]) -> str:
    return "+".join(map(str, sizes))


ARMS = ("x", "y")
_GROUPING = Grouping(name="arm", levels=ARMS)
_DECLARED = Variable()


@dataclass(frozen=True, slots=True)
class People:
    """Everybody: follow-up, event, arm (0 or 1) and center."""

    times: FloatArray
    events: BoolArray
    arms: IntArray
    centers: IntArray

    def chosen(self, who: BoolArray) -> "People":
        """Some of them."""
        return People(self.times[who], self.events[who], self.arms[who], self.centers[who])

    def at_one_center(self) -> "People":
        """The same people, as if they were at one."""
        return replace(self, centers=np.zeros_like(self.centers))

    def pooled(self) -> list[FollowUp]:
        """Each arm, as nobody may see it."""
        arms = (self.chosen(self.arms == arm) for arm in range(len(ARMS)))
        return [FollowUp.of(a.times, a.events.astype(float), None, a.centers) for a in arms]

    def by_arm(self, center: int) -> Iterator[tuple[int, BoolArray]]:
        """Who of a center is in each arm that has somebody there."""
        for arm in range(len(ARMS)):
            here = (self.centers == center) & (self.arms == arm)
            if here.any():
                yield arm, here


@dataclass(frozen=True, slots=True)
class Cutting:
    """How centers cut their tables of an outcome: as in `center/proposal/summarise.py`."""

    k: int
    scale: float
    horizon: float
    resolution: float | None = None
    moments: Moments = "tails"
    secret: bytes = b"secret"

    @property
    def lattice(self) -> Lattice:
        """The public one."""
        return _DECLARED.follow_up_lattice(self.scale, self.horizon, self.resolution)

    def arm(self, arm: int, times: FloatArray, events: BoolArray) -> GroupStatuses | None:
        """What is told of an arm alone; None of fewer than K people."""
        if len(times) < self.k:
            return None
        times, events = np.minimum(times, self.horizon), events & (times <= self.horizon)
        parts = times[events], times[~events]
        few = [0 < len(part) < self.k for part in parts]
        label = block_label([[ARMS[arm]]])
        if any(few):
            here = ~events & (times >= self.horizon)
            before = times[~events & ~here]
            if min(here.sum(), len(times) - here.sum()) >= self.k:
                few[1] = len(before) < self.k
                times = times[~here]
            else:
                here[:] = False
            return GroupStatuses(
                group=label,
                events=None,
                censored=None,
                either=self._cut(times),
                below=_below(few),
                followed=int(here.sum()) or None,
            )
        had, had_not = (self._cut(part) if len(part) else None for part in parts)
        return GroupStatuses(group=label, events=had, censored=had_not, either=None, below=None)

    def _cut(self, times: FloatArray) -> CellTable:
        draws = keyed_draws(self.secret, "times")
        return _cell_table(status_table(np.sort(times), self.lattice, self.k, draws, self.moments))

    def answer(self, center: str, arms: Sequence[GroupStatuses]) -> BlockAnswer:
        """The arms that a center tells."""
        tables = SurvivalTables(scale=self.scale, groups=tuple(arms), resolution=self.resolution)
        return BlockAnswer(center, self.k, tables)

    def alone(self, people: People) -> list[BlockAnswer]:
        """What centers tell without each other."""
        answers = []
        for center in np.unique(people.centers).tolist():
            arms = [
                arm
                for place, here in people.by_arm(center)
                if (arm := self.arm(place, people.times[here], people.events[here])) is not None
            ]
            if arms:
                answers.append(self.answer(center_name(center), arms))
        return answers

    def jointly(self, people: People, joint: Joint) -> list[BlockAnswer]:
        """The same with a joint center: of centers with fewer than 2K people, or of all."""
        small = np.bincount(people.centers)[people.centers] < 2 * self.k
        member = small | (joint == "all")
        members = tuple(center_name(c) for c in np.unique(people.centers[member]).tolist())
        if len(members) < LEAST_MEMBERS:
            return self.alone(people)
        alone = self.alone(people.chosen(~member))
        together = self._together(people.chosen(member), self.scale if alone else None)
        if together is None:
            return alone
        return [*alone, BlockAnswer("joint", self.k, together, members=members)]

    def _together(self, people: People, scale: float | None) -> SurvivalTables | None:
        """What keepers open of these people: counts alone, by status and cell; None of too few.

        Without a scale that centers tell alone, it is a part of the horizon.
        """
        part = _few_points(self._outcome, scale or nice_number(self.horizon / 6), self.horizon)
        random = np.random.default_rng(list(self.secret))
        times = np.minimum(people.times, self.horizon)
        events = people.events & (people.times <= self.horizon)
        groups = []
        for arm in range(len(ARMS)):
            here = people.arms == arm
            if here.sum() < 2 * self.k:
                return None  # both arms are one block
            few = [int((here & status).sum()) < self.k for status in (events, ~events)]
            statuses = [here] if any(few) else [here & events, here & ~events]
            tables = [_opened(times[some], part.edges, self.k, random) for some in statuses]
            either, had, had_not = (*tables, None, None) if any(few) else (None, *tables)
            groups.append(
                GroupStatuses(
                    group=block_label([[ARMS[arm]]]),
                    events=had,
                    censored=had_not,
                    either=either,
                    below=_below(few),
                )
            )
        return SurvivalTables(scale=part.scale, groups=tuple(groups), resolution=part.resolution)

    def _outcome(self, scale: float) -> JointOutcome:
        """The outcome as the plan of a joint center has it."""
        return JointOutcome(
            variable="time",
            event="event",
            event_is="1",
            horizon=self.horizon,
            scale=scale,
            resolution=self.resolution,
            lower=None,
            upper=None,
            low=0.0,
            high=self.horizon,
        )

    def combine(self, answers: Sequence[BlockAnswer]) -> "Combined | None":
        """What the coordinator makes of it; None where an arm is told by nobody."""
        if len({arm.group for answer in answers for arm in answer.tables.groups}) < len(ARMS):
            return None
        question = SurvivalQuestion(
            variable="time", event="event", horizon=self.horizon, blocks=(_GROUPING,)
        )
        tables = outcome_of_blocks(question, answers, BlockView("arm"), _DECLARED)
        return Combined(tables, reconstruct(tables.blocks, tables.lattice))


def center_name(number: int) -> str:
    """What a center is called."""
    return f"center {number}"


def _below(few: Sequence[bool]) -> Below | None:
    """Which statuses have too few people."""
    if not any(few):
        return None
    return "both" if all(few) else "events" if few[0] else "censored"


def _few_points(
    part: Callable[[float], JointOutcome], scale: float, horizon: float
) -> JointOutcome:
    """On a lattice that is not too fine: as `federation.joint.plan` has it."""
    while (made := part(scale)).width > MOST_POINTS:
        scale = max(2 * scale, 10 * horizon / MOST_POINTS)
    return made


def _opened(times: FloatArray, edges: FloatArray, k: int, random: Random) -> CellTable:
    """A table that keepers open: counts alone."""
    counts = np.bincount(np.searchsorted(edges, times, "left"), minlength=len(edges) + 1)
    draws, coins = random.integers(0, DRAW + 1, len(counts)), random.integers(0, 2, len(counts))
    cells = joint_cells(counts, k, draws, coins)
    none = (None,) * len(cells.counts)
    return CellTable(
        edges=tuple(edges[list(cells.edges)].tolist()), counts=cells.counts, means=none, sds=none
    )


def _cell_table(table: LatticeTable) -> CellTable:
    means, sds = (
        tuple(None if math.isnan(x) else x for x in some.tolist())
        for some in (table.means, table.sds)
    )
    edges, counts = tuple(table.edges.tolist()), tuple(table.counts.tolist())
    return CellTable(edges=edges, counts=counts, means=means, sds=sds)


@dataclass(frozen=True, slots=True)
class Combined:
    """The tables as the coordinator reads them, and the people of each block."""

    tables: OutcomeTables
    followed: list[FollowUp]

    def arms(self, followed: Sequence[FollowUp] | None = None) -> list[FollowUp]:
        """The arms, marked by stratum."""
        of_block = self.followed if followed is None else followed
        blocks = zip(of_block, self.tables.stratum, self.tables.blocks, strict=True)
        marked = [(f.in_strata(np.full(len(f.times), c)), b.groups[0]) for f, c, b in blocks]
        return [stack([f for f, arm in marked if arm == name]) for name in ARMS]

    def known_until(self) -> list[float]:
        """How far each arm's curve goes."""
        lattice = self.tables.lattice
        return [known_until([b.tables for b in self.tables.of_arm(arm)], lattice) for arm in ARMS]


def simulate_survival(setting: SurvivalSetting, random: Random) -> FloatArray:
    """One simulation of a log-rank test and of medians."""
    people, truth = _draw_times(setting, random)
    cutting = Cutting(
        setting.k, float(people.times.std()) or 1.0, setting.follow_up, secret=random.bytes(32)
    )
    full = people.pooled()
    logs, errors = [log_rank(full, stratified=True).log_p], _median_errors(full, truth)
    for answers in (cutting.alone(people), cutting.jointly(people, "all")):
        combined = cutting.combine(answers)
        if combined is None:
            logs.append(0.0)
            errors += [math.nan] * len(ARMS)
            continue
        arms = combined.arms()
        logs.append(log_rank(arms, stratified=True).log_p)
        ends = zip(arms, combined.known_until(), strict=True)
        errors += _median_errors([arm.until(end) for arm, end in ends], truth)
    return np.array([*logs, *errors])


def _median_errors(arms: Sequence[FollowUp], truth: Sequence[float]) -> list[float]:
    medians = [kaplan_meier(arm).quantile(0.5)[0] for arm in arms]
    return [math.nan if t is None else t - true for t, true in zip(medians, truth, strict=True)]


def _draw_times(setting: SurvivalSetting, random: Random) -> tuple[People, list[float]]:
    """The people, and the median of each arm of these centers."""
    from scipy.optimize import brentq

    centers = len(setting.n_x)
    levels, effects = random.normal(0.0, 1.0, (2, centers))
    base = math.log(2) / setting.median * np.exp(setting.center_sd * levels)
    other = base * setting.ratio * np.exp(setting.effect_sd * effects)
    sizes = np.array([setting.n_x, setting.n_y])
    arms = np.repeat([0, 1], sizes.sum(axis=1))
    place = np.concatenate([np.repeat(np.arange(centers), n) for n in sizes])
    hazard = np.where(arms == 1, other[place], base[place])
    times = random.exponential(size=len(arms)) / hazard
    ends = np.full(len(arms), setting.follow_up)
    lost = random.random(len(arms)) < setting.dropout
    ends[lost] *= random.random(int(lost.sum()))
    people = People(np.minimum(times, ends), times <= ends, arms, place)

    def left(t: float, hazards: FloatArray) -> float:
        return float(np.exp(-hazards * t).mean()) - 0.5

    truth = [
        float(brentq(left, 0.0, math.log(2) / hazards.min() + 1.0, args=(hazards,)))
        for hazards in (hazard[arms == 0], hazard[arms == 1])
    ]
    return people, truth


def simulate_proportion(setting: ProportionSetting, random: Random) -> FloatArray:
    """One simulation of the Cochran-Mantel-Haenszel test and of the difference of risks."""
    levels, effects = random.normal(0.0, 1.0, (2, len(setting.n_x)))
    odds = [math.log(p / (1 - p)) for p in (setting.p_x, setting.p_y)]
    base = odds[0] + setting.center_sd * levels
    other = base + odds[1] - odds[0] + setting.effect_sd * effects
    risks = 1 / (1 + np.exp(-np.array([other, base])))  # y first: its risk less that of x
    sizes = np.array([setting.n_y, setting.n_x])
    had = random.binomial(sizes, risks)
    counts = np.stack([had, sizes - had], axis=-1).swapaxes(0, 1)  # center × group × answer
    weight = sizes.prod(axis=0) / sizes.sum(axis=0)
    truth = float(weight @ (risks[0] - risks[1]) / weight.sum())
    logs, errors = [], []
    for strata in (counts, *_told_counts(counts, setting.k)):
        test = cochran_mantel_haenszel(strata) if len(strata) else None
        apart = risk_difference(strata) if len(strata) else None
        logs.append(0.0 if test is None else test.log10_p * math.log(10))
        errors.append(math.nan if apart is None else apart.estimate - truth)
    return np.array([*logs, *errors])


def _told_counts(counts: IntArray, k: int) -> tuple[IntArray, IntArray]:
    """The centers that tell all four cells; and all centers as one, where they are three or more.

    Where even these have a small cell, a joint center does not tell it either.
    """
    small = ((counts > 0) & (counts < k)) | (counts.sum(axis=2, keepdims=True) < k)
    alone = counts[~small.any(axis=(1, 2))]
    joint = counts.sum(axis=0)
    few = np.any((joint > 0) & (joint < k)) or np.any(joint.sum(axis=1) < 2 * k)
    return alone, alone if few or len(counts) < LEAST_MEMBERS else joint[None]
