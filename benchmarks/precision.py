"""What the precision rule costs: python -m benchmarks.precision [RUNS] [SEED].

Numbers leave a center rounded to 1/20 of their own standard error or coarser. Here centers of 30 to
500 people tell exact and rounded numbers, and each analysis is run on both. Printed is by how much
its result moves, in standard errors of that result (for a test: in z): the mean of the size, the
root of the mean square, and what 95 of 100 stay below. The means must be at most .025. (Units lie
between 1/20 and 1/8 of a standard error, evenly on a log scale: that alone makes it .018.)
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations, compress, pairwise
from math import sqrt

import numpy as np
from scipy.special import ndtri_exp

from unpooled.maths.arrays import FloatArray
from unpooled.maths.density.distribution import smooth
from unpooled.maths.density.placing import place
from unpooled.maths.lattice.cells import cell_moments
from unpooled.maths.lattice.cutting import lattice_table
from unpooled.maths.lattice.lattice import Lattice, LatticeTable, public_lattice
from unpooled.maths.moments import MeanSD, pool, welch
from unpooled.maths.precision import round_mean_sd, round_ranks, round_variance
from unpooled.maths.ranks.cross_center import cross_center
from unpooled.maths.ranks.effect import overall_effect
from unpooled.maths.ranks.group_ranks import (
    GroupRankStatistics,
    kruskal_weighted,
    rank_variance,
    tied_people,
    trend_variance,
    trend_weighted,
)
from unpooled.maths.ranks.mann_whitney import (
    RankStatistics,
    TestResult,
    fisher_test,
    rank_statistics,
    sum_test,
    weighted_test,
)

Random = np.random.Generator
FAMILIES: dict[str, Callable[[Random, int], FloatArray]] = {
    "normal": lambda random, n: random.normal(size=n),
    "lognormal": lambda random, n: random.lognormal(0, 1, n),
    "in fives": lambda random, n: np.round(random.normal(26, 3.5, n)),  # as 17 mmHg in fives
}
SHIFTS = {"normal": (0.0, 0.3, 1.0), "lognormal": (0.0, 0.3, 1.0), "in fives": (0.0, 1.0, 4.0)}
CENTERS = (3, 5, 10)
P = np.array([0.02, 0.25, 0.5, 0.75, 0.98])
TARGET = 0.025

People = list[list[FloatArray]]  # center by center, group by group, ascending


def draw(family: str, shift: float, centers: int, random: Random) -> People:
    """Centers of 30 to 500 people in three groups, of which none has fewer than 10."""
    people = []
    for _ in range(centers):
        size = round(30 * (500 / 30) ** random.random())
        sizes = 10 + random.multinomial(size - 30, random.dirichlet([4, 4, 4]))
        level = 0.1 * random.normal()
        groups = [
            FAMILIES[family](random, n) + shift * i / 2 + (level if family == "normal" else 0.0)
            for i, n in enumerate(sizes.tolist())
        ]
        people.append([np.sort(group) for group in groups])
    return people


@dataclass(frozen=True, slots=True)
class Told:
    """What the centers tell of their first and last group, and of all three."""

    moments: list[tuple[MeanSD, MeanSD]]
    ranks: list[RankStatistics]
    groups: list[GroupRankStatistics]

    @classmethod
    def of(cls, people: People, *, rounded: bool) -> "Told":
        """Told exactly, or rounded."""
        moments = [(MeanSD.of(part[0]), MeanSD.of(part[-1])) for part in people]
        ranks = [rank_statistics(part[0], part[-1]) for part in people]
        groups = [_of_groups(part, rounded=rounded) for part in people]
        if rounded:
            moments = [(round_mean_sd(x), round_mean_sd(y)) for x, y in moments]
            ranks = [round_ranks(part) for part in ranks]
        return cls(moments, ranks, groups)


def _of_groups(part: Sequence[FloatArray], *, rounded: bool) -> GroupRankStatistics:
    sizes, tied = np.array([float(len(group)) for group in part]), tied_people(part)
    spread, trend = rank_variance(tied), trend_variance(sizes, tied)
    pairs = {
        (i, j): rank_statistics(part[i], part[j]) for i, j in combinations(range(len(part)), 2)
    }
    if rounded:
        pairs = {place: round_ranks(pair) for place, pair in pairs.items()}
        spread, trend = (round_variance(v, int(sizes.sum())) for v in (spread, trend))
    u = {place: pair.u for place, pair in pairs.items()}
    return GroupRankStatistics.of_pairs(sizes, u, spread, trend)


def _z(test: TestResult) -> float:
    """The size of a normal statistic with this two-sided p-value."""
    return -float(ndtri_exp(min(test.log_p - np.log(2), -1e-9)))


def _results(answer: Told) -> Iterator[tuple[str, float, float]]:
    """Each analysis: its name, its result, and the standard error of that."""
    yield "sum, z", sum_test(answer.ranks, "two-sided").statistic, 1.0
    yield "weighted, z", weighted_test(answer.ranks, "two-sided").statistic, 1.0
    yield "fisher, z", _z(fisher_test(answer.ranks, "two-sided")), 1.0
    effect = overall_effect(answer.ranks)
    yield "P(Y > X)", effect.estimate, (effect.high - effect.low) / 3.92
    x, y = (pool([pair[i] for pair in answer.moments]) for i in (0, 1))
    test = welch(x, y)
    assert test is not None
    yield "mean difference", test.difference, (test.high - test.low) / 3.92
    yield "Welch, z", test.statistic, 1.0
    yield "three groups, z", _z(kruskal_weighted(answer.groups)), 1.0
    yield "trend, z", trend_weighted(answer.groups, "two-sided").statistic, 1.0


Tables = list[LatticeTable]


def _tables(groups: Sequence[FloatArray], lattice: Lattice) -> tuple[Tables, Tables]:
    """A group's tables, a center each: cells with exact moments, and with rounded ones."""
    exact, rounded = [], []
    for values in groups:
        table = lattice_table(values, lattice, 10, _evenly)
        scale, ends = lattice.open_scale(table.edges), np.cumsum(table.counts).tolist()
        cells = [values[a:b] for a, b in pairwise([0, *ends])]
        moments = np.array([cell_moments(cell, scale.at(i), 10) for i, cell in enumerate(cells)])
        rounded.append(table)
        exact.append(replace(table, means=moments[:, 0], sds=moments[:, 1]))
    return exact, rounded


