"""Federated survival against the pooled data: python -m benchmarks.survival_curves [RUNS] [SEED].

1500 people of two arms in the paper's 3 or 10 centers; times exponential or Weibull with shape 1.5,
30 % or 70 % of people censored (exponential censoring), hazard ratio 1 or .75. The horizon and the
lattice are those that one coarse round agrees on. Against Kaplan-Meier, log-rank and Cox on the
pooled people, over the runs:

- |S|: mean |S − S_pooled| in standard errors, at the deciles of the arm's follow-up times; and at
  S = .9, .8 ... .1 as long as more than 10 people are left, which looks at the tail more closely;
  both as far as the curve is drawn
- z: SD of the difference of the log-rank z
- level: rejections at .05, and those of the pooled test beside it (power where the ratio is .75)
- HR: mean shift of the log hazard ratio in standard errors, its mean size, and the coverage of its
  95 % interval
- band: coverage of the 95 % band at the true quartiles that it reaches
- median: MSE over that of the pooled median, and the coverage of its interval
"""

import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from zlib import crc32

import numpy as np

from unpooled.center.data.variables import Variable
from unpooled.center.proposal.keyed_boundaries import keyed_draws
from unpooled.maths.arrays import BoolArray, FloatArray, IntArray
from unpooled.maths.lattice.cells import Moments
from unpooled.maths.lattice.cutting import status_table
from unpooled.maths.lattice.lattice import Lattice
from unpooled.maths.moments import MeanSD, pool
from unpooled.maths.survival.cox import hazard_ratio
from unpooled.maths.survival.follow_up import FollowUp, agreed_horizon
from unpooled.maths.survival.kaplan_meier import SurvivalCurve, kaplan_meier
from unpooled.maths.survival.log_rank import log_rank
from unpooled.maths.survival.pseudo_times import ArmTables, Below, known_until, pseudo_times
from unpooled_study.simulations.families import Random
from unpooled_study.simulations.settings import ALLOCATIONS as SIZES

K = 10
SHAPES = {"exponential": 1.0, "Weibull 1.5": 1.5}
LEVELS = np.linspace(0.1, 0.9, 9)


@dataclass(frozen=True, slots=True)
class Setting:
    """A line of the table."""

    centers: int
    moments: Moments
    family: str
    censored: float
    ratio: float


@dataclass(frozen=True, slots=True)
class People:
    """What the centers hold: follow-up times, events and centers of one arm."""

    times: FloatArray
    events: BoolArray
    centers: IntArray

    def whole(self) -> FollowUp:
        """All of them, pooled."""
        return FollowUp.of(self.times, self.events.astype(float), None, self.centers)


@lru_cache
def censoring_rate(shape: float, censored: float, ratio: float) -> float:
    """The rate of exponential censoring that leaves this share without the event."""
    u = (np.arange(20_000) + 0.5) / 20_000
    times = np.concatenate([(-np.log(u) / hazard) ** (1 / shape) for hazard in (1.0, ratio)])
    low, high = 1e-3, 1e3
    for _ in range(60):
        rate = np.sqrt(low * high)
        low, high = (rate, high) if np.mean(-np.expm1(-rate * times)) < censored else (low, rate)
    return float(rate)


def draw(random: Random, setting: Setting, hazard: float) -> People:
    """Half of each center's people, with this hazard."""
    shape = SHAPES[setting.family]
    sizes = np.array(SIZES[setting.centers]) // 2
    n = int(sizes.sum())
    times = (random.exponential(size=n) / hazard) ** (1 / shape)
    rate = censoring_rate(shape, setting.censored, setting.ratio)
    ends = random.exponential(size=n) / rate
    centers = np.repeat(np.arange(len(sizes)), sizes)
    return People(np.minimum(times, ends), times <= ends, centers)


def agree(arms: list[People]) -> tuple[Lattice, float]:
    """The lattice and horizon of one coarse round."""
    parts = [MeanSD.of(arm.times[arm.centers == c]) for arm in arms for c in set(arm.centers)]
    horizon = agreed_horizon(parts)
    return Variable().follow_up_lattice(pool(parts).sd, horizon), horizon


def tables(arm: People, lattice: Lattice, horizon: float, moments: Moments) -> dict[int, ArmTables]:
    """What each center would tell of an arm."""
    late = arm.times > horizon
    times, events = np.minimum(arm.times, horizon), arm.events & ~late
    cut = partial(
        status_table, lattice=lattice, k=K, draws=keyed_draws(b"secret", "t"), moments=moments
    )
    answer = {}
    for center in np.unique(arm.centers):
        one = arm.centers == center
        parts = [np.sort(times[one & events]), np.sort(times[one & ~events])]
        few = [0 < len(part) < K for part in parts]
        if any(few):
            below: Below = "both" if all(few) else "events" if few[0] else "censored"
            either = cut(np.sort(times[one]))
            answer[int(center)] = ArmTables(K, either=(either,), below=below)
        else:
            events_, censored = ((cut(part),) if len(part) else () for part in parts)
            answer[int(center)] = ArmTables(K, events_, censored)
    return answer


