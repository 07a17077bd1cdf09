"""Simulations of the parallel method beside the full data, a row of numbers each."""

from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np
from scipy.stats import binom

from unpooled.center.proposal.keyed_boundaries import keyed_draws
from unpooled.maths.arrays import FloatArray
from unpooled.maths.density.distribution import smooth
from unpooled.maths.density.placing import Placed, place
from unpooled.maths.lattice.cutting import lattice_table
from unpooled.maths.lattice.lattice import public_lattice
from unpooled.maths.ranks.cross_center import cross_center, hodges_lehmann
from unpooled.maths.ranks.mann_whitney import rank_statistics, sum_test
from unpooled_study.parallel.populations import P, draw_centers, lattice_of
from unpooled_study.parallel.settings import ParallelQuantiles, ParallelTests
from unpooled_study.simulations.families import Random
from unpooled_study.simulations.settings import ALLOCATIONS

DRAWS: dict[str, Callable[[Random, int], FloatArray]] = {
    "normal": lambda random, n: random.normal(size=n),
    "t3": lambda random, n: random.standard_t(3, n),
    "gamma 4": lambda random, n: random.gamma(4.0, 0.5, n),
}
_LEVELS_APART = 0.1  # SD of the centers' levels


def simulate_quantiles(setting: ParallelQuantiles, random: Random) -> FloatArray:
    """One simulation of quantiles with intervals."""
    sizes = setting.sizes or ALLOCATIONS[setting.centers]
    centers, truth = draw_centers(setting.family, sizes, random)
    lattice = lattice_of(setting.family)
    draws = keyed_draws(random.bytes(32), setting.family)
    tables = [lattice_table(x, lattice, setting.k, draws, setting.moments) for x in centers]
    fitted = smooth(tables, lattice)
    low, high = fitted.interval(P)
    everybody = np.sort(np.concatenate(centers))
    full = np.quantile(everybody, P, method="averaged_inverted_cdf")
    first, last = _order_statistics(len(everybody))
    held = (low <= truth) & (truth <= high)
    length = everybody[last] - everybody[first]
    noted = fitted.beyond(P) | (fitted.blur(P) > 0)
    errors = fitted.quantile(P) - truth, full - truth
    return np.concatenate((*errors, held, high - low, length, noted))


@lru_cache
def _order_statistics(n: int) -> tuple[FloatArray, FloatArray]:
    """Those that hold the quantile with at least 95 %."""
    low = np.maximum(binom.ppf(0.025, n, P).astype(int) - 1, 0)
    return low, np.minimum(binom.ppf(0.975, n, P).astype(int), n - 1)


def simulate_test(setting: ParallelTests, random: Random) -> FloatArray:
    """One simulation of the test, P(Y > X) and the shift."""
    sizes = ALLOCATIONS[10]
    levels = _LEVELS_APART * random.normal(size=len(sizes))
    draw = DRAWS[setting.family]
    x, y = (
        [np.sort(draw(random, n) + a + delta) for n, a in zip(sizes, levels, strict=True)]
        for delta in (0.0, setting.delta)
    )
    lattice = public_lattice(scale=1.0)
    draws = keyed_draws(random.bytes(32), setting.family)
    cut = partial(lattice_table, lattice=lattice, k=setting.k, draws=draws, moments=setting.moments)
    placed = [place([cut(statistics) for statistics in group], lattice) for group in (x, y)]
    statistics = [rank_statistics(a, b) for a, b in zip(x, y, strict=True)]
    ours = cross_center(placed[0], placed[1], statistics)
    all_x, all_y = np.sort(np.concatenate(x)), np.sort(np.concatenate(y))
    full = rank_statistics(all_x, all_y)
    shift = hodges_lehmann(placed[0], placed[1], u=ours.statistics.u)
    pooled = hodges_lehmann(_exact(all_x), _exact(all_y))
    return np.array(
        [
            ours.test("greater").log_p - sum_test([full], "greater").log_p,
            ours.test("two-sided").p_value,
            (ours.statistics.effect - full.effect) / np.sqrt(full.effect_variance),
            (shift.estimate - pooled.estimate) / ((pooled.high - pooled.low) / 3.92),
        ]
    )


def _exact(values: FloatArray) -> Placed:
    n = len(values)
    return Placed(values, np.ones(n), np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.bool_))
