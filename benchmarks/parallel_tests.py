"""The parallel test against the combined data: python -m benchmarks.parallel_tests [RUNS] [SEED].

Two groups of 1500 people in the paper's ten centers, x = ε + α_l and y = ε + α_l + δ. Printed: the
standard deviation of log(p/p_combined) (one-sided), how often the null hypothesis is rejected at
.05 (two-sided), the mean error of P(Y > X) and of the shift against the combined data in standard
errors, and how often their 95 % intervals hold the truth.
"""

import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from scipy import special, stats

from benchmarks.parallel_families import SIZES, Random
from unpooled.maths.arrays import FloatArray
from unpooled.maths.cross_center import cross_center, hodges_lehmann
from unpooled.maths.effect import center_effect
from unpooled.maths.lattice import Moments, lattice_table, public_lattice
from unpooled.maths.mann_whitney import rank_statistics, sum_test
from unpooled.maths.placing import Placed, place

DRAWS: dict[str, Callable[[Random, int], FloatArray]] = {
    "normal": lambda random, n: random.normal(size=n),
    "t3": lambda random, n: random.standard_t(3, n),
    "gamma 4": lambda random, n: random.gamma(4.0, 0.5, n),
}


@dataclass(frozen=True, slots=True)
class Setting:
    """A line of the table."""

    family: str
    delta: float
    moments: Moments
    k: int = 10
    alpha: float = 0.1


def _run(setting: Setting, seed: int, run: int) -> list[float]:
    random = np.random.default_rng([seed, crc32(setting.family.encode()), run])
    sizes = SIZES[10]
    shifts = setting.alpha * random.normal(size=len(sizes))
    draw = DRAWS[setting.family]
    x = [np.sort(draw(random, n) + a) for n, a in zip(sizes, shifts, strict=True)]
    y = [np.sort(draw(random, n) + a + setting.delta) for n, a in zip(sizes, shifts, strict=True)]
    lattice = public_lattice(scale=1.0)
    placed = [
        place([lattice_table(v, lattice, setting.k, setting.moments) for v in group], lattice)
        for group in (x, y)
    ]
    own = [rank_statistics(a, b) for a, b in zip(x, y, strict=True)]
    ours = cross_center(placed[0], placed[1], own)
    all_x, all_y = np.sort(np.concatenate(x)), np.sort(np.concatenate(y))
    full = rank_statistics(all_x, all_y)
    one, combined = ours.test("greater").log_p, sum_test([full], "greater").log_p
    two = ours.test("two-sided").p_value
    error = (ours.statistics.effect - full.effect) / np.sqrt(full.effect_variance)
    shift, pooled = (
        hodges_lehmann(placed[0], placed[1]),
        hodges_lehmann(_exact(all_x), _exact(all_y)),
    )
    scale = (pooled.high - pooled.low) / 3.92
    effect = center_effect(ours.statistics)
    truth = _truth(setting, shifts)
    return [
        one - combined,
        two < 0.05,
        error,
        (shift.estimate - pooled.estimate) / scale,
        effect.low <= truth <= effect.high,
        shift.low <= setting.delta <= shift.high,
    ]


def _exact(values: FloatArray) -> Placed:
    n = len(values)
    return Placed(values, np.ones(n), np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.bool_))


def _truth(setting: Setting, shifts: FloatArray) -> float:
    """P(Y > X) over centers; known for the normal family, NaN (never held) for others."""
    if setting.family != "normal":
        return float("nan")
    share = np.array(SIZES[10]) / sum(SIZES[10])
    apart = shifts[None, :] - shifts[:, None] + setting.delta
    return float(share @ special.ndtr(apart / np.sqrt(2)) @ share)


def work(setting: Setting, seed: int, runs: int) -> str:
    """A line of the table."""
    rows = np.array([_run(setting, seed, run) for run in range(runs)], dtype=np.float64)
    log_ratio, rejected, effect, shift, held, shift_held = rows.T
    band = stats.norm.ppf(0.975) * np.sqrt(0.05 * 0.95 / runs)
    level = f"{rejected.mean():.3f} (.05 ± {band:.3f})" if setting.delta == 0 else "-"
    cover = f"{held.mean():.3f}" if setting.family == "normal" else "-"
    return (
        f"{setting.family:<8} {setting.moments:<6} {setting.k:>3} {setting.delta:>7} "
        f"{log_ratio.std():>8.4f} {level:>18} {np.abs(effect).mean():>9.4f} "
        f"{np.abs(shift).mean():>9.4f} {cover:>9} {shift_held.mean():>9.3f}"
    )


def main(runs: int, seed: int) -> None:
    """Print the table, two processes at work."""
    print(f"{runs} runs a line, 10 centers, seed {seed}")
    print(
        "family   tell    K   delta  SD log p              level   effect     shift   held    held"
    )
    told: list[tuple[Moments, int]] = [("all", 10), ("tails", 10), ("all", 20)]
    cells = [
        Setting(family, delta, moments, k)
        for family in DRAWS
        for delta in (0.0, 0.0625)
        for moments, k in told
    ]
    with ProcessPoolExecutor(2) as pool:
        for text in pool.map(work, cells, [seed] * len(cells), [runs] * len(cells)):
            print(text, flush=True)


if __name__ == "__main__":
    given = [int(text) for text in sys.argv[1:]]
    main(*(given + [300, 20261202][len(given) :]))