def run(setting: Setting, seed: int, number: int) -> list[float]:
    """The columns of one run."""
    name = f"{setting.family} {setting.censored} {setting.ratio} {setting.centers}"
    random = np.random.default_rng([seed, crc32(name.encode()), number])
    people = [draw(random, setting, hazard) for hazard in (1.0, setting.ratio)]
    lattice, horizon = agree(people)
    answer = [tables(arm, lattice, horizon, setting.moments) for arm in people]
    ours = [pseudo_times(arm, lattice) for arm in answer]
    full = [arm.whole() for arm in people]
    ends = [known_until(arm.values(), lattice) for arm in answer]
    curves = [
        (kaplan_meier(a.until(end)), kaplan_meier(b))
        for a, b, end in zip(ours, full, ends, strict=True)
    ]
    tests = log_rank(ours), log_rank(full)
    result, pooled = hazard_ratio(ours[0], ours[1]), hazard_ratio(full[0], full[1])
    assert result is not None
    assert pooled is not None
    truth = np.log(setting.ratio)
    return [
        *column_means(
            distances(*pair, arm.times) for pair, arm in zip(curves, people, strict=True)
        ),
        tests[0].z - tests[1].z,
        *(test.p_value < 0.05 for test in tests),
        (result.log - pooled.log) / pooled.error,
        *(abs(ratio.log - truth) < 1.96 * ratio.error for ratio in (result, pooled)),
        *column_means(
            accuracy(setting, pair, hazard)
            for pair, hazard in zip(curves, (1.0, setting.ratio), strict=True)
        ),
    ]


def column_means(rows: Iterator[list[float]]) -> list[float]:
    """The mean of each column, without what is missing."""
    answer = np.array(list(rows))
    return [float(np.mean(c[~np.isnan(c)])) if not np.isnan(c).all() else np.nan for c in answer.T]


def distances(ours: SurvivalCurve, full: SurvivalCurve, times: FloatArray) -> list[float]:
    """Mean |S − S_pooled| in standard errors: at deciles of the times, and of S."""
    reached = [full.quantile(p)[0] for p in LEVELS]
    levels = np.array([t for t in reached if t is not None])
    levels = levels[full.at_risk[np.searchsorted(full.times, levels)] > K]
    return [_distance(ours, full, at) for at in (np.quantile(times, LEVELS), levels)]


def _distance(ours: SurvivalCurve, full: SurvivalCurve, at: FloatArray) -> float:
    at = at[at <= ours.end]
    index = np.searchsorted(full.times, at, "right") - 1
    at, index = at[full.survival[index] > 0], index[full.survival[index] > 0]
    error = full.survival[index] * np.sqrt(full.variance[index])
    return float(np.mean(np.abs(ours.at(at) - full.at(at)) / error)) if len(at) else np.nan


def accuracy(
    setting: Setting, pair: tuple[SurvivalCurve, SurvivalCurve], hazard: float
) -> list[float]:
    """Band coverage, squared error of the median and its coverage, ours and pooled."""
    shape = SHAPES[setting.family]
    levels = np.array([0.75, 0.5, 0.25])
    at = (-np.log(levels) / hazard) ** (1 / shape)
    drawn = at <= pair[0].end
    columns: list[float] = []
    for curve in pair:
        low, high = curve.band_at(at)
        inside = ((low <= levels) & (levels <= high))[drawn]
        estimate, least, most = curve.quantile(0.5)
        median = float(at[1])
        covered = (least or 0.0) <= median <= (np.inf if most is None else most)
        missed = np.nan if estimate is None else (estimate - median) ** 2
        columns += [float(np.mean(inside)) if len(inside) else np.nan, missed, covered]
    return columns


def line(setting: Setting, rows: FloatArray) -> str:
    """A line of the table."""
    mean = column_means(iter(rows.tolist()))
    both = ~np.isnan(rows[:, 9]) & ~np.isnan(rows[:, 12])
    mse = rows[both, 9].mean() / rows[both, 12].mean()
    return (
        f"| {setting.centers} | {setting.moments} | {setting.family} | {setting.censored:.0%} "
        f"| {setting.ratio:g} | {mean[0]:.2f}, {mean[1]:.2f} | {rows[:, 2].std():.3f} "
        f"| {mean[3]:.3f} / {mean[4]:.3f} | {mean[5]:+.3f} | {np.abs(rows[:, 5]).mean():.3f} "
        f"| {mean[6]:.3f} / {mean[7]:.3f} | {mean[8]:.3f} / {mean[11]:.3f} "
        f"| {mse:.2f} | {mean[10]:.3f} / {mean[13]:.3f} |"
    )


def main() -> None:
    """Print the table."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 7
    print(
        "| centers | moments | times | censored | HR | \\|S\\| | z | level | HR shift | its size "
        "| HR covers | band covers | median's MSE | it covers |"
    )
    print("|---" * 14 + "|")
    with ProcessPoolExecutor(2) as pool_:
        for centers, moments, family, censored, ratio in product(
            (3, 10), ("all", "tails", "none"), SHAPES, (0.3, 0.7), (1.0, 0.75)
        ):
            setting = Setting(centers, moments, family, censored, ratio)  # type: ignore[arg-type]
            rows = pool_.map(run, [setting] * runs, [seed] * runs, range(runs), chunksize=20)
            print(line(setting, np.array(list(rows))), flush=True)


if __name__ == "__main__":
    main()