def _evenly(_: FloatArray, n: int) -> FloatArray:
    return np.asarray(np.arange(1, n + 1) / (n + 1))


def _from_tables(
    people: People, lattice: Lattice, ranks: Sequence[Sequence[RankStatistics]]
) -> Iterator[tuple[str, float]]:
    """The parallel method's analyses, and by how much rounding moves them."""
    large = [min(len(part[0]), len(part[-1])) >= 20 for part in people]  # tables need 2K
    if not any(large):
        return
    people = list(compress(people, large))
    ranks = [list(compress(part, large)) for part in ranks]
    x, y = ([part[i] for part in people] for i in (0, -1))
    both = zip(_tables(x, lattice), _tables(y, lattice), ranks, strict=True)
    ours = [cross_center(place(a, lattice), place(b, lattice), part) for a, b, part in both]
    exact, rounded = (each.statistics for each in ours)
    yield "parallel, z", rounded.u / sqrt(rounded.variance) - exact.u / sqrt(exact.variance)
    error = sqrt(max(exact.effect_variance, 1e-9))
    yield "parallel, P(Y > X)", (rounded.effect - exact.effect) / error
    if lattice.resolution is not None:  # a quantile is one of few values, and stays or jumps
        return
    everybody = _tables([np.sort(np.concatenate(part)) for part in people], lattice)
    fits = [smooth(tables, lattice) for tables in everybody]
    low, high = fits[0].interval(P)
    moved = (fits[1].quantile(P) - fits[0].quantile(P)) / ((high - low) / 3.92)
    yield from (
        (f"parallel, quantile {p:g}", float(part)) for p, part in zip(P, moved, strict=True)
    )


def moves(family: str, shift: float, centers: int, random: Random) -> dict[str, float]:
    """By how much each analysis of one federation moves."""
    people = draw(family, shift, centers, random)
    exact, rounded = (Told.of(people, rounded=part) for part in (False, True))
    result = {
        name: (after - before) / error
        for (name, before, error), (_, after, _) in zip(
            _results(exact), _results(rounded), strict=True
        )
    }
    resolution = 1.0 if family == "in fives" else None
    lattice = public_lattice(scale=float(np.std(people[0][0])), resolution=resolution)
    with suppress(ValueError):  # a small center's few open cells may not say where people are
        result |= dict(_from_tables(people, lattice, (exact.ranks, rounded.ranks)))
    return result


def main(runs: int, seed: int) -> int:
    """Print the table; 1 where an analysis moves too far on average."""
    print(f"{runs} runs of each family, shift and number of centers, seed {seed}\n")
    result: dict[tuple[str, int], list[float]] = {}
    for family in FAMILIES:
        for i, shift in enumerate(SHIFTS[family]):
            for centers in CENTERS:
                for run in range(runs):
                    random = np.random.default_rng([seed, i, centers, run, len(family)])
                    for name, moved in moves(family, shift, centers, random).items():
                        result.setdefault((name, i), []).append(moved)
    print(f"{'moved, in SE':<26} {'shift':<7} {'mean':>7} {'RMS':>7} {'95 %':>7}")
    missed = False
    for (name, i), all_moves in sorted(result.items(), key=lambda part: part[0][1]):
        size = np.abs(all_moves)
        above = float(size.mean()) > TARGET
        missed |= above
        print(
            f"{name:<26} {('none', 'small', 'large')[i]:<7} {size.mean():>7.4f} "
            f"{sqrt((size**2).mean()):>7.4f} {np.quantile(size, 0.95):>7.4f}"
            f"{'  too far' if above else ''}"
        )
    return int(missed)


if __name__ == "__main__":
    given = [int(text) for text in sys.argv[1:]]
    sys.exit(main(*(given + [40, 20270401][len(given) :])))
