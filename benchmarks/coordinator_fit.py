"""The Yeo-Johnson fit to cells against the exact pooled fit: python -m benchmarks.coordinator_fit.

    python -m benchmarks.coordinator_fit [RUNS] [SEED] [SET]

For each family, number of centers, moments and search for λ: by p, the mean and the SD of the
difference between the quantile of the fit to cells and that of the maximum likelihood fit of all
people, in sampling standard errors of the latter, at K = 10. With an SD of .1 the mean squared
error is 1 % above that of the exact fit. The last column says how often the tables were refused as
telling too little. SET is one of paper (Gamma with the lower limit 0
declared), open (Gamma without), other (families that the transform fits less well, and rounded
data), small; the default is paper and open.
"""

import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np

from unpooled.center.proposal.keyed_boundaries import keyed_draws
from unpooled.maths.arrays import FloatArray
from unpooled.maths.lattice.cells import Moments
from unpooled.maths.lattice.cutting import lattice_table
from unpooled.maths.lattice.lattice import public_lattice
from unpooled.maths.quantiles.cell_fit import Search, fit_cells
from unpooled.maths.quantiles.yeo_johnson import fit_points
from unpooled_study.parallel.populations import P, draw_centers, lattice_of
from unpooled_study.simulations.settings import ALLOCATIONS

K = 10
MOMENTS: tuple[Moments, ...] = ("tails", "all")
OTHERS = ("normal", "lognormal", "bimodal", "t3", "rounded")
SMALL = ((60,), (150,), (24, 24, 24))


@dataclass(frozen=True, slots=True)
class Setting:
    """One line of the table."""

    family: str
    sizes: tuple[int, ...]
    moments: Moments
    declared: bool = True
    search: Search = "likelihood"


def settings(name: str) -> Iterator[Setting]:
    """The lines of a set."""
    for moments in MOMENTS:
        if name in ("paper", "open"):
            for family in ("gamma 4", "gamma 10"):
                for sizes in ALLOCATIONS.values():
                    yield Setting(family, sizes, moments, name == "paper")
        elif name == "other":
            for family in OTHERS:
                yield Setting(family, ALLOCATIONS[10], moments)
        elif name == "small":
            for sizes in SMALL:
                yield Setting("gamma 4", sizes, moments)
        else:
            raise SystemExit(f"no set {name}. There are: paper, open, other, small")
    if name == "paper":
        yield Setting("gamma 4", ALLOCATIONS[10], "tails", search="grid")


def simulate(setting: Setting, seed: int, run: int) -> FloatArray:
    """Rows: the fit to cells, the exact fit, the truth."""
    random = np.random.default_rng([seed, run, len(setting.sizes)])
    centers, truth = draw_centers(setting.family, setting.sizes, random)
    lattice = lattice_of(setting.family)
    if not setting.declared:
        lattice = public_lattice(10 * lattice.step)
    draws = keyed_draws(random.bytes(32), setting.family)
    tables = [lattice_table(x, lattice, K, draws, setting.moments) for x in centers]
    people = np.concatenate(centers)
    exact = fit_points(people, np.ones(len(people))).quantile(P)
    try:
        result = fit_cells(tables, lattice, setting.search).fit.quantile(P)
    except ValueError:  # refused
        result = np.full(len(P), np.nan)
    return np.array([result, exact, truth])


def work(setting: Setting, seed: int, runs: int) -> str:
    """One line of the table."""
    result, exact, truth = np.array([simulate(setting, seed, i) for i in range(runs)]).swapaxes(
        0, 1
    )
    off = (result - exact) / np.nanstd(exact - truth, axis=0)
    bias, spread = np.nanmean(off, axis=0), np.nanstd(off, axis=0)
    columns = [" ".join(f"{v:+.2f}" for v in bias), " ".join(f"{v:.2f}" for v in spread)]
    columns.append(f"{np.isnan(result).all(axis=1).mean():.0%}")
    centers = str(len(setting.sizes)) if sum(setting.sizes) == 1500 else str(setting.sizes)
    limit = "" if setting.declared else ", no limit"
    label = f"{setting.family}{limit} | {centers} | {setting.moments} | yj-{setting.search}"
    return f"| {label} | {' | '.join(columns)} |"


def main(runs: int, seed: int, sets: list[str]) -> None:
    """Print the table, two processes at work."""
    print(f"{runs} runs a line, seed {seed}, K = {K}; levels {P.tolist()}")
    print("| family | centers | moments | method | bias / SE | SD / SE | refused |")
    print("|---|---|---|---|---|---|---|")
    lines = [setting for name in sets for setting in settings(name)]
    with ProcessPoolExecutor(2) as pool:
        for text in pool.map(work, lines, [seed] * len(lines), [runs] * len(lines)):
            print(text, flush=True)


if __name__ == "__main__":
    numbers, names = sys.argv[1:3], sys.argv[3:]
    main(
        int(numbers[0]) if numbers else 200,
        int(numbers[1]) if len(numbers) > 1 else 20270311,
        names or ["paper", "open"],
    )
