"""Quantiles of the parallel method against the full data: python -m benchmarks.parallel_quantiles.

    python -m benchmarks.parallel_quantiles [RUNS] [SEED] [SET]

For each family, number of centers and K: the mean squared error over that of the full-data
quantile loss on the same people (with its Monte Carlo error), how often the 95 % interval holds the
truth, its mean length over that of the full-data order-statistic interval, and how often the answer
notes that cells tell little there. SET is one of main, all, k20, held-out, sizes, odd, gridded,
speed; the default is main and speed. `unpooled study parallel` runs the same simulations and keeps
them.
"""

import sys
from concurrent.futures import ProcessPoolExecutor
from time import perf_counter

import numpy as np

from unpooled.center.proposal.keyed_boundaries import keyed_draws
from unpooled.maths.density.distribution import smooth
from unpooled.maths.lattice.cutting import lattice_table
from unpooled_study.parallel.populations import P, draw_centers, lattice_of
from unpooled_study.parallel.settings import GRIDDED, ParallelQuantiles, quantile_settings
from unpooled_study.parallel.study import QuantileSummary
from unpooled_study.simulations.settings import ALLOCATIONS
from unpooled_study.simulations.simulation import simulate


def work(setting: ParallelQuantiles, seed: int, runs: int) -> str:
    """One line of the table."""
    result = QuantileSummary.of(setting, simulate(setting, seed, 0, runs))
    label = f"{setting.family:<22} {setting.where:<16}{setting.k:>3} {setting.moments:<6}"
    gridded = setting.family in GRIDDED
    first, second = (result.hits, result.full_hits) if gridded else (result.ratio, result.error)
    parts = [" ".join(f"{value:.{3 if gridded else 2}f}" for value in c) for c in (first, second)]
    cover = " ".join(f"{value:.3f}" for value in result.coverage)
    length, noted = (" ".join(f"{v:.2f}" for v in c) for c in (result.length, result.noted))
    return f"{label}| {parts[0]} | {parts[1]} | {cover} | {length} | {noted}"


def speed() -> str:
    """The coordinator's time for five quantiles with intervals, ten centers."""
    centers, _ = draw_centers("gamma 4", ALLOCATIONS[10], np.random.default_rng(1))
    lattice = lattice_of("gamma 4")
    tables = [lattice_table(x, lattice, 10, keyed_draws(b"secret", "v")) for x in centers]
    times = []
    for _ in range(30):
        start = perf_counter()
        fitted = smooth(tables, lattice)
        fitted.quantile(P)
        fitted.interval(P)
        times.append(perf_counter() - start)
    return f"coordinator, 5 quantiles with intervals, 10 centers: {min(times) * 1e3:.1f} ms"


def main(runs: int, seed: int, sets: list[str]) -> None:
    """Print the table, two processes at work."""
    print(f"{runs} runs a cell, seed {seed}; levels {P.tolist()}")
    print("family, centers, K, moments | MSE ratio | its error | coverage | length | noted")
    print("(rounded and zero-inflated: exact hits | those of the full data | ...)")
    for name in sets:
        if name == "speed":
            print(speed(), flush=True)
            continue
        cells = list(quantile_settings(name))
        with ProcessPoolExecutor(2) as pool:
            for text in pool.map(work, cells, [seed] * len(cells), [runs] * len(cells)):
                print(text, flush=True)


if __name__ == "__main__":
    numbers, names = sys.argv[1:3], sys.argv[3:]
    main(
        int(numbers[0]) if numbers else 300,
        int(numbers[1]) if len(numbers) > 1 else 20270311,
        names or ["main", "speed"],
    )
