"""Quantiles of the parallel method against the full data: python -m benchmarks.parallel_quantiles.

    python -m benchmarks.parallel_quantiles [RUNS] [SEED] [SET]

For each family, number of centers and K: the mean squared error over that of the full-data
quantile loss on the same people (with its Monte Carlo error), how often the 95 % interval holds the
truth, and its mean length over that of the full-data order-statistic interval. SET is one of main,
k20, tails, held-out, gridded, speed; the default is main and speed.
"""

import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from time import perf_counter

import numpy as np
from scipy.stats import binom

from benchmarks.parallel_families import (
    EVERY,
    FAMILIES,
    GRIDDED,
    HELD_OUT,
    SEEN_LATE,
    SIZES,
    P,
    draw_centers,
)
from unpooled.maths.arrays import FloatArray
from unpooled.maths.distribution import smooth
from unpooled.maths.lattice import Lattice, Moments, lattice_table

_lattice = lru_cache(lambda name: EVERY[name].lattice())


@dataclass(frozen=True, slots=True)
class Setting:
    """A cell of the study."""

    family: str
    centers: int
    k: int = 10
    moments: Moments = "all"


@dataclass(frozen=True, slots=True)
class Runs:
    """A row per run and a column per quantile."""

    ours: FloatArray
    full: FloatArray
    held: FloatArray
    length: FloatArray
    full_length: FloatArray


def simulate(setting: Setting, seed: int, runs: int) -> Runs:
    """Errors and intervals of both methods on the same people."""
    rows = [_run(setting, seed, run) for run in range(runs)]
    return Runs(*(np.array(part, dtype=np.float64) for part in zip(*rows, strict=True)))


def _run(setting: Setting, seed: int, run: int) -> tuple[FloatArray, ...]:
    sizes = SIZES[setting.centers]
    centers, truth = draw_centers(setting.family, sizes, seed, run)
    lattice: Lattice = _lattice(setting.family)
    tables = [lattice_table(x, lattice, setting.k, setting.moments) for x in centers]
    fitted = smooth(tables, lattice)
    low, high = fitted.interval(P)
    everybody = np.sort(np.concatenate(centers))
    full = np.quantile(everybody, P, method="averaged_inverted_cdf")
    ranks = _ranks(len(everybody))
    length = everybody[ranks[1]] - everybody[ranks[0]]
    held = (low <= truth) & (truth <= high)
    return fitted.quantile(P) - truth, full - truth, held.astype(np.float64), high - low, length


@lru_cache
def _ranks(n: int) -> tuple[FloatArray, FloatArray]:
    """Order statistics that hold the quantile with at least 95 %."""
    low = np.maximum(binom.ppf(0.025, n, P).astype(int) - 1, 0)
    return low, np.minimum(binom.ppf(0.975, n, P).astype(int), n - 1)


def line(setting: Setting, runs: Runs) -> str:
    """Ratios with their errors, coverage, relative lengths."""
    ours, full = (runs.ours**2).mean(axis=0), (runs.full**2).mean(axis=0)
    ratio = ours / full
    noise = np.sqrt(((runs.ours**2 - ratio * runs.full**2) ** 2).mean(axis=0) / len(runs.ours))
    lengths = runs.length.mean(axis=0) / runs.full_length.mean(axis=0)
    parts = [" ".join(f"{value:5.2f}" for value in row) for row in (ratio, noise / full)]
    cover = " ".join(f"{value:.3f}" for value in runs.held.mean(axis=0))
    shown = " ".join(f"{value:.2f}" for value in lengths)
    label = f"{setting.family:<22}{setting.centers:>3}{setting.k:>4} {setting.moments:<6}"
    return f"{label}|{parts[0]} |{parts[1]} | {cover} | {shown}"


def hits(setting: Setting, runs: Runs) -> str:
    """How often rounded or shared values are met exactly, beside the full data."""
    ours, full = ((np.abs(e) < 1e-6).mean(axis=0) for e in (runs.ours, runs.full))
    parts = [" ".join(f"{value:5.3f}" for value in row) for row in (ours, full)]
    cover = " ".join(f"{value:.3f}" for value in runs.held.mean(axis=0))
    label = f"{setting.family:<22}{setting.centers:>3}{setting.k:>4}"
    return f"{label} hits {parts[0]} | full {parts[1]} | {cover}"


def settings(name: str) -> Iterator[Setting]:
    """The cells of a set."""
    if name == "main":
        for family in FAMILIES:
            for centers in (3, 5, 10) if family.startswith("gamma") else (3, 10):
                yield Setting(family, centers)
    elif name == "k20":
        yield from (Setting(family, 10, 20) for family in FAMILIES)
    elif name == "tails":
        yield from (Setting(family, 10, 10, "tails") for family in FAMILIES)
    elif name == "held-out":
        yield from (Setting(family, 10, k) for family in SEEN_LATE | HELD_OUT for k in (10, 20))
    elif name == "gridded":
        yield from (Setting(family, n) for family in GRIDDED for n in (3, 10))
    else:
        raise ValueError(f"set must be main, k20, tails, held-out, gridded, got {name!r}")


def work(setting: Setting, seed: int, runs: int) -> str:
    """One line of the table."""
    found = simulate(setting, seed, runs)
    return (hits if setting.family in GRIDDED else line)(setting, found)


def speed() -> str:
    """The coordinator's time for five quantiles with intervals, ten centers."""
    centers, _ = draw_centers("gamma 4", SIZES[10], 1, 0)
    lattice = _lattice("gamma 4")
    tables = [lattice_table(x, lattice, 10) for x in centers]
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
    print("family, centers, K, moments | MSE ratio | its Monte Carlo error | coverage | length")
    for name in sets:
        if name == "speed":
            print(speed(), flush=True)
            continue
        cells = list(settings(name))
        with ProcessPoolExecutor(2) as pool:
            for text in pool.map(work, cells, [seed] * len(cells), [runs] * len(cells)):
                print(text, flush=True)


if __name__ == "__main__":
    numbers, names = sys.argv[1:3], sys.argv[3:]
    main(
        int(numbers[0]) if numbers else 300,
        int(numbers[1]) if len(numbers) > 1 else 20261211,
        names or ["main", "speed"],
    )
